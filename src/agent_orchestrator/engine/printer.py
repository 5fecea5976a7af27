"""The knowledge of a process about one run's print-outs: what it has shown, what of it stands in place, what is under way."""

from __future__ import annotations

import asyncio
from pathlib import Path

from agent_orchestrator.core.printed import Identity
from agent_orchestrator.projections.inspection import find_known
from agent_orchestrator.projections.writer import Draft


class Printer:
    """The state of one run's print-outs."""

    def __init__(self, known: dict[str, list[Identity]]) -> None:
        self.known = known
        self.shown: dict[str, str] = {}
        self.bodies: dict[str, object] = {}
        """Of what is shown, bodies that cannot change: the same one need not be encoded again."""
        self.busy: asyncio.Future[None] | None = None
        self.again = False
        """The state changed while it was printed."""
        self.urgent = False
        """The next print-out follows at once: the run rests, or somebody waits for it."""
        self.is_new = True
        """Until the run is printed whole by this process."""
        self.placed: set[str] = set()
        """Paths that this process put its own file at, when it tried last."""
        self.behind: set[str] = set()
        """Paths that it could not, when it tried last."""

    def put(self, draft: Draft) -> None:
        """Take note of a draft that is in place."""
        path = draft.printed.path
        known = self.known.setdefault(path, [])
        known.append(draft.printed.identity)
        del known[:-16]
        self.placed.add(path)
        self.behind.discard(path)

    def miss(self, draft: Draft) -> None:
        """Take note of a draft that is not: it is written again with the next print-out."""
        path = draft.printed.path
        self.shown.pop(path, None)
        self.placed.discard(path)
        self.behind.add(path)

    def standing(self, home: Path, path: str) -> Identity | None:
        """Return the identity of our file at a path, unless this process has just put one there."""
        if path in self.placed:
            return None
        try:
            return find_known(home, home / path, self.known.get(path, ()))
        except OSError:
            return None
