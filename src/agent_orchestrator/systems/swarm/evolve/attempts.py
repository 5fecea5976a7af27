"""Facts about one attempt of one bead: started, ended, verified, waiting. Each touches its bead and nothing else."""

from __future__ import annotations

from agent_orchestrator.core.effects import Wait
from agent_orchestrator.core.lifecycle import Facts
from agent_orchestrator.systems.swarm import events as e
from agent_orchestrator.systems.swarm.effects import close_bead, run_agent, run_verification
from agent_orchestrator.systems.swarm.evolve.marks import (
    end_attempt,
    free_tree,
    give_up,
    hold_tree,
    leave,
    queue_up,
    rest,
)
from agent_orchestrator.systems.swarm.records import AttemptStatus, start_record
from agent_orchestrator.systems.swarm.state import SwarmState


def _bead_queued(state: SwarmState, event: e.BeadQueued, at_us: int) -> None:
    state.dag.take(event.bead)
    queue_up(state, event.bead)


def _attempt_started(state: SwarmState, event: e.AttemptStarted, at_us: int) -> None:
    bead = event.bead
    held, spec = state.beads[bead], state.specs[bead]
    leave(state, bead)
    state.dag.take(bead)
    hold_tree(state, bead)
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
    leave(state, event.bead)
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
    leave(state, bead)
    if event.due == "agent":
        rest(state, bead)
    if event.due != "merge":  # The first in line goes on by itself.
        state.due[bead] = event.due


def _verification_queued(state: SwarmState, event: e.VerificationQueued, at_us: int) -> None:
    leave(state, event.bead)
    state.beads[event.bead].count_rerun(again=event.again)
    state.due[event.bead] = "verify"


def _verification_started(state: SwarmState, event: e.VerificationStarted, at_us: int) -> None:
    leave(state, event.bead)
    state.beads[event.bead].open_launch(event.effect, at_us)
    state.doing.put(run_verification(state, event.bead, event.effect))


def _verification_finished(state: SwarmState, event: e.VerificationFinished, at_us: int) -> None:
    leave(state, event.bead)
    state.beads[event.bead].end_check(event, state.specs[event.bead].verify or "")


def _attempt_ended(state: SwarmState, event: e.AttemptEnded, at_us: int) -> None:
    bead, verdict = event.bead, event.verdict
    held = state.beads[bead]
    leave(state, bead)
    end_attempt(state, bead, verdict, at_us, will_retry=event.will_retry)
    if verdict.failure_reason == "verification-failed":
        check = {"command": state.specs[bead].verify, "tail": held.evidence[-1].tail}
        held.tell({"attempt": held.attempt, "error": verdict.reason, "verification": check})
    if verdict.status is AttemptStatus.DONE:
        state.dag.finish(bead)
        free_tree(state, bead)
        if state.spec.bd_close:
            state.due[bead] = "close"
    elif not event.will_retry:
        give_up(state, bead, verdict.failure_reason or verdict.status.value)


def _wait_started(state: SwarmState, event: e.WaitStarted, at_us: int) -> None:
    leave(state, event.bead)
    rest(state, event.bead)
    state.beads[event.bead].launches += 1
    state.doing.put(Wait(id=event.effect, unit=event.bead, until_us=event.until_us, reason=event.reason))


def _wait_ended(state: SwarmState, event: e.WaitEnded, at_us: int) -> None:
    leave(state, event.bead)
    state.due[event.bead] = "agent"


def _closing_started(state: SwarmState, event: e.ClosingStarted, at_us: int) -> None:
    leave(state, event.bead)
    state.beads[event.bead].open_launch(event.effect, at_us)
    state.doing.put(close_bead(state, event.bead, event.effect))


def _closing_finished(state: SwarmState, event: e.ClosingFinished, at_us: int) -> None:
    held = state.beads[event.bead]
    leave(state, event.bead)
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


ATTEMPT_FACTS: Facts = {
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
}
