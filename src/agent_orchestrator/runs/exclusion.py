"""Hides the files that runs write from git, each system's own and no others, and shows them again when a run is deleted."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from agent_orchestrator import typed
from agent_orchestrator.core.files import Patterns
from agent_orchestrator.git.exclude import exclude, has_old_lines, include_again
from agent_orchestrator.git.repository import WORKTREES
from agent_orchestrator.runs.hooks import hooks_of
from agent_orchestrator.store.port import Which
from agent_orchestrator.systems import find_system

if TYPE_CHECKING:
    from agent_orchestrator.runs.orchestrator import Orchestrator
    from agent_orchestrator.store.port import StoredRun


def hide_files(orchestrator: Orchestrator, run: StoredRun | None = None) -> None:
    """Hides what a run writes; lines of older versions, which hid whole folders, are taken back first."""
    home = orchestrator.settings.home
    if has_old_lines(home):
        known = orchestrator.runs()
        for place in dict.fromkeys([str(home), *(one.context.home for one in known)]):
            files = [pattern for one in known if one.context.home == place for pattern in files_of(orchestrator, one)]
            if Path(place).is_dir():
                systems = {one.system: None for one in known if one.context.home == place}
                beside = [path for system in systems for path in hooks_of(system).hidden_files(Path(place))]
                exclude(Path(place), [f"{WORKTREES}/", *beside, *files])
    if run is not None and orchestrator.prints:
        exclude(Path(run.context.home), files_of(orchestrator, run))


def show_files(orchestrator: Orchestrator, run: StoredRun) -> None:
    """Takes the lines of a deleted run back, but for those that files which stay, or unfinished runs, need."""
    home = Path(run.context.home)
    others = [one for one in orchestrator.runs(Which(ended=False)) if one.id != run.id]
    needed = {line for one in others if one.context.home == run.context.home for line in files_of(orchestrator, one)}
    mine = [line for line in files_of(orchestrator, run) if line not in needed]
    standing = find_standing(home, mine)
    include_again(home, [line for line in mine if line not in standing])


def find_standing(home: Path, patterns: Sequence[str]) -> set[str]:
    """Return those of the patterns that name something which is there: each folder is looked into once, however many they are."""
    known, standing = Patterns(patterns), set[str]()
    for folder in dict.fromkeys(pattern.rstrip("/").rpartition("/")[0] for pattern in patterns):
        with contextlib.suppress(FileNotFoundError, NotADirectoryError), os.scandir(home / folder) as entries:
            for entry in entries:
                path = f"{folder}/{entry.name}" if folder else entry.name
                standing.update(known.naming(path))
                if entry.is_dir():
                    standing.update(known.naming(f"{path}/"))
    return standing


def files_of(orchestrator: Orchestrator, run: StoredRun) -> list[str]:
    """List the files that a run writes below its home."""
    system = find_system(run.system)
    return list(system.files(typed.decode(orchestrator.store.spec(run.id), system.spec_type), run.context.run))
