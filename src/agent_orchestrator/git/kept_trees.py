"""Keeps the working trees of a run as it goes, each under a ref of ours, so that it can go back to them.

Looking is a `git status`, the list of new files that are work, and a look at each file of both: only a tree that changed
since is written, and one without uncommitted work is its own commit.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import msgspec

from agent_orchestrator.core.effects import KeptTree, Tree
from agent_orchestrator.core.ids import RunId
from agent_orchestrator.core.units import US
from agent_orchestrator.errors import OrcError, is_shortage
from agent_orchestrator.git.checkouts import find_checkout
from agent_orchestrator.git.command import git, list_names
from agent_orchestrator.git.ownership import TreeWork, list_new
from agent_orchestrator.git.repository import top_level
from agent_orchestrator.git.settings import mark_file
from agent_orchestrator.git.snapshots import commit_trees, write_tree

STATUS = ("status", "--porcelain=v2", "--branch", "--untracked-files=no", "--no-renames", "-z")
NAME_CHARS = 20


class _Look(msgspec.Struct, frozen=True):
    """A working tree at a glance."""

    head: str
    branch: str
    digest: str


class TreeKeeper:
    """The trees that one process has kept, so that one which did not change is not kept again."""

    def __init__(self) -> None:
        self._seen: dict[Path, _Look] = {}
        self._heads: dict[str, tuple[str, int]] = {}
        """The tree and the date of the commit that was asked about last."""

    def keep(self, folder: Path, scratch: Path, run: RunId, tree: Tree | None) -> KeptTree | None:
        """Keep a tree; None when it is as it was when this process last looked, or in no repository. Raise for a shortage."""
        top = top_level(folder)
        if top is None:
            return None
        try:
            look, work = _look(top)
            if self._seen.get(top) == look:
                return None
            commit = self._save(folder, scratch, run, look, work)
        except (OrcError, OSError) as error:
            self._seen.pop(top, None)
            if is_shortage(error):
                raise
            return KeptTree(tree=tree, problem=str(error).rstrip("."))
        self._seen[top] = look
        return KeptTree(commit=commit, head=look.head, branch=look.branch, tree=tree)

    def _save(self, folder: Path, scratch: Path, run: RunId, look: _Look, work: TreeWork) -> str:
        """Write the tree and return the commit of it; made again of the same tree, it is the same commit."""
        tree, commit, at_us = write_tree(folder, scratch, work), "", 0
        if look.head:
            if look.head not in self._heads:
                its_tree, date = git(folder, "log", "-1", "--format=%T %ct", look.head).split()
                self._heads = {look.head: (its_tree, int(date) * US)}
            its_tree, at_us = self._heads[look.head]
            commit = look.head if its_tree == tree else ""
        if not commit:
            parents = (look.head,) if look.head else ()
            commit = commit_trees(folder, tree, parents, f"{run}: the tree as it was\n\nOrc-Run: {run}\n", at_us, internal=True)
        git(folder, "update-ref", tree_ref(run, commit), commit)
        return commit


def may_keep(folder: Path) -> bool:
    """Say whether there may be a tree to keep: the folder is in a repository, or nobody can tell, which `keep` meets again."""
    try:
        return top_level(folder) is not None
    except OSError:
        return True


def tree_ref(run: str, commit: str) -> str:
    """Return the ref that keeps a tree of a run."""
    return f"refs/orc/{run}/@trees/{commit[:NAME_CHARS]}"


def _look(top: Path) -> tuple[_Look, TreeWork]:
    """Look at what is checked out and at every file that differs from it; return what differs from the index, too.

    A file's content is known by its time and size.
    """
    head = branch = ""
    digest = hashlib.sha256()
    checkout = find_checkout(top, "status")
    index = mark_file(checkout.own / "index") if checkout is not None else None
    gone: list[str] = []
    changed: list[str] = []
    for entry in list_names(top, *STATUS):
        if entry.startswith("# branch.oid "):
            head = entry[13:] if entry[13:] != "(initial)" else ""
        elif entry.startswith("# branch.head "):
            branch = entry[14:] if entry[14:] != "(detached)" else ""
        digest.update(os.fsencode(entry))
        if not entry.startswith("#"):
            # The path is the last field, and may have blanks: 8 fields before it for `1`, 10 for `u`.
            name = entry.split(" ", 10 if entry.startswith("u") else 8)[-1]
            mark = _mark(top / name)
            digest.update(mark)
            kind, differs = entry[0], entry[3]  # `1 XY` or `u XY`: how a file differs from the index is the second letter.
            if kind == "u" or differs != ".":
                # What git says is gone may stand there all the same, behind a link that is new.
                (gone if mark == _MISSING or (kind, differs) == ("1", "D") else changed).append(name)
    new = list_new(top)
    for name in new:  # Not from `git status`: that compares every file with every line of ours in its rules.
        digest.update(b"? " + os.fsencode(name))
        digest.update(_mark(top / name))
    return _Look(head, branch, digest.hexdigest()), TreeWork(gone, changed, new, index)


_MISSING = b"-"


def _mark(file: Path) -> bytes:
    try:
        found = file.lstat()
    except OSError:
        return _MISSING
    return f"{found.st_mtime_ns} {found.st_ctime_ns} {found.st_size} {found.st_ino} {found.st_mode}".encode()
