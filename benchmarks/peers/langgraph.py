"""LangGraph with its SQLite saver: `sync` rewrites the state with every step, `delta` keeps the steps' writes alone."""

from __future__ import annotations

import operator
import os
import sqlite3
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, TypedDict

from langgraph.channels import DeltaChannel
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import END, START, StateGraph

from benchmarks.protocol import RECORD, Entries, serve


def _extend(known: list[Any], writes: Sequence[list[Any]]) -> list[Any]:
    return [*known, *(one for write in writes for one in write)]


class _Whole(TypedDict):
    done: Annotated[list[Any], operator.add]
    wanted: int


class _Delta(TypedDict):
    done: Annotated[list[Any], DeltaChannel(_extend)]
    wanted: int


class Chain:
    """A graph of one node that goes round until enough is done."""

    def __init__(self, kind: str) -> None:
        self._kind = kind
        self.entries = Entries()
        self.stop_at = 0
        self.entered_ns = 0
        graph = StateGraph({"sync": _Whole, "delta": _Delta}[kind])
        graph.add_node("step", self._step)
        graph.add_edge(START, "step")
        graph.add_conditional_edges("step", lambda state: "step" if len(state["done"]) < state["wanted"] else END)
        self._graph = graph
        self._threads = 0

    def open(self, folder: str) -> None:
        """Open the database; the saver sets WAL itself, and SQLite's FULL is the default."""
        db = sqlite3.connect(Path(folder) / "langgraph.db", check_same_thread=False)
        self._compiled = self._graph.compile(checkpointer=SqliteSaver(db))

    def steps(self, count: int, earlier: int = 0) -> list[float]:
        """Run a chain, the earlier steps included; `sync` begins with their records."""
        self._threads += 1
        self._run({"done": self._begin(earlier), "wanted": earlier + count + 1}, str(self._threads), earlier + count)
        return self.entries.take_gaps()[-count:]

    def interrupt(self, earlier: int) -> None:
        """End this process inside the step after so many."""
        self.stop_at = earlier + 1
        self._run({"done": self._begin(earlier - 5), "wanted": earlier + 1_000}, "broken off", earlier + 1_000)

    def resume(self, folder: str) -> int:
        """Go on, and return the time at which the next step began."""
        self.open(folder)
        self.stop_at = -1
        try:
            self._run(None, "broken off", 10)
        except InterruptedError:
            return self.entered_ns
        raise AssertionError("no step followed")

    def _begin(self, earlier: int) -> list[Any]:
        """Return the records that a chain begins with: of a run of whole states, 10,000 real steps would write gigabytes."""
        return [RECORD] * earlier if self._kind == "sync" else []

    def _step(self, state: dict[str, Any]) -> dict[str, Any]:
        self.entries.enter()
        if self.stop_at == -1:
            self.entered_ns = time.time_ns()
            raise InterruptedError
        if len(state["done"]) + 1 == self.stop_at:
            os._exit(0)
        return {"done": [RECORD]}

    def _run(self, given: dict[str, Any] | None, thread: str, count: int) -> None:
        config = {"configurable": {"thread_id": thread}, "recursion_limit": count + 10}
        self._compiled.invoke(given, config, durability="sync")


if __name__ == "__main__":
    chain = Chain(sys.argv[1])
    serve(open=chain.open, steps=chain.steps, interrupt=chain.interrupt, resume=chain.resume)
