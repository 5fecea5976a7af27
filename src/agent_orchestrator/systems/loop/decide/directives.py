"""Says what a person's directive means. A refusal names both states and what is allowed, out of the one table."""

from __future__ import annotations

from typing import Any

import msgspec

from agent_orchestrator import typed
from agent_orchestrator.core.effects import AgentChoice, AskHuman
from agent_orchestrator.core.events import Resumed, StopReason
from agent_orchestrator.core.inputs import Abort, Answer, Instruct, Pause, Resume
from agent_orchestrator.core.lifecycle import Phase, refuse
from agent_orchestrator.systems.loop.decide.outcomes import human_answered
from agent_orchestrator.systems.loop.events import (
    Concluded,
    LoopEvent,
    OptionsChanged,
    PauseAsked,
    PauseCancelled,
    Recovered,
    Steered,
)
from agent_orchestrator.systems.loop.spec import LoopSpec
from agent_orchestrator.systems.loop.state import UNIT, LoopState
from agent_orchestrator.systems.loop.transitions import LoopStatus, refusal

CHANGEABLE = (
    *("max_iterations", "timeout_minutes", "interactive", "auto_test", "checkpoint_interval", "execution_mode"),
    *("allow_fewer_tests", "test_command", "protected"),
)
"""Options that may be given anew when a loop goes on."""


def pause_loop(state: LoopState, directive: Pause) -> list[LoopEvent]:
    """Between iterations, or at once with `now`."""
    why = refusal(state.stage, LoopStatus.PAUSED)
    if why is not None:
        return refuse(directive, why)
    if directive.now or state.lifecycle.phase is Phase.ABORTING:
        return list(state.lifecycle.decide(directive))
    if state.pausing is not None:
        return refuse(directive, "the loop already pauses when this iteration ends; --now stops it at once")
    return [PauseAsked(reason=directive.reason)]


def abort_loop(state: LoopState, directive: Abort) -> list[LoopEvent]:
    """Stops the loop for good, where the table allows it."""
    why = refusal(state.stage, LoopStatus.ABORTED)
    return refuse(directive, why) if why is not None else list(state.lifecycle.decide(directive))


def resume_loop(state: LoopState, directive: Resume) -> list[LoopEvent]:
    """Goes on with the same count, with the options that were given."""
    if state.lifecycle.phase is Phase.ABORTING:
        return refuse(directive, "the loop is being aborted")
    if state.lifecycle.ended:
        why = refusal(state.status, LoopStatus.RUNNING) or "the loop has ended"
        way = f"; `orc loop resume {state.context.run}` starts a successor" if state.status is not LoopStatus.COMPLETED else ""
        return refuse(directive, f"{why}{way}")
    changes = dict(directive.changes)
    try:
        agent = typed.convert(changes.pop("agent", None), AgentChoice | None)
        spec = changed_spec(state.spec, changes)
    except (msgspec.ValidationError, ValueError) as error:
        return refuse(directive, str(error))
    events: list[LoopEvent] = [OptionsChanged(changes=changes, agent=agent)] if changes or agent is not None else []
    if state.stage is LoopStatus.PAUSED:
        if state.lifecycle.stop is not None and spec.agent is None and agent is None:
            return refuse(directive, "no agent is known for this loop; give --agent, --agent-command or --rehearse")
        return [*events, Resumed()]
    if state.pausing is not None:
        return [*events, PauseCancelled()]
    return events or refuse(directive, refusal(state.stage, LoopStatus.RUNNING) or "the loop is running already")


def changed_spec(spec: LoopSpec, changes: dict[str, Any]) -> LoopSpec:
    """The specification with these options; raises ValueError or ValidationError for one that cannot be changed."""
    unknown = [name for name in changes if name not in CHANGEABLE]
    if unknown:
        raise ValueError(f"{', '.join(unknown)} cannot be changed; these can: {', '.join(CHANGEABLE)}")
    made = typed.convert(msgspec.to_builtins(spec) | changes, LoopSpec)
    for name in ("max_iterations", "checkpoint_interval", "timeout_minutes"):
        value = getattr(made, name)
        if value is not None and value < 1:
            raise ValueError(f"{name} is {value}; it must be at least 1")
    return made


def answer_question(state: LoopState, directive: Answer) -> list[LoopEvent]:
    """Approves or rejects what a person was asked."""
    if not isinstance(state.doing.of(UNIT), AskHuman):
        return refuse(directive, "the loop asks nobody now")
    if directive.unit not in (None, UNIT):
        return refuse(directive, f"there is no unit {directive.unit!r} in a loop")
    return human_answered(state, directive.approved, directive.comments)


def instruct_loop(state: LoopState, directive: Instruct) -> list[LoopEvent]:
    """Follow what only loops understand: steering, a crash that somebody saw, a successor."""
    values = directive.values
    if directive.what == "steer":
        text = str(values.get("text", "")).strip()
        if state.lifecycle.ended or state.completing:
            return refuse(directive, f"the loop is {state.status}: there is no next prompt")
        return [Steered(text=text)] if text else refuse(directive, "there is nothing to tell the agent")
    if directive.what == "crashed":
        why = refusal(state.stage, LoopStatus.CRASHED)
        if why is not None:
            return refuse(directive, why)
        return [Concluded(stop=StopReason.FAILED, detail=str(values.get("detail", "")), crashed=True)]
    if directive.what == "recovered" and state.lifecycle.ended:
        return [Recovered(by=str(values.get("by", "")))]
    return refuse(directive, f"a loop that is {state.status} knows no {directive.what!r}")
