"""Takes over state files that have no journal here: written by another tool, by an earlier life, on another machine.

Sloppy files are read as far as they can be, and everything that had to be changed is said. Whatever is taken over stands
still until it is resumed. How a system reads its files is in its hooks.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from agent_orchestrator.core.foreign.account import FieldAccount
from agent_orchestrator.errors import MissingPath, UsageError
from agent_orchestrator.runs.choices import AgentOptions
from agent_orchestrator.runs.hooks import hooks_of
from agent_orchestrator.runs.orchestrator import Orchestrator
from agent_orchestrator.store.port import StoredRun
from agent_orchestrator.systems import SYSTEMS, about


class ImportOptions(AgentOptions, frozen=True, kw_only=True):
    """The options that say what a state file does not, as given: None means not given."""

    workflow: str | None = None
    document: str | None = None
    into: str | None = None
    check: str | None = None
    no_check: bool = False
    allow_unmetered: bool = False

    def only(self, kind: type[Any]) -> dict[str, Any]:
        """Return those that the options of a system have too."""
        return {name: getattr(self, name) for name in self.__struct_fields__ if name in kind.__struct_fields__}


class TakenOver(msgspec.Struct, frozen=True, kw_only=True):
    """The runs that files became, and what was taken as it is, changed on the way, and left out."""

    runs: tuple[StoredRun, ...]
    notes: tuple[str, ...]
    taken: tuple[str, ...] = ()
    left: tuple[str, ...] = ()

    @classmethod
    def told(
        cls, runs: tuple[StoredRun, ...], account: FieldAccount, before: tuple[str, ...] = (), after: tuple[str, ...] = ()
    ) -> TakenOver:
        """Return the runs with the account of their files, and what else changed."""
        notes = (*before, *account.lines("changed"), *after)
        return cls(runs=runs, notes=notes, taken=account.lines("taken"), left=account.lines("left"))


def take_over(orchestrator: Orchestrator, path: Path, options: ImportOptions) -> TakenOver:
    """Make a run of a state file, or of the folder it lies in; raise a UsageError for a file that no system knows."""
    # Backwards: the first system takes what the others do not know.
    for system in reversed(SYSTEMS):
        hooks = hooks_of(system)
        if (file := hooks.find_state(path, about(system).importable)) is not None:
            return hooks.import_state(orchestrator, file, options)
    known = ", ".join(name for system in SYSTEMS for name in about(system).importable)
    if path.is_dir():
        raise UsageError(detail=f"There is no state file in {path}; known are {known}.")
    if not path.exists():
        raise MissingPath(what="The state file", path=path)
    raise UsageError(detail=f"{path} is no state file that can be taken over; known are {known}.")
