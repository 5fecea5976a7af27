"""A workflow run's state as a struct that can be encoded, without what follows from the rest of it."""

from __future__ import annotations

import msgspec

from agent_orchestrator.core.dag import Dag
from agent_orchestrator.core.doing import Doing
from agent_orchestrator.core.lifecycle import Lifecycle
from agent_orchestrator.core.system import Context, Snapshots
from agent_orchestrator.systems.workflow.spec import WorkflowSpec
from agent_orchestrator.systems.workflow.state import StepDocument, StepWork, WorkflowState


class WorkflowSnapshot(msgspec.Struct, array_like=True):
    """All that `evolve` has made of a run; steps and their works in the order of the spec."""

    spec: WorkflowSpec
    generation: int
    lifecycle: Lifecycle
    doing: Doing
    due: dict[str, str]
    asking: dict[str, None]
    gated: dict[str, None]
    failed: dict[str, str]
    retired: dict[str, int]
    steps: list[StepDocument]
    works: list[StepWork]
    finished: list[str]
    taken: list[str]
    updated_us: int


def take(state: WorkflowState) -> WorkflowSnapshot:
    """Return the state as it is now; nothing in it is copied."""
    finished, taken = state.dag.standing()
    return WorkflowSnapshot(
        state.spec,
        state.context.generation,
        state.lifecycle,
        state.doing,
        state.due,
        state.asking,
        state.gated,
        state.failed,
        state.retired,
        [state.steps[step.id] for step in state.spec.steps],
        [state.works[step.id] for step in state.spec.steps],
        finished,
        taken,
        state.updated_us,
    )


def restore(kept: WorkflowSnapshot, context: Context) -> WorkflowState:
    """Return the state that a snapshot was taken of."""
    state, units = WorkflowState.__new__(WorkflowState), [step.id for step in kept.spec.steps]
    state.context = msgspec.structs.replace(context, generation=kept.generation)
    state.lifecycle, state.doing = kept.lifecycle, kept.doing
    state.due, state.asking, state.gated = kept.due, kept.asking, kept.gated
    state.failed, state.retired = kept.failed, kept.retired
    state.steps = dict(zip(units, kept.steps, strict=True))
    state.works = dict(zip(units, kept.works, strict=True))
    state.updated_us = kept.updated_us
    needs = dict(zip(units, [step.needs for step in kept.spec.steps], strict=True))
    state.adopt(kept.spec, Dag.at(needs, kept.finished, kept.taken))
    return state


SNAPSHOTS = Snapshots(kind=WorkflowSnapshot, take=take, restore=restore)
