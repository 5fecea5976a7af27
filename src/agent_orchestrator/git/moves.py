"""The move of a branch that is checked out somewhere: the branch first, by its old value, then the files, and both restartable.

What is to be done is written down before. Whoever comes after a kill finds in the checkout, file by file, the old content, the
new one, none, or the beginning of the new one, and finishes the move; or something that nobody but its owner can have
written: then the move is undone, and that file left as it is. Nothing is ever forced, stashed or deleted.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Container, Sequence
from enum import Enum, auto
from pathlib import Path

import msgspec

from agent_orchestrator import typed
from agent_orchestrator.beneath import LinkInTheWay, open_folder
from agent_orchestrator.bounded import TooLarge, read_bounded
from agent_orchestrator.errors import GitFailed
from agent_orchestrator.git.command import HeldLock, ask_git, find_intent, git, give_names, hold_lock, list_names, read_bytes
from agent_orchestrator.git.leftovers import is_begun

LOCK = "landing"
LINK, REPOSITORY, NONE = "120000", "160000", "000000"
FILES = ("100644", "100755")


class CheckoutMove(msgspec.Struct, frozen=True, kw_only=True):
    """The intent: a checkout, its branch, and the commits that it is moved between."""

    checkout: str
    branch: str
    old: str
    new: str


class FileMove(msgspec.Struct, frozen=True):
    """A file that differs between the two commits: its mode and blob in each."""

    path: str
    old_mode: str
    old_blob: str
    new_mode: str
    new_blob: str

    def entry(self, *, new: bool) -> str:
        """Return the file as a line for `update-index --index-info`."""
        mode, blob = (self.new_mode, self.new_blob) if new else (self.old_mode, self.old_blob)
        return f"{'0' if mode == NONE else mode} {blob}\t{self.path}"


class FileStanding(Enum):
    """The state of a file in the checkout."""

    OLD = auto()
    NEW = auto()
    BEGUN = auto()
    """Gone, or written in part: git was killed over it."""
    EDITED = auto()


def move_checkout(checkout: Path, branch: str, old: str, new: str, message: str) -> None:
    """Move a branch and the checkout that is on it; raises GitFailed when something is in the way, and nothing moved then."""
    with hold_lock(checkout, LOCK) as held:
        _settle(held)
        landing = CheckoutMove(checkout=str(checkout), branch=branch, old=old, new=new)
        held.intend(msgspec.json.encode(landing))
        git(checkout, "update-ref", "-m", message, f"refs/heads/{branch}", new, old)
        try:
            git(checkout, "read-tree", "-m", "-u", old, new)
        except GitFailed:
            if not _finish_or_undo(landing):
                raise


def settle_landing(repo: Path) -> None:
    """Finish or undo a move that was killed; raises GitFailed."""
    if find_intent(repo, LOCK):
        with hold_lock(repo, LOCK) as held:
            _settle(held)


def _settle(held: HeldLock) -> None:
    if held.left is not None:
        _finish_or_undo(typed.decode(held.left, CheckoutMove))
        held.settle()


def _finish_or_undo(landing: CheckoutMove) -> bool:
    """Bring a checkout to one of the two commits; True if it is the new one.

    Where the branch is at neither, or is not checked out there any more, somebody went on from what he found.
    """
    checkout = Path(landing.checkout)
    ref = f"refs/heads/{landing.branch}"
    if not checkout.is_dir() or ask_git(checkout, "symbolic-ref", "--quiet", "HEAD", answers=(0, 1))[1] != ref:
        return False
    if ask_git(checkout, "rev-parse", "--verify", "--quiet", ref, answers=(0, 1))[1] != landing.new:
        return False
    changes = _list_changes(checkout, landing)
    links = {change.path for change in changes if LINK in (change.old_mode, change.new_mode)}
    found = {change.path: _stand(checkout, change, links) for change in changes}
    indexed = _list_indexed(checkout)
    edited = [
        change.path
        for change in changes
        if found[change.path] is FileStanding.EDITED and indexed.get(change.path, (NONE, "")) != _as_indexed(change)
    ]
    if edited:
        _write(checkout, [one for one in changes if found[one.path] in (FileStanding.NEW, FileStanding.BEGUN)], new=False)
        git(checkout, "update-ref", "-m", "undo", ref, landing.old, landing.new)
        return False
    _write(checkout, [one for one in changes if found[one.path] is not FileStanding.EDITED], new=True)
    return True


def _as_indexed(change: FileMove) -> tuple[str, str]:
    return (NONE, "") if change.new_mode == NONE else (change.new_mode, change.new_blob)


def _index(checkout: Path, changes: Sequence[FileMove], *, new: bool) -> None:
    if changes:
        give_names(checkout, "update-index", "-z", "--index-info", names=[one.entry(new=new) for one in changes])


def _write(checkout: Path, changes: Sequence[FileMove], *, new: bool) -> None:
    """Write files and their entries in the index as one of the commits has them."""
    _index(checkout, changes, new=new)
    modes = {one.path: one.new_mode if new else one.old_mode for one in changes}
    for path in (path for path, mode in modes.items() if mode == NONE):
        _delete(checkout, checkout / path)
    # Git would delete a folder that stands in the place of a file, with whatever is in it.
    there = [path for path, mode in modes.items() if mode not in (NONE, REPOSITORY) and not _is_folder(checkout / path)]
    if there:
        give_names(checkout, "checkout-index", "--force", "-u", "-z", "--stdin", names=there)


def _delete(checkout: Path, file: Path) -> None:
    """Delete a file, and the folders that are empty then, as git does."""
    with contextlib.suppress(OSError):
        with open_folder(checkout, file.parent) as folder, contextlib.suppress(FileNotFoundError):
            os.unlink(file.name, dir_fd=folder)
        for around in file.relative_to(checkout).parents[:-1]:
            with open_folder(checkout, checkout / around.parent) as folder:
                os.rmdir(around.name, dir_fd=folder)


def _list_changes(checkout: Path, landing: CheckoutMove) -> list[FileMove]:
    fields = list_names(checkout, "diff-tree", "-r", "-z", "--raw", "--no-renames", landing.old, landing.new)
    changes = []
    for about, path in zip(fields[::2], fields[1::2], strict=True):
        old_mode, new_mode, old_blob, new_blob, _ = about.removeprefix(":").split()
        changes.append(FileMove(path, old_mode, old_blob, new_mode, new_blob))
    return changes


def _list_indexed(checkout: Path) -> dict[str, tuple[str, str]]:
    entries = {}
    for line in list_names(checkout, "ls-files", "--stage", "-z"):
        about, _, path = line.partition("\t")
        mode, blob, _ = about.split(" ")
        entries[path] = (mode, blob)
    return entries


def _is_folder(file: Path) -> bool:
    """Return True if there is a folder with something in it."""
    return file.is_dir() and not file.is_symlink() and any(file.iterdir())


def _stand(checkout: Path, change: FileMove, links: Container[str]) -> FileStanding:
    """Tell what became of a file; `links` are those that the move makes or removes."""
    file = checkout / change.path
    if REPOSITORY in (change.old_mode, change.new_mode):
        return FileStanding.NEW  # A repository inside this one is never touched.
    link = _find_link(checkout, file)
    if link is not None and link not in links:
        return FileStanding.EDITED  # Somebody put it there, and what lies behind it is no file of this checkout.
    if link is not None or not os.path.lexists(file) or (file.is_dir() and not file.is_symlink() and not _is_folder(file)):
        return FileStanding.OLD if change.old_mode == NONE else FileStanding.BEGUN
    if not file.is_symlink() and not file.is_file():
        return FileStanding.NEW if change.new_mode == NONE and file.is_dir() else FileStanding.EDITED
    kinds = (LINK,) if file.is_symlink() else FILES
    new, old = (
        _content(checkout, change.path, mode, blob) if mode in kinds else None
        for mode, blob in ((change.new_mode, change.new_blob), (change.old_mode, change.old_blob))
    )
    try:
        most = max(len(content) for content in (new or b"", old or b""))
        found = os.fsencode(file.readlink()) if file.is_symlink() else read_bounded(file, most, root=checkout)
    except TooLarge:
        return FileStanding.EDITED
    if found == new == old:
        runs = bool(file.lstat().st_mode & 0o100)
        return FileStanding.NEW if runs == (change.new_mode == FILES[1]) else FileStanding.OLD
    if found in (new, old):
        return FileStanding.NEW if found == new else FileStanding.OLD
    return FileStanding.BEGUN if new is not None and is_begun(found, new) else FileStanding.EDITED


def _find_link(checkout: Path, file: Path) -> str | None:
    """Return the link on the way to a file, as git names it."""
    try:
        with open_folder(checkout, file.parent):
            return None
    except LinkInTheWay as error:
        return Path(error.filename).relative_to(checkout).as_posix()
    except OSError:
        return None


def _content(checkout: Path, path: str, mode: str, blob: str) -> bytes:
    """Return a file as git would write it there."""
    if mode == LINK:
        return read_bytes(checkout, "cat-file", "blob", blob)
    return read_bytes(checkout, "cat-file", "--filters", f"--path={path}", blob)
