"""Carries a Checkpoint out: the tree under its ref, what changed since, and a commit on the branch when asked for."""

from __future__ import annotations

from pathlib import Path

from agent_orchestrator.core.effects import Checkpoint
from agent_orchestrator.core.inputs import CheckpointEnded
from agent_orchestrator.git.locate import top_level
from agent_orchestrator.git.snapshots import commit_on_branch, count_changes, diff_text, list_changes, save


def take_checkpoint(workdir: Path, scratch: Path, effect: Checkpoint) -> CheckpointEnded:
    """Saves the tree; raises GitFailed."""
    if top_level(workdir) is None:
        return CheckpointEnded(effect=effect.id, unavailable="the working tree is not in a git repository")
    saved = save(workdir, scratch, effect.ref, effect.message, effect.at_us)
    since = count_changes(workdir, effect.since or saved.head, saved.commit)
    start = effect.start or saved.head
    branch = None
    if effect.branch_message is not None:
        branch = commit_on_branch(workdir, saved.tree, effect.branch_message, effect.at_us)
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
    )
