"""Facts about merging a bead's branch: asked for, its work saved, tried, ended."""

from __future__ import annotations

from agent_orchestrator.core.lifecycle import Facts
from agent_orchestrator.systems.swarm import events as e
from agent_orchestrator.systems.swarm.effects import merge_branch, save_work
from agent_orchestrator.systems.swarm.evolve.marks import leave
from agent_orchestrator.systems.swarm.state import Merging, SwarmState


def _merge_asked(state: SwarmState, event: e.MergeAsked, at_us: int) -> None:
    life = state.lifecycle
    if life.ended and life.stop is not None:
        state.ended_as = (life.stop, life.detail)
    for bead in event.beads:
        state.beads[bead].merge = Merging(into=event.into, check=event.check)
        state.merging[bead] = None


def _saving_started(state: SwarmState, event: e.SavingStarted, at_us: int) -> None:
    state.beads[event.bead].launches += 1
    state.doing.put(save_work(state, event.bead, event.effect, at_us))


def _saving_finished(state: SwarmState, event: e.SavingFinished, at_us: int) -> None:
    job = state.beads[event.bead].merge
    assert job is not None, "what is saved is to be merged"
    leave(state, event.bead)
    job.saved = True
    if event.problem:
        job.verdict, job.detail = "unavailable", event.problem
        state.merging.pop(event.bead, None)


def _merge_started(state: SwarmState, event: e.MergeStarted, at_us: int) -> None:
    leave(state, event.bead)
    state.beads[event.bead].launches += 1
    state.doing.put(merge_branch(state, event.bead, event.effect, at_us))


def _merge_finished(state: SwarmState, event: e.MergeFinished, at_us: int) -> None:
    job = state.beads[event.bead].merge
    assert job is not None, "what was merged was to be merged"
    leave(state, event.bead)
    job.verdict, job.detail, job.commit = event.verdict, event.detail, event.commit
    state.merging.pop(event.bead, None)


MERGE_FACTS: Facts = {
    e.MergeAsked: _merge_asked,
    e.SavingStarted: _saving_started,
    e.SavingFinished: _saving_finished,
    e.MergeStarted: _merge_started,
    e.MergeFinished: _merge_finished,
}
