"""Checkpoints: the tree under its ref, the changes since, and a commit on the branch when asked for."""

from __future__ import annotations

from pathlib import Path

from agent_orchestrator.core.effects import Checkpoint
from agent_orchestrator.core.inputs import CheckpointEnded, Collision, Commit
from agent_orchestrator.core.limits import COMMITS_MAX
from agent_orchestrator.git.checkouts import find_checkout
from agent_orchestrator.git.command import ask_git, git, hold_lock
from agent_orchestrator.git.diffs import count_changes, list_changes, read_diff
from agent_orchestrator.git.merges import forecast_conflicts
from agent_orchestrator.git.snapshots import (
    commit_on_branch,
    find_commit,
    find_snapshot,
    find_unfinished_merge,
    save_snapshot,
)


def take_checkpoint(workdir: Path, scratch: Path, effect: Checkpoint) -> CheckpointEnded:
    """Save the tree; raises GitFailed."""
    if find_checkout(workdir, "write-tree") is None:
        return CheckpointEnded(effect=effect.id, unavailable="the working tree is not in a git repository")
    with hold_lock(workdir, f"saving~{workdir.name}"):
        return _take(workdir, scratch, effect)


def _take(workdir: Path, scratch: Path, effect: Checkpoint) -> CheckpointEnded:
    refused = _unfit(workdir, effect) if effect.branch_message is not None else None
    if refused is not None:
        return CheckpointEnded(effect=effect.id, unavailable=refused)
    if effect.of is not None:
        saved = find_snapshot(workdir, effect.of)
    else:
        saved = save_snapshot(workdir, scratch, effect.ref, effect.message, effect.at_us)
    since = count_changes(workdir, effect.since or saved.head, saved.commit)
    branch = None
    if effect.branch_message is not None:
        branch = commit_on_branch(workdir, scratch, saved.tree, effect.branch_message, effect.at_us, empty=effect.empty)
    # Only now: a merge that the agent left to be committed brings the branch up to what others merged.
    start = _start(workdir, effect) or saved.head
    return CheckpointEnded(
        effect=effect.id,
        commit=saved.commit,
        tree=saved.tree,
        head=saved.head,
        files_changed=since.files,
        lines_added=since.added,
        lines_removed=since.removed,
        changed=list_changes(workdir, start, saved.commit),
        diff=read_diff(workdir, start, saved.commit, effect.diff_chars),
        branch_commit=branch,
        commits=_commits(workdir, effect.start) if effect.branch_message is not None else (),
        collisions=_collisions(workdir, effect),
    )


def _unfit(workdir: Path, effect: Checkpoint) -> str | None:
    """Say why nothing can be committed for the agent: it is on another branch, or its merge is unfinished."""
    branch = effect.tree.branch if effect.tree is not None else effect.branch or ""
    on = ask_git(workdir, "symbolic-ref", "--quiet", "--short", "HEAD", answers=(0, 1))[1]
    if branch and on != branch:
        where = f"on branch {on}" if on else "on no branch"
        return f"the working tree was left {where} instead of {branch}: what is to count must be on {branch}"
    unresolved = find_unfinished_merge(workdir).unresolved
    return f"a merge was left unfinished, with conflict markers in {', '.join(unresolved[:5])}" if unresolved else None


def _start(workdir: Path, effect: Checkpoint) -> str | None:
    """Return the commit at which a branch of its own left `start`: later merges there are not this branch's work."""
    start = effect.start
    if start is None or effect.tree is None:
        return start
    if find_commit(workdir, start) is None:
        return None  # Somebody deleted it; merging says so.
    code, base = ask_git(workdir, "merge-base", start, "HEAD", answers=(0, 1))
    return base if code == 0 else start


def _commits(workdir: Path, start: str | None) -> tuple[Commit, ...]:
    if start is None or find_commit(workdir, start) is None:
        return ()
    found = git(
        workdir, "log", "--first-parent", f"--max-count={COMMITS_MAX}", "--format=%h%x00%s", f"{start}..HEAD"
    ).splitlines()
    return tuple(Commit(*line.split("\0", 1)) for line in reversed(found) if "\0" in line)


def _collisions(workdir: Path, effect: Checkpoint) -> tuple[Collision, ...]:
    branch = effect.tree.branch if effect.tree is not None else ""
    if not branch or not effect.rivals:
        return ()
    return tuple(Collision(other, paths) for other, paths in forecast_conflicts(workdir, branch, effect.rivals))
