"""Says what follows by itself: the next start, a pause at the end of an iteration, or the end of the loop."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from agent_orchestrator.core.effects import AskHuman
from agent_orchestrator.core.events import Ended, Paused, StopReason
from agent_orchestrator.core.judging import retry_us
from agent_orchestrator.core.lifecycle import Phase
from agent_orchestrator.core.units import say_count, say_duration, was_or_were
from agent_orchestrator.systems.loop.events import (
    BackoffStarted,
    CheckStarted,
    CompletionBegan,
    ConfirmationStarted,
    HumanAsked,
    IterationStarted,
    LoopEvent,
    SavingStarted,
    TreeSaved,
)
from agent_orchestrator.systems.loop.iterations import STEERS_BEFORE_STOP, judge_iteration
from agent_orchestrator.systems.loop.state import UNIT, LoopState
from agent_orchestrator.systems.loop.steps import after_saving, first_verification

OUTPUT_CHARS = 200
NO_AGENT = "no agent is known for this loop: resume it with --agent, --agent-command or --rehearse"


def advance(state: LoopState, now_us: int) -> Sequence[LoopEvent]:
    """The next facts, or none."""
    life = state.lifecycle
    if life.phase is Phase.ABORTING:
        return () if state.doing.active else [Ended(stop=StopReason.ABORTED, detail=life.detail)]
    if not life.running or state.doing.active:
        return ()
    if state.conclusion is not None:
        stop, detail = state.conclusion
        return [Ended(stop=stop, detail=detail)]
    if state.pausing is not None and _may_pause(state):
        return [Paused(reason=state.pausing)]
    if len(state.doing) or state.due is None:
        return ()
    return _STARTS[state.due](state, now_us)


def _may_pause(state: LoopState) -> bool:
    """Between iterations, or while a person is asked; a loop that is about to complete completes."""
    if state.completing or state.due in ("complete", "judge"):
        return False
    return state.current is None or isinstance(state.doing.of(UNIT), AskHuman)


def _save(state: LoopState, now_us: int) -> list[LoopEvent]:
    number = state.current.number if state.current is not None else 0
    if not state.spec.git:
        return [TreeSaved(iteration=number, unavailable=state.untracked, then=after_saving(state))]
    return [SavingStarted(effect=state.name_effect("save", number), iteration=number)]


def _next(state: LoopState, now_us: int) -> list[LoopEvent]:
    """The next iteration, unless something speaks against it."""
    spec, done = state.spec, state.iteration
    if done >= spec.max_iterations:
        blocked = state.iterations[-1].blocked if state.iterations else ()
        said = state.check_output.strip()[-OUTPUT_CHARS:]
        why = f": {'; '.join(blocked)}" if blocked else f", the last check said: {said}" if said else ""
        made = f"{done} of {say_count(spec.max_iterations, 'iteration')} {was_or_were(done)} made"
        return [Ended(stop=StopReason.LIMIT_REACHED, detail=f"{made}{why}")]
    left_s = state.time_left_s(now_us)
    if left_s is not None and left_s <= 0:
        took = say_duration((spec.timeout_minutes or 0) * 60)
        return [Ended(stop=StopReason.TIMED_OUT, detail=f"the time of {took} is used up after {say_count(done, 'iteration')}")]
    if state.strikes > STEERS_BEFORE_STOP:
        return _stuck(state)
    if spec.agent is None:
        return [Paused(reason=NO_AGENT)]
    if state.cooling:
        effect = state.name_effect("wait")
        until_us = retry_us(state.failing, effect, now_us)
        return [BackoffStarted(effect=effect, until_us=until_us, reason=state.iterations[-1].agent_error)]
    return [IterationStarted(effect=state.name_effect("agent", done + 1), iteration=done + 1)]


def _stuck(state: LoopState) -> list[LoopEvent]:
    evidence = "; ".join(state.evidence)
    if state.spec.interactive and state.accepted is None:
        question = f"The loop is stuck ({evidence}). Go on? Comments are told to the agent."
        return [HumanAsked(effect=state.name_effect("human"), about="stuck", question=question, after=state.record.agent_launch)]
    return [Ended(stop=StopReason.STUCK, detail=f"the loop is stuck: {evidence}")]


def _agent(state: LoopState, now_us: int) -> list[LoopEvent]:
    return [IterationStarted(effect=state.name_effect("agent"), iteration=state.number)]


def _confirm(state: LoopState, now_us: int) -> list[LoopEvent]:
    if state.spec.confirm_with is not None:
        return [ConfirmationStarted(effect=state.name_effect("confirm"))]
    said = f" ({state.current.summary})" if state.current is not None and state.current.summary else ""
    question = f"Is this so: {state.spec.completion}? The agent says that it is{said}."
    effect = state.name_effect("human")
    return [HumanAsked(effect=effect, about="criterion", question=question, after=state.record.agent_launch)]


def _complete(state: LoopState, now_us: int) -> list[LoopEvent]:
    early = "the check passed before the first iteration"
    why = early if state.early else f"the criterion was met in iteration {state.iteration}"
    return [CompletionBegan(why=why, then=first_verification(state))]


def _check(purpose: str) -> Callable[[LoopState, int], list[LoopEvent]]:
    return lambda state, now_us: [CheckStarted(effect=state.name_effect(purpose), purpose=purpose)]


def _done(state: LoopState, now_us: int) -> list[LoopEvent]:
    if state.early:
        return [Ended(stop=StopReason.COMPLETED, detail="the check passed before the first iteration: nothing was to be done")]
    return [Ended(stop=StopReason.COMPLETED, detail=f"the criterion was met after {say_count(state.iteration, 'iteration')}")]


_STARTS: dict[str, Callable[[LoopState, int], list[LoopEvent]]] = {
    "save": _save,
    "before": _check("before"),
    "next": _next,
    "agent": _agent,
    "check": _check("check"),
    "confirm": _confirm,
    "judge": lambda state, now_us: judge_iteration(state),
    "complete": _complete,
    "criterion": _check("criterion"),
    "tests": _check("tests"),
    "done": _done,
}
