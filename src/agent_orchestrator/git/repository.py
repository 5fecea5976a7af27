"""The directories of a repository, found by reading files, without starting git: every command needs them at once."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

WORKTREES = ".agents/worktrees"
"""The folder of the worktrees that we make, below the folder that a run belongs to."""


def top_level(start: Path) -> Path | None:
    """Return the working tree that contains `start`, or None outside any repository.

    A worktree of ours that lost its `.git` is none: the repository around it would be taken for it.
    """
    in_worktree = WORKTREES in str(start)
    for folder in (start, *start.parents):
        if _is_repository(f"{folder}/.git"):
            return folder
        if in_worktree and is_worktree_place(folder):
            return None
    return None


def is_worktree_place(folder: Path) -> bool:
    """Return True if a folder is where we make worktrees."""
    return folder.parts[-3:-1] == tuple(WORKTREES.split("/"))


def host_of(folder: Path) -> Path:
    """Return the folder that a worktree of ours was made for, there or not; any other folder itself."""
    return folder.parents[2] if is_worktree_place(folder) else folder


def _is_repository(dot: str) -> bool:
    """Return True if git would take it for one: sandboxes leave empty folders of that name behind.

    Where there is none, it is asked of each folder up to the root, whenever an agent ends.
    """
    try:
        found = os.stat(dot)  # noqa: PTH116 - a Path would cost more than all the rest
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.ENOTDIR, errno.ELOOP):
            return False
        raise
    head = Path(dot, "HEAD")
    return stat.S_ISREG(found.st_mode) or head.is_symlink() or head.is_file()


def own_dir(top: Path) -> Path | None:
    """Return the git directory of the working tree at `top`: a linked worktree has one of its own."""
    dot = top / ".git"
    if dot.is_dir():
        return dot
    try:
        line = dot.read_text("utf-8").strip()
    except OSError:
        return None
    return (top / line.removeprefix("gitdir:").strip()).resolve() if line.startswith("gitdir:") else None


def common_dir(top: Path) -> Path | None:
    """Return the git directory shared by all worktrees of the repository at `top`."""
    own = own_dir(top)
    if own is None or own == top / ".git":
        return own
    try:
        pointer = own / "commondir"
        return (own / pointer.read_text("utf-8").strip()).resolve() if pointer.exists() else own
    except OSError:
        return None


def store_folder(home: Path) -> Path:
    """Return the folder of a repository's store, locks and launches: out of reach of `git clean`.

    Without git there is nothing that cleans, and `.agents/orc` is used.
    """
    top = top_level(home)
    common = common_dir(top) if top else None
    return (common or home / ".agents") / "orc"


def repository_folder(common: Path) -> Path:
    """Return the folder that people call the repository, given the git directory of all its worktrees."""
    return common.parent if common.name == ".git" else common


def checkout_of(folder: str) -> str:
    """Return the checkout around a folder; the folder itself outside any repository."""
    return str((top_level(Path(folder)) or Path(folder)).resolve())
