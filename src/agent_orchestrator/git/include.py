"""Copies untracked files into a worktree: those that match `.worktreeinclude`, written like `.gitignore`.

A worktree has only what is committed; `.env` and the like are what agents then miss. Nothing is overwritten, and what was
copied is left out of the commits that are made for agents.
"""

from __future__ import annotations

import contextlib
import shutil
from pathlib import Path

from agent_orchestrator.git.exclude import patterns_of
from agent_orchestrator.git.run import list_names

FILE = ".worktreeinclude"


def include(repo: Path, folder: Path) -> None:
    """Copies what is missing; links are copied as links. Raises GitFailed."""
    for name in included(repo, repo):
        source, target = repo / name, folder / name
        if target.exists() or target.is_symlink():
            continue
        # A file that went away since it was listed is simply not there.
        with contextlib.suppress(FileNotFoundError):
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, target, follow_symlinks=False)


def included(repo: Path, folder: Path) -> list[str]:
    """The untracked files of a worktree that match the repository's `.worktreeinclude`."""
    patterns = repo / FILE
    if not patterns.is_file():
        return []
    listed = list_names(folder, "ls-files", "-z", "--others", "--ignored", f"--exclude-from={patterns}")
    ours = patterns_of(folder)
    # What is ours is never copied, whatever a pattern says: a worktree inside a worktree has no end.
    return [name for name in listed if not name.endswith("/") and not ours.match(name)]
