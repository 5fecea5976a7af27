"""What came of saving a bead's work and of merging its branch."""

from __future__ import annotations

from agent_orchestrator.core.ids import unit_of
from agent_orchestrator.core.inputs import CheckpointEnded, MergeEnded
from agent_orchestrator.systems.swarm.events import LaunchInterrupted, MergeFinished, SavingFinished, SwarmEvent


def saving_ended(outcome: CheckpointEnded) -> list[SwarmEvent]:
    """What was left uncommitted is on the branch, or why it is not."""
    bead = unit_of(outcome.effect)
    commit = outcome.branch_commit or outcome.head
    return [SavingFinished(bead=bead, effect=outcome.effect, commit=commit, problem=outcome.unavailable)]


def merge_ended(outcome: MergeEnded) -> list[SwarmEvent]:
    """The merge landed, did not, or is to be tried again."""
    bead = unit_of(outcome.effect)
    if outcome.again:
        return [LaunchInterrupted(bead=bead, due="merge", why=outcome.detail or outcome.verdict.value)]
    verdict, commit = outcome.verdict.value, outcome.commit
    return [MergeFinished(bead=bead, effect=outcome.effect, verdict=verdict, detail=outcome.detail, commit=commit)]
