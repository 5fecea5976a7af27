"""What a person's directive means; a refusal says why and changes nothing."""

from __future__ import annotations

from typing import Any

import msgspec

from agent_orchestrator.core.effects import AskHuman
from agent_orchestrator.core.events import DirectiveRefused, Resumed, StopReason
from agent_orchestrator.core.inputs import Answer, Instruct, Resume
from agent_orchestrator.core.lifecycle import Phase
from agent_orchestrator.core.text import clip
from agent_orchestrator.systems.team.decide.people import judged
from agent_orchestrator.systems.team.events import OptionsChanged, RequirementAdded, TeamEvent
from agent_orchestrator.systems.team.spec import TeamSpec, read_wanted
from agent_orchestrator.systems.team.state import TeamState

CHANGEABLE = ("max_parallel", "max_attempts", "max_qa_rounds", "max_review_rounds")
"""Limits that may be given anew when a team goes on."""
REQUIREMENTS_MAX = 200


def resumed(state: TeamState, directive: Resume) -> list[TeamEvent]:
    """Goes on; what ended without being completed is tried again."""
    life = state.lifecycle
    if life.phase is Phase.ABORTING:
        return _refused(directive, "the run is being aborted")
    if life.ended and life.stop is StopReason.ABORTED:
        return _refused(directive, "it was aborted; its branches are kept, and a new team can go on from them")
    if life.ended and life.stop is StopReason.COMPLETED:
        return _refused(directive, "it is completed; there is nothing to go on with")
    try:
        changed_spec(state.spec, directive.changes)
    except (msgspec.ValidationError, ValueError) as error:
        return _refused(directive, str(error))
    changes: list[TeamEvent] = [OptionsChanged(changes=dict(directive.changes))] if directive.changes else []
    if not life.running:
        return [*changes, Resumed()]
    return changes or _refused(directive, "the run is running already")


def changed_spec(spec: TeamSpec, changes: dict[str, Any]) -> TeamSpec:
    """The specification with these limits; raises ValueError or ValidationError for what cannot be changed."""
    unknown = [name for name in changes if name not in CHANGEABLE]
    if unknown:
        raise ValueError(f"{', '.join(unknown)} cannot be changed; these can: {', '.join(CHANGEABLE)}")
    made = msgspec.convert(msgspec.to_builtins(spec) | changes, TeamSpec)
    for name in CHANGEABLE:
        if getattr(made, name) < 1:
            raise ValueError(f"{name} is {getattr(made, name)}; it must be at least 1")
    return made


def answered(state: TeamState, directive: Answer) -> list[TeamEvent]:
    """Approves or rejects what a person was asked."""
    found = _asked(state, directive.unit)
    if found not in _waiting(state):
        return _refused(directive, found)
    return judged(state, found, directive.approved, directive.comments)


def instructed(state: TeamState, directive: Instruct) -> list[TeamEvent]:
    """What only teams understand: one more requirement, an answer to a question."""
    values = directive.values
    text = clip(str(values.get("text", "")))
    if directive.what == "require":
        return _required(state, directive, text)
    if directive.what == "answer":
        return _told(state, directive, text)
    return _refused(directive, f"a team knows no {directive.what!r}")


def _told(state: TeamState, directive: Instruct, text: str) -> list[TeamEvent]:
    """Words answer the project manager's questions; they are no yes to anything else, whatever they say."""
    waiting = _waiting(state)
    asks = next((name for name in waiting if state.unit(name).asking == "clarification"), None)
    if asks is not None:
        return judged(state, asks, True, text) if text else _refused(directive, "there is no answer in it")
    if not waiting:
        return _refused(directive, "nobody is asked anything now")
    run, verb = state.context.run, "waits" if len(waiting) == 1 else "wait"
    way = f"`orc approve {run} {waiting[0]} --comments TEXT` or `orc reject {run} {waiting[0]} --comments TEXT`"
    return _refused(directive, f"{', '.join(waiting)} {verb} for a yes or a no, not for words: {way}")


def _required(state: TeamState, directive: Instruct, text: str) -> list[TeamEvent]:
    if state.lifecycle.ended or state.lifecycle.phase is Phase.ABORTING:
        return _refused(directive, "the run has ended: start a new one for what else is wanted")
    if not text:
        return _refused(directive, "there is no requirement in it")
    check = directive.values.get("check")
    wanted = read_wanted(text, check if isinstance(check, str) and check.strip() else None)
    if any(one.text == wanted.text for one in state.requirements):
        return _refused(directive, "that is a requirement already")
    if len(state.requirements) >= REQUIREMENTS_MAX:
        return _refused(directive, f"there are {REQUIREMENTS_MAX} requirements already")
    return [RequirementAdded(text=wanted.text, check=wanted.check)]


def _waiting(state: TeamState) -> list[str]:
    return [effect.unit for effect in state.doing if isinstance(effect, AskHuman)]


def _asked(state: TeamState, unit: str | None) -> str:
    """The unit that waits for a person, or the sentence that says why it is not clear which one is meant."""
    waiting = _waiting(state)
    if not waiting:
        return "nobody is asked anything now"
    if unit is None:
        return waiting[0] if len(waiting) == 1 else f"several wait for a person, name one: {', '.join(waiting)}"
    return unit if unit in waiting else f"{unit!r} does not wait for a person; these do: {', '.join(waiting)}"


def _refused(directive: Resume | Answer | Instruct, why: str) -> list[TeamEvent]:
    return [DirectiveRefused(directive=directive.id, why=why)]
