"""A swarm run's state as a struct that can be encoded, without what follows from the rest of it."""

from __future__ import annotations

from collections import deque

import msgspec

from agent_orchestrator.core.dag import Dag
from agent_orchestrator.core.doing import Doing
from agent_orchestrator.core.events import StopReason
from agent_orchestrator.core.lifecycle import Lifecycle
from agent_orchestrator.core.system import Context, Snapshots
from agent_orchestrator.systems.swarm.spec import SwarmSpec
from agent_orchestrator.systems.swarm.state import Bead, SwarmState, needs_of


class SwarmSnapshot(msgspec.Struct, array_like=True):
    """All that `evolve` has made of a run; beads in the order of the spec."""

    spec: SwarmSpec
    generation: int
    lifecycle: Lifecycle
    doing: Doing
    beads: list[Bead]
    due: dict[str, str]
    working: dict[str, None]
    failed: dict[str, str]
    holders: dict[str, str]
    queues: dict[str, list[str]]
    repos: dict[str, dict[str, None]]
    merging: dict[str, None]
    ended_as: tuple[StopReason, str] | None
    finished: list[str]
    taken: list[str]
    updated_us: int


def take(state: SwarmState) -> SwarmSnapshot:
    """Return the state as it is now; next to nothing in it is copied."""
    finished, taken = state.dag.standing()
    return SwarmSnapshot(
        state.spec,
        state.context.generation,
        state.lifecycle,
        state.doing,
        [state.beads[bead.id] for bead in state.spec.beads],
        state.due,
        state.working,
        state.failed,
        state.holders,
        {tree: list(queue) for tree, queue in state.queues.items()},
        state.repos,
        state.merging,
        state.ended_as,
        finished,
        taken,
        state.updated_us,
    )


def restore(kept: SwarmSnapshot, context: Context) -> SwarmState:
    """Return the state that a snapshot was taken of."""
    state, spec = SwarmState.__new__(SwarmState), kept.spec
    state.spec, state.specs = spec, {bead.id: bead for bead in spec.beads}
    state.context = msgspec.structs.replace(context, generation=kept.generation)
    state.lifecycle, state.doing = kept.lifecycle, kept.doing
    state.beads = dict(zip(state.specs, kept.beads, strict=True))
    state.due, state.working, state.failed = kept.due, kept.working, kept.failed
    state.holders, state.repos, state.merging = kept.holders, kept.repos, kept.merging
    state.queues = {tree: deque(queue) for tree, queue in kept.queues.items()}
    state.ended_as, state.updated_us = kept.ended_as, kept.updated_us
    state.dag = Dag.at(needs_of(spec), kept.finished, kept.taken)
    return state


SNAPSHOTS = Snapshots(kind=SwarmSnapshot, take=take, restore=restore)
