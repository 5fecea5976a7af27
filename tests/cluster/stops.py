"""An `orc worker` that freezes itself, once, exactly before or after it appends, renews its lease, claims, starts or pushes.

`python -m tests.cluster.stops PLACE TIME HOW MARK worker …`: PLACE is `append/before`, `push/after` and so on; TIME says at
which of them, counted from when the worker has a run. With HOW `whole` the warden and the agents of the same host are frozen
before, so that nobody ends it meanwhile; with `cut` nothing stops, and others only learn that it is there. What it does from then
on is written into the file MARK, a line each, so that others know when it stopped, who did, and what it tried when it thawed.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

HERE = Path("/proc/self/ns/uts")
ACTS = {"append": "orc.append(", "lease": "orc.beat(", "claim": "orc.take_over("}
"""The acts of a worker that are statements, and the words by which they are known."""
PLACES = (
    *("append/before", "append/after", "lease/before", "lease/after", "claim/after"),
    *("launch/before", "launch/after", "push/before", "push/after"),
)


class Stop:
    """The one moment at which this process stops."""

    def __init__(self, place: str, time: int, how: str, mark: Path) -> None:
        self._place, self._left, self._how, self._mark = place, time, how, mark
        self.has_run = False
        self._frozen = False

    def reached(self, act: str, when: str) -> None:
        """Stop here if this is the place and the time; later, say what is done."""
        if self._frozen:
            self._say(f"{act}/{when}")
        elif self.has_run and f"{act}/{when}" == self._place:
            self._left -= 1
            if self._left == 0:
                others = list_neighbours() if self._how == "whole" else []
                for pid in others:
                    os.kill(pid, signal.SIGSTOP)
                self._say(" ".join(map(str, ("stops", os.getpid(), *others))))
                self._frozen = True
                if self._how != "cut":
                    os.kill(os.getpid(), signal.SIGSTOP)
                self._say("thaws")

    def around(self, act: str, do: Callable[..., Any]) -> Callable[..., Any]:
        """Return the same with a place before it and one after it."""

        def done(*given: Any, **named: Any) -> Any:
            self.reached(act, "before")
            answer = do(*given, **named)
            self.reached(act, "after")
            return answer

        return done

    def _say(self, text: str) -> None:
        with self._mark.open("a") as file:
            file.write(f"{text}\n")


def list_neighbours() -> list[int]:
    """Return all other processes of this host, which has a name of its own."""
    found = []
    for one in Path("/proc").iterdir():
        with suppress(OSError):
            if one.name.isdigit() and int(one.name) != os.getpid() and (one / "ns/uts").readlink() == HERE.readlink():
                found.append(int(one.name))
    return found


def watch(stop: Stop) -> None:
    """Put places around everything by which a worker has a part in a run."""
    from agent_orchestrator.engine.process.launches import ProcessLaunches
    from agent_orchestrator.git import worktree
    from agent_orchestrator.store.postgres.connection import Link

    execute, run = Link._execute, subprocess.run

    def executed(link: Link, made: Any, statement: str, values: Any, prepare: Any) -> Any:
        act = next((name for name, words in ACTS.items() if words in statement), "")
        if act in ("append", "lease"):
            stop.reached(act, "before")
        rows = execute(link, made, statement, values, prepare)
        if rows and ("orc.claim(" in statement or act == "claim"):
            stop.has_run = True
            stop.reached("claim", "after")
        if act in ("append", "lease"):
            stop.reached(act, "after")
        return rows

    def ran(argv: Any, **named: Any) -> Any:
        pushes = tuple(argv[:2]) == ("git", "push")
        return stop.around("push", run)(argv, **named) if pushes else run(argv, **named)

    Link._execute = executed  # type: ignore[method-assign,assignment]
    subprocess.run = ran  # type: ignore[assignment]
    worktree.begin_worktree = stop.around("tree", worktree.begin_worktree)
    ProcessLaunches.start = stop.around("launch", ProcessLaunches.start)  # type: ignore[method-assign]


def main() -> int:
    """Be that worker."""
    place, time, how, mark = sys.argv[1:5]
    watch(Stop(place, int(time), how, Path(mark)))
    sys.argv = ["orc", *sys.argv[5:]]
    from agent_orchestrator.surfaces.cli.main import main as orc

    return orc()


if __name__ == "__main__":
    sys.exit(main())
