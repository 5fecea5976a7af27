"""Applies one fact to a swarm run's state. Never judges; touches only the beads that the event names."""

from __future__ import annotations

from collections import deque
from functools import partial

import msgspec

from agent_orchestrator.core.effects import Wait
from agent_orchestrator.core.events import AgentsSet, Ended, StopReason
from agent_orchestrator.core.lifecycle import Facts, apply_event
from agent_orchestrator.systems.swarm import events as e
from agent_orchestrator.systems.swarm.effects import close_bead, merge_branch, run_agent, run_verification, save_work
from agent_orchestrator.systems.swarm.records import ABORTED, AttemptStatus, AttemptVerdict, Kept, end_record, start_record
from agent_orchestrator.systems.swarm.state import Merging, SwarmState


def _bead_queued(state: SwarmState, event: e.BeadQueued, at_us: int) -> None:
    state.dag.take(event.bead)
    _queue_up(state, event.bead)


def _attempt_started(state: SwarmState, event: e.AttemptStarted, at_us: int) -> None:
    bead = event.bead
    held, spec = state.beads[bead], state.specs[bead]
    _leave(state, bead)
    state.dag.take(bead)
    _hold_tree(state, bead)
    state.working[bead] = None
    state.repos.setdefault(spec.repo, {})[bead] = None
    if held.run is None or held.result is not None:
        held.attempt, held.started_us = event.attempt, at_us
        held.run, held.result = start_record(spec, event.attempt, held.limit, at_us), None
        held.exit_code, held.summary, held.output, held.error = None, "", "", ""
    held.open_launch(event.effect, at_us)
    held.agent_launch = event.effect
    state.doing.put(run_agent(state, bead, event.effect, event.beside))


def _agent_finished(state: SwarmState, event: e.AgentFinished, at_us: int) -> None:
    held = state.beads[event.bead]
    _leave(state, event.bead)
    held.end_agent(event)
    held.exit_code, held.summary, held.output = event.exit_code, event.summary, event.output
    if event.cost_usd is not None:
        held.cost_usd = (held.cost_usd or 0.0) + event.cost_usd
    if event.tokens is not None:
        held.tokens = (held.tokens or 0) + event.tokens
    if event.failure is not None and not event.went_on:
        held.tell({"attempt": held.attempt, "error": event.failure.message, "output": event.output})


def _launch_interrupted(state: SwarmState, event: e.LaunchInterrupted, at_us: int) -> None:
    bead = event.bead
    _leave(state, bead)
    if event.due == "agent":
        _rest(state, bead)
    if event.due != "merge":  # The first in line goes on by itself.
        state.due[bead] = event.due


def _verification_queued(state: SwarmState, event: e.VerificationQueued, at_us: int) -> None:
    _leave(state, event.bead)
    state.beads[event.bead].count_rerun(again=event.again)
    state.due[event.bead] = "verify"


def _verification_started(state: SwarmState, event: e.VerificationStarted, at_us: int) -> None:
    _leave(state, event.bead)
    state.beads[event.bead].open_launch(event.effect, at_us)
    state.doing.put(run_verification(state, event.bead, event.effect))


def _verification_finished(state: SwarmState, event: e.VerificationFinished, at_us: int) -> None:
    _leave(state, event.bead)
    state.beads[event.bead].end_check(event, state.specs[event.bead].verify or "")


def _attempt_ended(state: SwarmState, event: e.AttemptEnded, at_us: int) -> None:
    bead, verdict = event.bead, event.verdict
    held = state.beads[bead]
    _leave(state, bead)
    _end_attempt(state, bead, verdict, at_us, will_retry=event.will_retry)
    if verdict.failure_reason == "verification-failed":
        check = {"command": state.specs[bead].verify, "tail": held.evidence[-1].tail}
        held.tell({"attempt": held.attempt, "error": verdict.reason, "verification": check})
    if verdict.status is AttemptStatus.DONE:
        state.dag.finish(bead)
        _free_tree(state, bead)
        if state.spec.bd_close:
            state.due[bead] = "close"
    elif not event.will_retry:
        _give_up(state, bead, verdict.failure_reason or verdict.status.value)


def _wait_started(state: SwarmState, event: e.WaitStarted, at_us: int) -> None:
    _leave(state, event.bead)
    _rest(state, event.bead)
    state.beads[event.bead].launches += 1
    state.doing.put(Wait(id=event.effect, unit=event.bead, until_us=event.until_us, reason=event.reason))


def _wait_ended(state: SwarmState, event: e.WaitEnded, at_us: int) -> None:
    _leave(state, event.bead)
    state.due[event.bead] = "agent"


def _closing_started(state: SwarmState, event: e.ClosingStarted, at_us: int) -> None:
    _leave(state, event.bead)
    state.beads[event.bead].open_launch(event.effect, at_us)
    state.doing.put(close_bead(state, event.bead, event.effect))


def _closing_finished(state: SwarmState, event: e.ClosingFinished, at_us: int) -> None:
    held = state.beads[event.bead]
    _leave(state, event.bead)
    held.close_launch(event)
    if event.problem:
        held.history[-1].failure = event.problem
        held.warn(f"the bead was not closed: {event.problem}")


def _stop_asked(state: SwarmState, event: e.StopAsked, at_us: int) -> None:
    # The wait can only begin when the program is really gone: a unit does one thing at a time.
    held = state.beads[event.bead]
    held.stopping = event.reason
    held.launches += 1
    if state.due:
        state.due.pop(event.bead, None)
    state.doing.put(Wait(id=event.effect, unit=event.bead, until_us=event.at_us, reason=f"stopping: {event.reason}"))


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
    _leave(state, event.bead)
    job.saved = True
    if event.problem:
        job.verdict, job.detail = "unavailable", event.problem
        state.merging.pop(event.bead, None)


def _merge_started(state: SwarmState, event: e.MergeStarted, at_us: int) -> None:
    _leave(state, event.bead)
    state.beads[event.bead].launches += 1
    state.doing.put(merge_branch(state, event.bead, event.effect, at_us))


def _merge_finished(state: SwarmState, event: e.MergeFinished, at_us: int) -> None:
    job = state.beads[event.bead].merge
    assert job is not None, "what was merged was to be merged"
    _leave(state, event.bead)
    job.verdict, job.detail, job.commit = event.verdict, event.detail, event.commit
    state.merging.pop(event.bead, None)


def _bead_dropped(state: SwarmState, event: e.BeadDropped, at_us: int) -> None:
    _leave(state, event.bead)
    state.dag.take(event.bead)
    state.beads[event.bead].error = f"stopped: {event.reason}"
    _give_up(state, event.bead, ABORTED)


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
        _leave(state, bead)
        if held.result is None and held.run is None:
            state.dag.reset([bead])
        elif held.result is None:
            verdict = AttemptVerdict(status=AttemptStatus.FAILED, reason=f"aborted: {event.detail}", failure_reason=ABORTED)
            _end_attempt(state, bead, verdict, at_us, will_retry=False)
            _give_up(state, bead, ABORTED)
        elif held.result.status is not AttemptStatus.DONE and event.stop is StopReason.ABORTED:
            _give_up(state, bead, ABORTED)
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
    _give_up(state, bead, run.failure_reason or result.status.value)


def _agents_set(state: SwarmState, event: AgentsSet, at_us: int) -> None:
    """The specification is changed already, as in every system; here only what is made of it."""
    state.specs = {bead.id: bead for bead in state.spec.beads}


def _leave(state: SwarmState, bead: str) -> None:
    """The bead does nothing and waits for nothing."""
    state.doing.drop(bead)
    if state.due:
        state.due.pop(bead, None)


def _rest(state: SwarmState, bead: str) -> None:
    """The bead's place is free for another one."""
    state.working.pop(bead, None)
    at_work = state.repos.get(state.specs[bead].repo)
    if at_work is not None:
        at_work.pop(bead, None)


def _end_attempt(state: SwarmState, bead: str, verdict: AttemptVerdict, ended_us: int, *, will_retry: bool) -> None:
    """Both records of the attempt, kept for ever."""
    held = state.beads[bead]
    assert held.run is not None, "an attempt that ends has begun"
    held.run, held.result = end_record(
        held.run, verdict, started_us=held.started_us, ended_us=ended_us, output=held.output, will_retry=will_retry
    )
    held.kept += (Kept(held.run, held.result),)
    held.error = verdict.reason if verdict.failure_reason is not None else ""
    held.stopping, held.session, held.spent_us = None, None, 0
    held.abandon_launch(ended_us, verdict.failure_reason)
    _rest(state, bead)


def _give_up(state: SwarmState, bead: str, why: str) -> None:
    """The bead is over without being done; its newest result promises no other attempt."""
    held = state.beads[bead]
    state.failed[bead] = why
    if held.result is not None and held.result.will_retry:
        held.result = msgspec.structs.replace(held.result, will_retry=False)
    _free_tree(state, bead)


def _hold_tree(state: SwarmState, bead: str) -> None:
    """The bead works in its tree until it is over."""
    if not state.spec.shared:
        state.holders[state.specs[bead].place] = bead


def _free_tree(state: SwarmState, bead: str) -> None:
    """The bead is over: whoever is next in its tree may go on."""
    place = state.specs[bead].place
    queue = state.queues.get(place)
    if queue is not None and bead in queue:
        queue.remove(bead)
    if state.holders.get(place) != bead:
        return
    del state.holders[place]
    if queue:
        following = queue.popleft()
        state.holders[place] = following
        state.due[following] = "agent"
    if not queue:
        state.queues.pop(place, None)


def _queue_up(state: SwarmState, bead: str) -> None:
    """The bead is next in its tree, behind those that came before."""
    state.queues.setdefault(state.specs[bead].place, deque()).append(bead)


_FACTS: Facts = {
    e.BeadQueued: _bead_queued,
    e.AttemptStarted: _attempt_started,
    e.AgentFinished: _agent_finished,
    e.LaunchInterrupted: _launch_interrupted,
    e.VerificationQueued: _verification_queued,
    e.VerificationStarted: _verification_started,
    e.VerificationFinished: _verification_finished,
    e.AttemptEnded: _attempt_ended,
    e.WaitStarted: _wait_started,
    e.WaitEnded: _wait_ended,
    e.ClosingStarted: _closing_started,
    e.ClosingFinished: _closing_finished,
    e.StopAsked: _stop_asked,
    e.MergeAsked: _merge_asked,
    e.SavingStarted: _saving_started,
    e.SavingFinished: _saving_finished,
    e.MergeStarted: _merge_started,
    e.MergeFinished: _merge_finished,
    e.BeadDropped: _bead_dropped,
    e.BeadsReset: _beads_reset,
    e.BeadsReleased: _beads_released,
    e.OptionsChanged: _options_changed,
    e.Imported: _imported,
    AgentsSet: _agents_set,
    Ended: _ended,
}
"""SwarmBegan and EditRefused change nothing but the time of the last fact."""

evolve = partial(apply_event, _FACTS)
"""Applies an event to the state: state, event, the time when it happened."""
