"""Snapshots of working trees, kept as commits under refs of our own: made, compared, and restored.

A snapshot is made with a temporary index and `commit-tree`, its date given: repeated, it is the same commit. Nothing of
the user's index, branch or files is touched but by `restore`, which saves what is there first.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import msgspec

from agent_orchestrator.core.inputs import FileChange
from agent_orchestrator.core.limits import CHANGED_FILES_MAX
from agent_orchestrator.core.units import US
from agent_orchestrator.errors import GitFailed
from agent_orchestrator.git.command import ask_git, git, list_names
from agent_orchestrator.git.ownership import (
    drop_from_index,
    list_uncommitted,
    list_untouched,
    select_but,
    stage_work,
    take_from_tree,
)
from agent_orchestrator.git.repository import top_level

WHO = {
    "GIT_AUTHOR_NAME": "agent-orchestrator",
    "GIT_AUTHOR_EMAIL": "orc@localhost",
    "GIT_COMMITTER_NAME": "agent-orchestrator",
    "GIT_COMMITTER_EMAIL": "orc@localhost",
}
EMPTY_TREE = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"
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


class ChangeCount(msgspec.Struct, frozen=True, kw_only=True):
    """The size of the difference between two trees."""

    files: int
    added: int
    removed: int


def save_snapshot(workdir: Path, scratch: Path, ref: str, message: str, at_us: int) -> SavedTree:
    """Save the working tree, untracked files included, as a commit under `ref`; raises GitFailed."""
    head = find_head(workdir)
    known = find_commit(workdir, ref)
    if known is not None and git(workdir, "log", "-1", "--format=%B", known).strip() == message.strip():
        return SavedTree(commit=known, tree=git(workdir, "rev-parse", f"{known}^{{tree}}"), head=head)
    tree = write_tree(workdir, scratch)
    commit = _commit(workdir, tree, head, message, at_us)
    git(workdir, "update-ref", ref, commit)
    return SavedTree(commit=commit, tree=tree, head=head)


def write_tree(workdir: Path, scratch: Path) -> str:
    """Write everything that is neither ignored nor ours as a tree into the repository's object store."""
    with _work_index(workdir, scratch) as env:
        return git(workdir, "write-tree", env=env)


def identify_tree(workdir: Path, scratch: Path) -> str | None:
    """Identify the working tree by the tree of everything in it that is neither ignored nor ours; None without git.

    Neither the index nor the object store of the repository is touched.
    """
    index, objects = scratch / "index", scratch / "objects"
    try:
        real_objects = git(workdir, "rev-parse", "--path-format=absolute", "--git-path", "objects")
        objects.mkdir(parents=True, exist_ok=True)
        env = {"GIT_OBJECT_DIRECTORY": str(objects), "GIT_ALTERNATE_OBJECT_DIRECTORIES": real_objects}
        return git(workdir, "write-tree", env=_stage(workdir, index, env))
    except (GitFailed, OSError):
        return None
    finally:
        index.unlink(missing_ok=True)
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
    commit = _commit(workdir, tree, head, message, at_us, merging)
    git(workdir, "update-ref", "-m", message.splitlines()[0], "HEAD", commit, head or "0" * 40)
    _follow(workdir)
    return commit


def _follow(workdir: Path) -> None:
    """Bring index and merge state up to a commit that was made beside them: the next commit would undo it else."""
    git(workdir, "read-tree", "HEAD")
    if find_commit(workdir, "MERGE_HEAD") is not None:
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
    unmerged = git(workdir, "diff", "--name-only", "-z", "--diff-filter=U").split("\0")
    return UnfinishedMerge(other, tuple(path for path in unmerged if path and _has_markers(workdir / path)))


def _has_markers(file: Path) -> bool:
    try:
        return any(line.startswith(b"<<<<<<< ") for line in file.read_bytes().splitlines())
    except OSError:
        return False


def _commit(workdir: Path, tree: str, head: str | None, message: str, at_us: int, merging: str | None = None) -> str:
    return commit_trees(workdir, tree, tuple(one for one in (head, merging) if one is not None), message, at_us)


def commit_trees(workdir: Path, tree: str, parents: tuple[str, ...], message: str, at_us: int) -> str:
    """Make a commit that no branch has yet; made again of the same things, it is the same one."""
    date = f"{at_us // US} +0000"
    env = {**WHO, "GIT_AUTHOR_DATE": date, "GIT_COMMITTER_DATE": date}
    return git(workdir, "commit-tree", tree, *(word for one in parents for word in ("-p", one)), "-m", message, env=env)


@contextmanager
def _work_index(workdir: Path, scratch: Path) -> Iterator[dict[str, str]]:
    """Make an index of the working tree, as the environment of git commands that read it."""
    scratch.mkdir(parents=True, exist_ok=True)
    index = scratch / "snapshot-index"
    index.unlink(missing_ok=True)
    try:
        yield _stage(workdir, index, {})
    finally:
        index.unlink(missing_ok=True)


def _stage(workdir: Path, index: Path, env: Mapping[str, str]) -> dict[str, str]:
    """Fill an index of its own with the working tree, beginning with a copy of the real one; return its environment."""
    real = Path(git(workdir, "rev-parse", "--path-format=absolute", "--git-path", "index"))
    if real.exists():
        shutil.copyfile(real, index)
    env = {**env, "GIT_INDEX_FILE": str(index)}
    stage_work(workdir, env)
    return env


@contextmanager
def _index_of(workdir: Path, scratch: Path, tree: str) -> Iterator[dict[str, str]]:
    """Make an index that holds a tree, as the environment of git commands that change it."""
    index = scratch / "changed-index"
    scratch.mkdir(parents=True, exist_ok=True)
    env = {"GIT_INDEX_FILE": str(index)}
    try:
        git(workdir, "read-tree", tree, env=env)
        yield env
    finally:
        index.unlink(missing_ok=True)


def find_head(workdir: Path) -> str | None:
    """Return the current commit, or None in a repository without one."""
    return find_commit(workdir, "HEAD")


def find_commit(workdir: Path, name: str) -> str | None:
    """Return the commit behind a name, or None."""
    try:
        return git(workdir, "rev-parse", "--verify", "--quiet", f"{name}^{{commit}}")
    except GitFailed:
        return None


def _not_ours(workdir: Path) -> tuple[str, ...]:
    """Return arguments that leave out our files: an agent may have committed one that is tracked, with all that it commits."""
    return select_but(list_untouched(top_level(workdir) or workdir))


def count_changes(workdir: Path, old: str | None, new: str) -> ChangeCount:
    """Count the differences between two trees or commits."""
    files = added = removed = 0
    how = ("-r", "--no-renames", "--numstat")
    for line in git(workdir, "diff-tree", *how, old or EMPTY_TREE, new, *_not_ours(workdir)).splitlines():
        more, less, *_ = line.split("\t")
        files += 1
        added += int(more) if more.isdigit() else 0
        removed += int(less) if less.isdigit() else 0
    return ChangeCount(files=files, added=added, removed=removed)


def list_changes(workdir: Path, old: str | None, new: str) -> tuple[FileChange, ...]:
    """Return the files that differ, with what each became; at most CHANGED_FILES_MAX."""
    raw = git(workdir, "diff-tree", "-r", "-z", "--no-renames", "--raw", old or EMPTY_TREE, new, *_not_ours(workdir))
    fields = raw.split("\0")
    found = []
    for about, path in zip(fields[::2], fields[1::2], strict=False):
        words = about.split()
        if len(words) == 5:
            gone = words[4].startswith("D")
            found.append(FileChange(words[4][:1], path, "" if gone else words[3]))
    return tuple(found[:CHANGED_FILES_MAX])


def read_diff(workdir: Path, old: str | None, new: str, limit_chars: int) -> str:
    """Return the diff as people read it, at most so much of it."""
    how = ("-r", "-p", "--no-renames", "--no-color", "--no-ext-diff")
    text = git(workdir, "diff-tree", *how, old or EMPTY_TREE, new, *_not_ours(workdir))
    return text if len(text) <= limit_chars else text[:limit_chars] + "\n… (cut)"


def restore_snapshot(workdir: Path, scratch: Path, target: str, backup: Backup) -> str:
    """Make the working tree what it was in commit `target`; return the ref that keeps the former tree.

    Files of ours are left alone, tracked or not.
    """
    top = top_level(workdir) or workdir
    with _work_index(workdir, scratch) as env:
        tree = git(workdir, "write-tree", env=env)
        ref = _free_ref(workdir, backup.ref, tree)
        git(workdir, "update-ref", ref, _commit(workdir, tree, find_head(workdir), backup.message, backup.at_us))
        drop_from_index(top, list_untouched(top, env), env)
        now = git(workdir, "write-tree", env=env)
        with _index_of(workdir, scratch, f"{target}^{{tree}}") as wanted_env:
            drop_from_index(top, list_untouched(top, wanted_env), wanted_env)
            take_from_tree(top, now, _once_left_out(top, target), wanted_env)
            wanted = git(workdir, "write-tree", env=wanted_env)
        git(workdir, "read-tree", "-m", "-u", now, wanted, env=env)
    return ref


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


def is_clean(workdir: Path) -> bool:
    """Return True if nothing is uncommitted, untracked files included; our own files never count."""
    return not list_uncommitted(workdir)


def delete_refs(home: Path, prefix: str) -> None:
    """Forget all snapshots below a prefix; git removes what nothing else names."""
    if top_level(home) is None:
        return
    for ref in git(home, "for-each-ref", "--format=%(refname)", prefix).splitlines():
        git(home, "update-ref", "-d", ref)
