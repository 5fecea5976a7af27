"""The check that a working tree is still the one it was: git follows whatever its `.git` says, and an agent may write there.

A worktree of ours belongs to the folder of its repository's git directory that was made for it, and that folder to it. A
person's checkout keeps the git directory that this process found it with. What changed is never followed: git is not run.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from agent_orchestrator.errors import GitFailed
from agent_orchestrator.git.repository import common_dir, is_worktree_place, own_dir, top_level


class Checkout(msgspec.Struct, frozen=True):
    """A working tree with its git directory and the one shared by all worktrees of its repository."""

    top: Path
    own: Path
    common: Path
    ours: bool
    """True for a worktree that we made: git need not look for its directory, and does not."""


_met: dict[Path, tuple[Path, Path, tuple[int, int] | None]] = {}


def find_checkout(where: Path, command: str) -> Checkout | None:
    """Return the working tree around a folder, or None outside any repository; raises GitFailed when it is not what it was."""
    where = where if where.is_absolute() else where.absolute()
    folder = _our_folder(where)
    main = find_checkout(folder.parents[2], command) if folder is not None else None
    if folder is not None and main is not None:
        return _check_ours(folder, main, command)
    top = top_level(where)
    own = own_dir(top) if top is not None else None
    common = common_dir(top) if top is not None else None
    if top is None or own is None or common is None:
        return None
    seen = (top, own, _identify(own))
    if _met.setdefault(where, seen) != seen:
        detail = f"the git directory of {where} is not the one it was when orc began to work there, and is not used"
        raise GitFailed(command=command, where=where, detail=detail)
    return Checkout(top, own, common, ours=False)


def _our_folder(where: Path) -> Path | None:
    """Return the worktree of ours that a folder is or lies in: the innermost, where an agent runs orc itself."""
    return next((folder for folder in (where, *where.parents) if is_worktree_place(folder)), None)


def _check_ours(folder: Path, main: Checkout, command: str) -> Checkout:
    dot = folder / ".git"
    own = None if folder.is_symlink() or dot.is_symlink() or not dot.is_file() else own_dir(folder)
    if own is None or not _belongs(own, main.common, dot):
        detail = f"{dot} does not belong to this repository any more, and is not followed: move {folder} away"
        raise GitFailed(command=command, where=folder, detail=detail)
    return Checkout(folder, own, main.common, ours=True)


def _belongs(own: Path, common: Path, dot: Path) -> bool:
    """Return True if a git directory is one of the repository's worktrees, and of this very folder."""
    common = common.resolve()
    try:
        back = Path(own, (own / "gitdir").read_text("utf-8").strip())
        shared = (own / (own / "commondir").read_text("utf-8").strip()).resolve()
        return own.parent == common / "worktrees" and shared == common and back.resolve() == dot.resolve()
    except OSError:
        return False


def _identify(own: Path) -> tuple[int, int] | None:
    try:
        about = own.stat()
    except OSError:
        return None
    return about.st_dev, about.st_ino


def forget_checkouts(folder: Path) -> None:
    """Forget the working trees at and below a folder that we are about to make anew."""
    for where in [one for one in _met if one == folder or one.is_relative_to(folder)]:
        del _met[where]
