"""The work of a run on its branches: committed at its end, and told with its size and the command that merges it.

A run with a worktree of its own ends with everything in it committed on its branch, however it ended: what only lies in
a folder below `.agents/` nobody finds. A process that was killed before is made up for by the next one that drives the run.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from agent_orchestrator.core.units import say_count
from agent_orchestrator.errors import GitFailed
from agent_orchestrator.git.branches import find_branch
from agent_orchestrator.git.command import git, hold_lock
from agent_orchestrator.git.merges import is_ancestor
from agent_orchestrator.git.repository import top_level
from agent_orchestrator.git.snapshots import (
    commit_on_branch,
    count_changes,
    find_commit,
    find_unfinished_merge,
    is_clean,
    write_tree,
)
from agent_orchestrator.git.worktree import WORKTREES, branch_of
from agent_orchestrator.store.port import StoredRun


class Work(msgspec.Struct, frozen=True, kw_only=True):
    """The work on one branch of a run."""

    branch: str
    path: str
    files: int
    added: int
    removed: int
    merged: bool
    """True where the branch that is checked out in the repository has it already."""
    uncommitted: str = ""
    """The reason why something in the worktree is on no branch."""


def is_apart(run: StoredRun) -> bool:
    """Tell whether the run has a worktree of its own."""
    return Path(run.context.workdir).parent == Path(run.context.home) / WORKTREES


def commit_work(run: StoredRun, scratch: Path, seq: int, at_us: int, status: str) -> None:
    """Commits what is left in the worktree of a run that ended; raises GitFailed. Repeated, it finds its own commit.

    A tree on another branch, or in the middle of a merge, is left as it is: `find_work` says so.
    """
    folder = Path(run.context.workdir)
    if not is_apart(run) or not folder.is_dir() or _unfit(folder):
        return
    title = f"{run.name}: {status.replace('_', ' ')}"[:100]
    message = f"{title}\n\nOrc-Run: {run.id}\nOrc-Event: {seq}\n"
    with hold_lock(folder, f"saving~{folder.name}"):
        commit_on_branch(folder, scratch, write_tree(folder, scratch), message, at_us)


def _unfit(folder: Path) -> str:
    """Say why nothing can be committed there."""
    found, wanted = find_branch(folder), branch_of(folder.name)
    if found != wanted:
        return f"the worktree was left on {found or 'no branch'} instead of {wanted}"
    if find_unfinished_merge(folder).other is not None:
        return "a merge in it is not finished"
    return ""


def find_work(run: StoredRun) -> Work | None:
    """Return the work on the run's own branch since it began; None without one."""
    home, folder = Path(run.context.home), Path(run.context.workdir)
    branch = branch_of(folder.name)
    if not is_apart(run) or not folder.is_dir() or top_level(home) is None or find_commit(home, branch) is None:
        return None
    size = count_changes(home, git(home, "merge-base", "HEAD", branch), branch)
    left = "" if is_clean(folder) else _unfit(folder) or "the run is not over"
    merged = is_ancestor(home, branch, "HEAD")
    return Work(
        branch=branch,
        path=str(folder),
        files=size.files,
        added=size.added,
        removed=size.removed,
        merged=merged,
        uncommitted=left,
    )


def work_facts(run: StoredRun) -> dict[str, Any] | None:
    """The same for `--json`."""
    try:
        work = find_work(run)
    except GitFailed:
        return None
    return msgspec.to_builtins(work) if work is not None else None


def work_lines(run: StoredRun) -> list[str]:
    """The same for people: where the work is, how much it is, and what to do with it."""
    try:
        work = find_work(run)
    except GitFailed as error:
        return [f"work: {run.context.workdir}, {error}"]
    if work is None:
        return []
    size = f"{say_count(work.files, 'file')} changed, +{work.added} -{work.removed}" if work.files else "nothing committed"
    lines = [f"work: branch {work.branch} in {work.path}: {size}"]
    if work.uncommitted:
        lines.append(f"not committed yet: git -C {work.path} status   ({work.uncommitted})")
    elif work.files and not work.merged:
        lines.append(f"look at it: git diff HEAD...{work.branch}   take it: git merge {work.branch}")
    return lines
