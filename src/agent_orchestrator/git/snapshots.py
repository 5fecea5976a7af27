"""Snapshots of working trees, kept as commits under refs of our own: made, compared, and restored.

A snapshot is made with a temporary index and `commit-tree`, its date given: repeated, it is the same commit. Nothing of
the user's index, branch or files is touched but by `restore`, which saves what is there first.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

import msgspec

from agent_orchestrator import typed
from agent_orchestrator.bounded import read_bounded
from agent_orchestrator.core.limits import OUTPUT_LIMIT_BYTES
from agent_orchestrator.core.units import US
from agent_orchestrator.errors import GitFailed
from agent_orchestrator.git.checkouts import find_checkout
from agent_orchestrator.git.command import ask_git, find_setting, git, hold_lock, list_names, read_bytes
from agent_orchestrator.git.environment import current_environment
from agent_orchestrator.git.leftovers import forget_index, is_begun, make_scratch
from agent_orchestrator.git.ownership import (
    TreeWork,
    drop_from_index,
    index_commit,
    list_uncommitted,
    list_untouched,
    stage_work,
    take_from_tree,
)
from agent_orchestrator.git.repository import own_dir, top_level
from agent_orchestrator.git.settings import mark_file

WHO = {
    "GIT_AUTHOR_NAME": "agent-orchestrator",
    "GIT_AUTHOR_EMAIL": "orc@localhost",
    "GIT_COMMITTER_NAME": "agent-orchestrator",
    "GIT_COMMITTER_EMAIL": "orc@localhost",
}
_NAMED_BY = ("GIT_AUTHOR_", "GIT_COMMITTER_")
_ON, _OFF = ("true", "yes", "on", "1"), ("false", "no", "off", "0")
ONCE_LEFT_OUT = (".agents", ".aiwg", "coordination", "state", ".claude")
"""The folders in which snapshots of older versions lack files, also some that the repository tracks."""


class SavedTree(msgspec.Struct, frozen=True, kw_only=True):
    """A tree under a ref."""

    commit: str
    tree: str
    head: str | None


class Backup(msgspec.Struct, frozen=True):
    """The commit that keeps a tree before it is changed: its ref, message and date."""

    ref: str
    message: str
    at_us: int


def save_snapshot(workdir: Path, scratch: Path, ref: str, message: str, at_us: int) -> SavedTree:
    """Save the working tree, untracked files included, as a commit under `ref`; raises GitFailed."""
    head = find_head(workdir)
    known = find_commit(workdir, ref)
    if known is not None and git(workdir, "log", "-1", "--format=%B", known).strip() == message.strip():
        return SavedTree(commit=known, tree=git(workdir, "rev-parse", f"{known}^{{tree}}"), head=head)
    tree = write_tree(workdir, scratch)
    commit = commit_trees(workdir, tree, (head,) if head else (), message, at_us, internal=True)
    git(workdir, "update-ref", ref, commit)
    return SavedTree(commit=commit, tree=tree, head=head)


def write_tree(workdir: Path, scratch: Path, work: TreeWork | None = None) -> str:
    """Write everything that is neither ignored nor ours as a tree into the repository's object store.

    `work` is what differs from the index, for whoever has just looked.
    """
    with _work_index(workdir, scratch, work) as env:
        return git(workdir, "write-tree", env=env)


def identify_tree(workdir: Path, scratch: Path) -> str | None:
    """Identify the working tree by the tree of everything in it that is neither ignored nor ours; None outside a repository.

    Neither the index nor the object store of the repository is touched. Raises GitFailed: a tree that nobody could look at is
    evidence of nothing.
    """
    checkout = find_checkout(workdir, "write-tree")
    if checkout is None:
        return None
    index, objects = scratch / "index", scratch / "objects"
    make_scratch(objects)
    try:
        env = {"GIT_OBJECT_DIRECTORY": str(objects), "GIT_ALTERNATE_OBJECT_DIRECTORIES": str(checkout.common / "objects")}
        return git(workdir, "write-tree", env=_stage(workdir, index, env))
    finally:
        forget_index(index)
        shutil.rmtree(objects, ignore_errors=True)


def find_snapshot(workdir: Path, commit: str) -> SavedTree:
    """Find a snapshot that was made before."""
    return SavedTree(commit=commit, tree=git(workdir, "rev-parse", f"{commit}^{{tree}}"), head=find_head(workdir))


def commit_on_branch(workdir: Path, scratch: Path, tree: str, message: str, at_us: int, *, empty: bool = False) -> str | None:
    """Commit a tree on the current branch; None when nothing changed. Repeated, it finds its own commit.

    Files of ours that somebody tracks stay on the branch as they are: neither changed nor deleted.
    """
    head = find_head(workdir)
    if head is not None and git(workdir, "log", "-1", "--format=%B", head).strip() == message.strip():
        _follow(workdir)
        return head
    top = top_level(workdir) or workdir
    if head is not None and (ours := list_untouched(top)):
        with _index_of(workdir, scratch, tree) as env:
            drop_from_index(top, ours, env)
            take_from_tree(top, head, ours, env)
            tree = git(workdir, "write-tree", env=env)
    if not empty and head is not None and git(workdir, "rev-parse", f"{head}^{{tree}}") == tree:
        return None
    merging = find_unfinished_merge(workdir).other
    parents = tuple(one for one in (head, merging) if one is not None)
    commit = commit_trees(workdir, tree, parents, message, at_us)
    git(workdir, "update-ref", "-m", message.splitlines()[0], "HEAD", commit, head or "0" * 40)
    _follow(workdir)
    return commit


def _follow(workdir: Path) -> None:
    """Bring index and merge state up to a commit that was made beside them: the next commit would undo it else."""
    index_commit(workdir, "HEAD")
    own = own_dir(top_level(workdir) or workdir)
    if own is not None and any((own / name).exists() for name in ("MERGE_HEAD", "MERGE_MODE", "AUTO_MERGE")):
        git(workdir, "merge", "--quit")


class UnfinishedMerge(msgspec.Struct, frozen=True):
    """A merge that somebody began and did not commit: the other side, and the files that still have conflict markers."""

    other: str | None = None
    unresolved: tuple[str, ...] = ()


def find_unfinished_merge(workdir: Path) -> UnfinishedMerge:
    """Return the merge that is under way in a working tree, if one is."""
    other = find_commit(workdir, "MERGE_HEAD")
    if other is None:
        return UnfinishedMerge()
    return UnfinishedMerge(other, tuple(path for path in list_unmerged(workdir) if _has_markers(workdir, workdir / path)))


def list_unmerged(workdir: Path) -> list[str]:
    """Return files that a merge left to be resolved."""
    entries = list_names(workdir, "ls-files", "--unmerged", "-z")
    return list(dict.fromkeys(entry.partition("\t")[2] for entry in entries))


def _has_markers(workdir: Path, file: Path) -> bool:
    try:
        return any(line.startswith(b"<<<<<<< ") for line in read_bounded(file, OUTPUT_LIMIT_BYTES, root=workdir).splitlines())
    except OSError:
        return False


def commit_trees(workdir: Path, tree: str, parents: tuple[str, ...], message: str, at_us: int, *, internal: bool = False) -> str:
    """Make a commit that no branch has yet; made again of the same things, it is the same one unless it is signed.

    It is by the person whom his git configuration names, and signed where that says so, as his own commits would be. An
    `internal` one, which no branch ever has, is by us and never signed.
    """
    date = f"@{at_us // US} +0000"
    env = {**(WHO if internal or not _is_named(workdir) else {}), "GIT_AUTHOR_DATE": date, "GIT_COMMITTER_DATE": date}
    sign = ("-S",) if not internal and is_set(workdir, "commit.gpgSign") else ()
    how = ("commit-tree", *sign, tree, *(word for one in parents for word in ("-p", one)), "-m", message)
    try:
        return git(workdir, *how, env=env)
    except GitFailed as error:
        if not sign:
            raise
        detail = f"the commit could not be signed, as commit.gpgSign says ({error}); unlock the key or set it to false"
        raise GitFailed(command="commit-tree", where=workdir, detail=detail) from None


def _is_named(workdir: Path) -> bool:
    """Return True if a person's name and address are configured: git would guess them else."""
    variables = current_environment().variables
    given = {what: find_setting(workdir, f"user.{what}") or "" for what in ("name", "email")}
    if all(re.search(r"\w", value) for value in given.values()) and not any(name.startswith(_NAMED_BY) for name in variables):
        return True  # Asked of git only where something else may outrank it.
    return all(ask_git(workdir, "var", f"GIT_{who}_IDENT", answers=(0, 128))[0] == 0 for who in ("AUTHOR", "COMMITTER"))


def is_set(workdir: Path, key: str) -> bool:
    """Return True if git's configuration switches something on."""
    said = find_setting(workdir, key.lower())
    if said is None or said.lower() in _OFF:
        return False
    # What it means in any other spelling, a number or nothing at all, is for git to say.
    return said.lower() in _ON or ask_git(workdir, "config", "--type=bool", "--get", key, answers=(0, 1))[1] == "true"


def begin_history(home: Path, at_us: int) -> bool:
    """Make an empty first commit where a repository has neither commits nor files; return True if it was needed.

    With files, somebody has to say which of them belong to it.
    """
    if top_level(home) is None or find_head(home) is not None or git(home, "status", "--porcelain", "--untracked-files=all"):
        return False
    tree = git(home, "hash-object", "-w", "-t", "tree", os.devnull)
    git(home, "update-ref", "HEAD", commit_trees(home, tree, (), "Begin", at_us))
    return True


@contextmanager
def _work_index(workdir: Path, scratch: Path, work: TreeWork | None = None) -> Iterator[dict[str, str]]:
    """Make an index of the working tree, as the environment of git commands that read it."""
    make_scratch(scratch)
    index = scratch / "snapshot-index"
    try:
        yield _stage(workdir, index, {}, work)
    finally:
        forget_index(index)


def _stage(workdir: Path, index: Path, env: Mapping[str, str], work: TreeWork | None = None) -> dict[str, str]:
    """Fill an index of its own with the working tree, beginning with a copy of the real one; return its environment."""
    forget_index(index)
    checkout = find_checkout(workdir, "update-index")
    mark = None
    if checkout is not None:
        real = checkout.own / "index"
        before = mark_file(real)
        with suppress(FileNotFoundError):
            shutil.copy2(real, index)  # With its time: git takes what changed in the same instant for changed.
        mark = before if mark_file(real) == before else None
    env = {**env, "GIT_INDEX_FILE": str(index)}
    stage_work(workdir, env, work, mark)
    return env


@contextmanager
def _index_of(workdir: Path, scratch: Path, tree: str) -> Iterator[dict[str, str]]:
    """Make an index that holds a tree, as the environment of git commands that change it."""
    index = scratch / "changed-index"
    make_scratch(scratch)
    env = {"GIT_INDEX_FILE": str(index)}
    forget_index(index)
    try:
        git(workdir, "read-tree", tree, env=env)
        yield env
    finally:
        forget_index(index)


def find_head(workdir: Path) -> str | None:
    """Return the current commit, or None in a repository without one."""
    return find_commit(workdir, "HEAD")


def find_commit(workdir: Path, name: str) -> str | None:
    """Return the commit behind a name, or None."""
    code, said = ask_git(workdir, "rev-parse", "--verify", "--quiet", f"{name}^{{commit}}", answers=(0, 1, 128))
    return said if code == 0 else None


class Restoring(msgspec.Struct, frozen=True, kw_only=True):
    """The intent of a restoration: the ref that keeps the former tree, and the trees that the files are moved between."""

    ref: str
    target: str
    now: str
    wanted: str


def restore_snapshot(workdir: Path, scratch: Path, target: str, backup: Backup) -> str:
    """Make the working tree what it was in commit `target`; return the ref that keeps the former tree.

    Files of ours are left alone, tracked or not. Repeated after a kill, it goes on, and what was half written is not taken for
    the former tree.
    """
    with hold_lock(workdir, f"restoring~{workdir.name}") as held, _work_index(workdir, scratch) as env:
        top = top_level(workdir) or workdir
        tree = git(workdir, "write-tree", env=env)
        drop_from_index(top, list_untouched(top, env), env)
        now = git(workdir, "write-tree", env=env)
        with _index_of(workdir, scratch, f"{target}^{{tree}}") as wanted_env:
            drop_from_index(top, list_untouched(top, wanted_env), wanted_env)
            take_from_tree(top, now, _once_left_out(top, target), wanted_env)
            wanted = git(workdir, "write-tree", env=wanted_env)
        before = typed.decode(held.left, Restoring) if held.left is not None else None
        if before is not None and before.target == target and _is_between(workdir, before, now):
            ref = before.ref
        elif now == wanted and _is_kept(workdir, backup):
            return backup.ref  # All of it was done before; only its end was not told.
        else:
            ref = _free_ref(workdir, backup.ref, tree)
            parents = (head,) if (head := find_head(workdir)) else ()
            git(workdir, "update-ref", ref, commit_trees(workdir, tree, parents, backup.message, backup.at_us, internal=True))
            held.intend(msgspec.json.encode(Restoring(ref=ref, target=target, now=now, wanted=wanted)))
        git(workdir, "read-tree", "-m", "-u", now, wanted, env=env)
    return ref


def _is_between(workdir: Path, before: Restoring, tree: str) -> bool:
    """Return True if a tree differs from the one before only where git was moving files to another, whole or in part."""
    fields = list_names(workdir, "diff-tree", "-r", "-z", "--raw", "--no-renames", before.now, tree)
    for about, path in zip(fields[::2], fields[1::2], strict=True):
        _, mode, _, blob, _ = about.split()
        if mode == "000000":
            continue
        code, other = ask_git(workdir, "rev-parse", "--verify", "--quiet", f"{before.wanted}:{path}", answers=(0, 1, 128))
        if code or mode == "160000" or git(workdir, "cat-file", "-t", other) != "blob":
            return False
        if not is_begun(*(read_bytes(workdir, "cat-file", "blob", one) for one in (blob, other))):
            return False
    return True


def _is_kept(workdir: Path, backup: Backup) -> bool:
    """Return True if the ref of a backup has the commit that would be made for it."""
    known = find_commit(workdir, backup.ref)
    told = f"{backup.at_us // US} {backup.message.strip()}"
    return known is not None and git(workdir, "log", "-1", "--format=%ct %B", known).strip() == told


def _once_left_out(top: Path, target: str) -> list[str]:
    """Return files that a snapshot lacks though its commit had them: an older version left them out, nobody deleted them."""
    parent = find_commit(top, f"{target}^")
    if parent is None or ask_git(top, "merge-base", "--is-ancestor", target, "HEAD", answers=(0, 1))[0] == 0:
        return []  # It is on a branch, where nothing was left out.
    how = ("-r", "-z", "--name-only", "--no-renames", "--diff-filter=D")
    return list_names(top, "diff-tree", *how, parent, target, "--", *(f":(top){one}" for one in ONCE_LEFT_OUT))


def _free_ref(workdir: Path, wanted: str, tree: str) -> str:
    """Return the ref, or the next free name where it keeps another tree already."""
    ref, number = wanted, 1
    while (known := find_commit(workdir, ref)) is not None and git(workdir, "rev-parse", f"{known}^{{tree}}") != tree:
        number += 1
        ref = f"{wanted}-{number}"
    return ref


def point_ref(repo: Path, ref: str, commit: str | None) -> None:
    """Point a ref of ours at a commit, or forget it."""
    if commit is not None:
        git(repo, "update-ref", ref, f"{commit}^{{commit}}")
    elif find_commit(repo, ref) is not None:
        git(repo, "update-ref", "-d", ref)


def is_clean(workdir: Path) -> bool:
    """Return True if nothing is uncommitted, untracked files included; our own files never count."""
    return not list_uncommitted(workdir)


def delete_refs(home: Path, prefix: str) -> None:
    """Forget all snapshots below a prefix; git removes what nothing else names."""
    if top_level(home) is None:
        return
    with hold_lock(home, "references"):
        for ref in git(home, "for-each-ref", "--format=%(refname)", prefix).splitlines():
            git(home, "update-ref", "-d", ref)
