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
from agent_orchestrator.git.command import git, list_names
from agent_orchestrator.git.ownership import list_new
from agent_orchestrator.git.repository import top_level
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

    def keep(self, folder: Path, scratch: Path, run: RunId, tree: Tree | None) -> KeptTree | None:
        """Keep a tree; None when it is as it was when this process last looked, or in no repository. Raise for a shortage."""
        top = top_level(folder)
        if top is None:
            return None
        try:
            look, new = _look(top)
            if self._seen.get(top) == look:
                return None
            commit = _save(folder, scratch, run, look, new)
        except (OrcError, OSError) as error:
            self._seen.pop(top, None)
            if is_shortage(error):
                raise
            return KeptTree(tree=tree, problem=str(error).rstrip("."))
        self._seen[top] = look
        return KeptTree(commit=commit, head=look.head, branch=look.branch, tree=tree)


def may_keep(folder: Path) -> bool:
    """Say whether there may be a tree to keep: the folder is in a repository, or nobody can tell, which `keep` meets again."""
    try:
        return top_level(folder) is not None
    except OSError:
        return True


def tree_ref(run: str, commit: str) -> str:
    """Return the ref that keeps a tree of a run."""
    return f"refs/orc/{run}/@trees/{commit[:NAME_CHARS]}"


def _look(top: Path) -> tuple[_Look, list[str]]:
    """Look at what is checked out and at every file that differs from it; return the new ones, too.

    A file's content is known by its time and size.
    """
    head = branch = ""
    digest = hashlib.sha256()
    for entry in list_names(top, *STATUS):
        if entry.startswith("# branch.oid "):
            head = entry[13:] if entry[13:] != "(initial)" else ""
        elif entry.startswith("# branch.head "):
            branch = entry[14:] if entry[14:] != "(detached)" else ""
        digest.update(os.fsencode(entry))
        if not entry.startswith("#"):
            # The path is the last field, and may have blanks: 8 fields before it for `1`, 10 for `u`.
            digest.update(_mark(top / entry.split(" ", 10 if entry.startswith("u") else 8)[-1]))
    new = list_new(top)
    for name in new:  # Not from `git status`: that compares every file with every line of ours in its rules.
        digest.update(b"? " + os.fsencode(name))
        digest.update(_mark(top / name))
    return _Look(head, branch, digest.hexdigest()), new


def _mark(file: Path) -> bytes:
    try:
        found = file.lstat()
    except OSError:
        return b"-"
    return f"{found.st_mtime_ns} {found.st_ctime_ns} {found.st_size} {found.st_ino} {found.st_mode}".encode()


def _save(folder: Path, scratch: Path, run: RunId, look: _Look, new: list[str]) -> str:
    """Write the tree and return the commit of it; made again of the same tree, it is the same commit."""
    tree, commit, at_us = write_tree(folder, scratch, new), "", 0
    if look.head:
        its_tree, date = git(folder, "log", "-1", "--format=%T %ct", look.head).split()
        commit, at_us = look.head if its_tree == tree else "", int(date) * US
    if not commit:
        parents = (look.head,) if look.head else ()
        commit = commit_trees(folder, tree, parents, f"{run}: the tree as it was\n\nOrc-Run: {run}\n", at_us, internal=True)
    git(folder, "update-ref", tree_ref(run, commit), commit)
    return commit
