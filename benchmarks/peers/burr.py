"""Burr with its SQLite persister, which stores the whole state with every step."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

from burr.core import Application, ApplicationBuilder, State, action
from burr.core.persistence import SQLitePersister

from benchmarks.protocol import RECORD, Entries, serve

ENTRIES = Entries()


@action(reads=["done"], writes=["done"])
def step(state: State) -> State:
    """Leave a record."""
    ENTRIES.enter()
    return state.append(done=RECORD)


class Chain:
    """Applications of one database."""

    def __init__(self) -> None:
        self._applications = 0

    def open(self, folder: str) -> None:
        """Open the database."""
        self._persister = SQLitePersister.from_values(str(Path(folder) / "burr.db"))
        self._persister.initialize()

    def steps(self, count: int, earlier: int = 0) -> list[float]:
        """Run an application whose state begins with some earlier records."""
        self._applications += 1
        application = self._build(f"a{self._applications}", [RECORD] * earlier)
        for _ in range(count + 1):
            application.step()
        return ENTRIES.take_gaps()

    def interrupt(self, earlier: int) -> None:
        """End this process after so many steps, which is inside the next one for a persister that runs between them."""
        application = self._build("broken off", [RECORD] * (earlier - 5))
        for _ in range(5):
            application.step()
        os._exit(0)

    def resume(self, folder: str) -> int:
        """Go on, and return the time at which the next step could begin."""
        self.open(folder)
        application = self._build("broken off", None)
        assert application.state["done"]
        return time.time_ns()

    def _build(self, name: str, done: list[Any] | None) -> Application:
        builder = ApplicationBuilder().with_actions(step=step).with_transitions(("step", "step"))
        builder = builder.with_state_persister(self._persister).with_identifiers(app_id=name)
        if done is None:
            start = {"default_state": {"done": []}, "default_entrypoint": "step", "resume_at_next_action": True}
            return builder.initialize_from(self._persister, **start).build()
        return builder.with_state(done=done).with_entrypoint("step").build()


if __name__ == "__main__":
    chain = Chain()
    serve(open=chain.open, steps=chain.steps, interrupt=chain.interrupt, resume=chain.resume)
