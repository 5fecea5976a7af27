"""Facts about the loop as a whole: an iteration is over, stuck, completing, ended, taken up, changed by people."""

from __future__ import annotations

import msgspec

from agent_orchestrator import typed
from agent_orchestrator.core.events import Aborted, Ended, HoldEnded, Paused, Resumed, StopReason, TakenUp, UnitHeld
from agent_orchestrator.core.lifecycle import Facts
from agent_orchestrator.core.units import US, from_iso
from agent_orchestrator.systems.loop import events as e
from agent_orchestrator.systems.loop.checkpoints import keep_checkpoint
from agent_orchestrator.systems.loop.evolve import old_rules
from agent_orchestrator.systems.loop.evolve.marks import most, stop_pausing
from agent_orchestrator.systems.loop.spec import LoopSpec, Tried
from agent_orchestrator.systems.loop.state import CHECKS_KEPT, LEARNINGS_KEPT, UNIT, Check, Iteration, LoopState

TRIED_KEPT = 50


def _iteration_finished(state: LoopState, event: e.IterationFinished, at_us: int) -> None:
    current = state.current
    assert current is not None, "an iteration was at work"
    current.ended_us, current.passed, current.blocked = at_us, event.passed, event.blocked
    current.progress, current.failed = event.progress, event.failed
    current.error, current.signature = event.error, event.signature
    before = state.iterations[-1].score if state.iterations else None
    current.score, current.delta = event.score, None if before is None else round(event.score - before, 1)
    state.iteration = event.iteration
    state.current = None
    state.iterations.append(current)
    state.worked_us += at_us - current.started_us
    state.successes += event.progress
    state.failures += event.failed
    state.failing = state.failing + 1 if event.failed else 0
    state.cooling = event.failed
    state.window += 1
    if event.moved_on:
        state.strikes = 0
    files = current.saved.files_changed if current.saved is not None else None
    tried = Tried(
        iteration=event.iteration, passed=event.passed, summary=current.summary[:300], error=event.error, files_changed=files
    )
    state.tried = [*state.tried, tried][-TRIED_KEPT:]
    _rate(state, current, event)
    state.tests_most = most(state.tests_most, current.tests)
    if event.blocked:
        said = f"the check passes, but {'; '.join(event.blocked)}: bring back what was there, this does not count as done"
        state.notices = (*state.notices, said)
    state.due = event.then or old_rules.then_after_iteration(event)
    checkpoint = event.checkpoint if event.then is not None else old_rules.checkpoint_of(state, event)
    if checkpoint:
        keep_checkpoint(state, current, checkpoint, at_us)


def _rate(state: LoopState, current: Iteration, event: e.IterationFinished) -> None:
    """The best iteration so far, and whether more of them bring little."""
    best = state.best
    if best is None or _rank(current) > _rank(best):
        state.best = current
    said = event.low_deltas is not None
    state.low_deltas = event.low_deltas if event.low_deltas is not None else old_rules.low_deltas_of(state, current)
    if not (event.plateau if said else state.low_deltas >= 2):
        state.plateau = None
    elif state.plateau is None:
        state.plateau = current.number


def _rank(one: Iteration) -> tuple[bool, float]:
    return bool(one.passed) and not one.blocked, one.score or 0.0


def _stuck_noticed(state: LoopState, event: e.StuckNoticed, at_us: int) -> None:
    state.strikes += 1
    state.window = 0
    state.evidence = event.evidence
    said = f"you seem to be stuck ({'; '.join(event.evidence)}): do something else than before, and say what and why"
    state.notices = (*state.notices, said)


def _completion_began(state: LoopState, event: e.CompletionBegan, at_us: int) -> None:
    state.completing, state.pausing, state.record.reruns = True, None, 0
    state.due = event.then or old_rules.then_completing(state)


def _concluded(state: LoopState, event: e.Concluded, at_us: int) -> None:
    state.doing.drop(UNIT)
    state.due = None
    state.conclusion, state.crashed = (event.stop, event.detail), event.crashed


def _options_changed(state: LoopState, event: e.OptionsChanged, at_us: int) -> None:
    changes = msgspec.to_builtins(state.spec) | event.changes
    state.spec = typed.convert(changes, LoopSpec)
    if event.agent is not None:
        state.spec = msgspec.structs.replace(state.spec, agent=event.agent)


def _imported(state: LoopState, event: e.Imported, at_us: int) -> None:
    state.iteration = state.first = event.iteration
    state.successes, state.failures = event.successes, event.failures
    state.tokens, state.cost_usd = event.tokens, event.cost_usd
    if event.started_at is not None:
        state.started_us = from_iso(event.started_at)
    state.over_us = from_iso(event.ended_at) if event.ended_at is not None else None
    until_us = at_us if state.over_us is None else state.over_us
    # Less than nothing where the file counts more time than lies between its own times.
    state.gap_us = state.paused_us = until_us - state.started_us - event.spent_s * US
    state.made, state.worked_us = event.made, round(event.worked_s * US)
    state.tried = [*state.tried, *event.tried][-TRIED_KEPT:]
    state.learnings = [*state.learnings, *event.learnings][-LEARNINGS_KEPT:]
    state.named_checkpoint, state.told_error = event.last_checkpoint, event.error or {}
    state.imported_from, state.left_out = event.file, event.left_out
    known = [typed.convert(check, Check, strict=False) for check in event.checks]
    state.checks = known[-CHECKS_KEPT:]
    state.check_output = known[-1].output if known else event.last_result


def _taken_up(state: LoopState, event: TakenUp, at_us: int) -> None:
    state.pid, state.driven = event.pid, True
    state.orphaned = state.lifecycle.running and state.doing.at_work > 0


def _paused(state: LoopState, event: Paused, at_us: int) -> None:
    state.lifecycle.evolve(event)
    state.pausing = None
    if state.paused_at_us is None:
        state.paused_at_us = at_us


def _resumed(state: LoopState, event: Resumed, at_us: int) -> None:
    state.lifecycle.evolve(event)
    stop_pausing(state, at_us)


def _unit_held(state: LoopState, event: UnitHeld, at_us: int) -> None:
    if state.paused_at_us is None and state.doing.holds:
        state.paused_at_us = at_us


def _hold_ended(state: LoopState, event: HoldEnded, at_us: int) -> None:
    stop_pausing(state, at_us)


def _aborted(state: LoopState, event: Aborted, at_us: int) -> None:
    state.lifecycle.evolve(event)
    state.pausing = None


def _ended(state: LoopState, event: Ended, at_us: int) -> None:
    state.doing.drop(UNIT)
    over_us = state.over_us if state.over_us is not None else at_us
    state.due, state.completing, state.ended_us = None, False, over_us
    if event.stop not in (StopReason.COMPLETED, StopReason.ABORTED):
        state.error = event.detail, over_us
    state.lifecycle.evolve(event)


def _steered(state: LoopState, event: e.Steered, at_us: int) -> None:
    state.steering.append(event.text)


def _pause_asked(state: LoopState, event: e.PauseAsked, at_us: int) -> None:
    state.pausing = event.reason


def _pause_cancelled(state: LoopState, event: e.PauseCancelled, at_us: int) -> None:
    state.pausing = None


def _recovered(state: LoopState, event: e.Recovered, at_us: int) -> None:
    state.recovered_by = event.by


LOOP_FACTS: Facts = {
    e.IterationFinished: _iteration_finished,
    e.StuckNoticed: _stuck_noticed,
    e.CompletionBegan: _completion_began,
    e.Concluded: _concluded,
    e.OptionsChanged: _options_changed,
    e.Imported: _imported,
    TakenUp: _taken_up,
    Paused: _paused,
    UnitHeld: _unit_held,
    HoldEnded: _hold_ended,
    Resumed: _resumed,
    Aborted: _aborted,
    Ended: _ended,
    e.Steered: _steered,
    e.PauseAsked: _pause_asked,
    e.PauseCancelled: _pause_cancelled,
    e.Recovered: _recovered,
}
