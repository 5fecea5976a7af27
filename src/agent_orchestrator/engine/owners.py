"""Owners: which process drives a run. The port, and the one that goes by locks on files of this machine.

Where several hosts share a store, `engine/leases` goes by what the store says instead.
"""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

from agent_orchestrator.core.ids import RunId
from agent_orchestrator.engine.ownership import Ownership, owner_of


class Owned(Protocol):
    """A run that this process has taken up."""

    @property
    def held(self) -> bool:
        """Return True until it is released."""

    @property
    def epoch(self) -> int:
        """Return the number by which a store tells this process from all that drove the run before; 0 where a lock does."""

    def may_act(self) -> bool:
        """Return True if nobody else can have taken the run up: asked right before anything that no store can refuse."""

    def release(self) -> None:
        """Let another process drive the run."""


class Owners(Protocol):
    """Takes runs up for this process."""

    def own(self, run: RunId) -> Owned:
        """Take a run up, so that nobody else drives it; raises RunBusy. There need not be such a run yet."""

    def owner_of(self, run: RunId) -> str | None:
        """Return who drives the run now, or None."""

    def close(self) -> None:
        """Take up nothing more."""


class LockOwners:
    """Owners by locks: whoever holds the lock on the run's file drives it, and death releases it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def own(self, run: RunId) -> Owned:
        """Lock the run's file."""
        return Ownership(self._folder, run)

    def owner_of(self, run: RunId) -> str | None:
        """Return who holds the lock; nothing is created."""
        return owner_of(self._folder, run)

    def close(self) -> None:
        """Do nothing: each lock goes with what was taken up."""
