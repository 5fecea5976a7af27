"""Facts about more than one attempt: beads dropped, reset or released, other limits, the end of the run."""

from __future__ import annotations

import msgspec

from agent_orchestrator.core.events import AgentsSet, Ended, StopReason
from agent_orchestrator.core.lifecycle import Facts
from agent_orchestrator.systems.swarm import events as e
from agent_orchestrator.systems.swarm.evolve.marks import end_attempt, give_up, leave
from agent_orchestrator.systems.swarm.records import ABORTED, AttemptStatus, AttemptVerdict, Kept
from agent_orchestrator.systems.swarm.state import SwarmState


def _bead_dropped(state: SwarmState, event: e.BeadDropped, at_us: int) -> None:
    leave(state, event.bead)
    state.dag.take(event.bead)
    state.beads[event.bead].error = f"stopped: {event.reason}"
    give_up(state, event.bead, ABORTED)


def _beads_reset(state: SwarmState, event: e.BeadsReset, at_us: int) -> None:
    for bead in event.beads:
        held = state.beads[bead]
        state.failed.pop(bead, None)
        held.limit = held.attempt + state.specs[bead].max_attempts
        held.error = ""
    state.dag.reset(event.beads)
    state.ended_as = None


def _beads_released(state: SwarmState, event: e.BeadsReleased, at_us: int) -> None:
    for bead in event.beads:
        state.beads[bead].released = True


def _options_changed(state: SwarmState, event: e.OptionsChanged, at_us: int) -> None:
    given = {name: value for name in event.__struct_fields__ if name != "who" and (value := getattr(event, name)) is not None}
    state.spec = msgspec.structs.replace(state.spec, **given)


def _ended(state: SwarmState, event: Ended, at_us: int) -> None:
    queued = [bead for queue in state.queues.values() for bead in queue]
    open_beads = list(dict.fromkeys([*state.working, *(effect.unit for effect in state.doing), *state.due, *queued]))
    state.queues.clear()
    state.holders.clear()
    state.merging.clear()
    state.ended_as = None
    for bead in open_beads:
        held = state.beads[bead]
        leave(state, bead)
        if held.result is None and held.run is None:
            state.dag.reset([bead])
        elif held.result is None:
            verdict = AttemptVerdict(status=AttemptStatus.FAILED, reason=f"aborted: {event.detail}", failure_reason=ABORTED)
            end_attempt(state, bead, verdict, at_us, will_retry=False)
            give_up(state, bead, ABORTED)
        elif held.result.status is not AttemptStatus.DONE and event.stop is StopReason.ABORTED:
            give_up(state, bead, ABORTED)
        elif held.result.status is not AttemptStatus.DONE:
            state.dag.reset([bead])
    state.lifecycle.evolve(event)


def _imported(state: SwarmState, event: e.Imported, at_us: int) -> None:
    bead, run, result = event.run.bead, event.run, event.result
    held = state.beads[bead]
    held.attempt, held.limit, held.started_us = run.attempt, max(run.attempt, run.max_retries), event.started_us
    held.run, held.result, held.kept = run, result, (Kept(run, result),)
    held.exit_code, held.output = result.exit_code, result.output_summary
    if result.status is AttemptStatus.DONE:
        state.dag.finish(bead)
        return
    held.error = result.reason
    held.tell({"attempt": run.attempt, "error": result.reason, "output": result.output_summary})
    state.dag.take(bead)
    give_up(state, bead, run.failure_reason if isinstance(run.failure_reason, str) else result.status.value)


def _agents_set(state: SwarmState, event: AgentsSet, at_us: int) -> None:
    """The specification is changed already, as in every system; here only what is made of it."""
    state.specs = {bead.id: bead for bead in state.spec.beads}


RUN_FACTS: Facts = {
    e.BeadDropped: _bead_dropped,
    e.BeadsReset: _beads_reset,
    e.BeadsReleased: _beads_released,
    e.OptionsChanged: _options_changed,
    e.Imported: _imported,
    AgentsSet: _agents_set,
    Ended: _ended,
}
