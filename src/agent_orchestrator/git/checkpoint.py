"""Carries a Checkpoint out: the tree under its ref, what changed since, and a commit on the branch when asked for."""

from __future__ import annotations

from pathlib import Path

from agent_orchestrator.core.effects import Checkpoint
from agent_orchestrator.core.inputs import CheckpointEnded, Collision, Commit
from agent_orchestrator.core.limits import COMMITS_MAX
from agent_orchestrator.git.alone import alone
from agent_orchestrator.git.locate import top_level
from agent_orchestrator.git.merging import forecast
from agent_orchestrator.git.run import ask_git, git
from agent_orchestrator.git.snapshots import (
    commit_of,
    commit_on_branch,
    count_changes,
    diff_text,
    list_changes,
    save,
    snapshot_of,
    unfinished_merge,
)


def take_checkpoint(workdir: Path, scratch: Path, effect: Checkpoint) -> CheckpointEnded:
    """Saves the tree; raises GitFailed."""
    if top_level(workdir) is None:
        return CheckpointEnded(effect=effect.id, unavailable="the working tree is not in a git repository")
    with alone(workdir, f"saving~{workdir.name}"):
        return _take(workdir, scratch, effect)


def _take(workdir: Path, scratch: Path, effect: Checkpoint) -> CheckpointEnded:
    refused = _unfit(workdir, effect) if effect.branch_message is not None else None
    if refused is not None:
        return CheckpointEnded(effect=effect.id, unavailable=refused)
    if effect.of is not None:
        saved = snapshot_of(workdir, effect.of)
    else:
        saved = save(workdir, scratch, effect.ref, effect.message, effect.at_us)
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
        diff=diff_text(workdir, start, saved.commit, effect.diff_chars),
        branch_commit=branch,
        commits=_commits(workdir, effect.start) if effect.branch_message is not None else (),
        collisions=_collisions(workdir, effect),
    )


def _unfit(workdir: Path, effect: Checkpoint) -> str | None:
    """Why nothing can be committed for the agent: it is on another branch, or a merge of its is not done."""
    branch = effect.tree.branch if effect.tree is not None else effect.branch or ""
    on = ask_git(workdir, "symbolic-ref", "--quiet", "--short", "HEAD", answers=(0, 1))[1]
    if branch and on != branch:
        where = f"on branch {on}" if on else "on no branch"
        return f"the working tree was left {where} instead of {branch}: what is to count must be on {branch}"
    unresolved = unfinished_merge(workdir).unresolved
    return f"a merge was left unfinished, with conflict markers in {', '.join(unresolved[:5])}" if unresolved else None


def _start(workdir: Path, effect: Checkpoint) -> str | None:
    """Where a branch of its own left `start`: what others merged there since is not this branch's work."""
    start = effect.start
    if start is None or effect.tree is None:
        return start
    if commit_of(workdir, start) is None:
        return None  # Somebody deleted it; merging says so.
    code, base = ask_git(workdir, "merge-base", start, "HEAD", answers=(0, 1))
    return base if code == 0 else start


def _commits(workdir: Path, start: str | None) -> tuple[Commit, ...]:
    if start is None or commit_of(workdir, start) is None:
        return ()
    found = git(
        workdir, "log", "--first-parent", f"--max-count={COMMITS_MAX}", "--format=%h%x00%s", f"{start}..HEAD"
    ).splitlines()
    return tuple(Commit(*line.split("\0", 1)) for line in reversed(found) if "\0" in line)


def _collisions(workdir: Path, effect: Checkpoint) -> tuple[Collision, ...]:
    branch = effect.tree.branch if effect.tree is not None else ""
    if not branch or not effect.rivals:
        return ()
    return tuple(Collision(other, paths) for other, paths in forecast(workdir, branch, effect.rivals))
