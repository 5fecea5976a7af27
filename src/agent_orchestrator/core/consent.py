"""Which directives count, the same for every system: not those of agents, not those of nobody, and no answer to a
question that is not the one asked now. Asked where a directive is sent and once more where it is taken."""

from __future__ import annotations

from agent_orchestrator.core.doing import Doing
from agent_orchestrator.core.effects import AskHuman
from agent_orchestrator.core.inputs import (
    Answer,
    HandBack,
    Instruct,
    Land,
    Pause,
    Posted,
    Publish,
    SetAgents,
    SetLimits,
    Speak,
    Steer,
    TakeOver,
)
from agent_orchestrator.core.who import Surface


def name_of(directive: Posted) -> str:
    """Name the directive as people do."""
    match directive:
        case Answer():
            return "approve" if directive.approved else "reject"
        case Instruct():
            return directive.what
        case SetLimits():
            return "set limits"
        case SetAgents():
            return "set agents"
        case Steer():
            return "steer"
        case TakeOver():
            return "attach"
        case HandBack():
            return "attach --hand-back"
        case Pause():
            return "pause"
        case Land():
            return "merge"
        case Publish():
            return "pr"
        case _:
            return type(directive).__name__.lower()


def question_of(doing: Doing, directive: Posted) -> AskHuman | None:
    """The question that the directive would answer now; None when it answers none, or when it is not clear which."""
    match directive:
        case Answer():
            unit = directive.unit
        case Instruct(what="answer"):
            unit = directive.values.get("unit")
        case _:
            return None
    asked = [effect for effect in doing if isinstance(effect, AskHuman) and unit in (None, effect.unit)]
    return asked[0] if len(asked) == 1 else None


def list_questions(doing: Doing) -> list[AskHuman]:
    """The questions to people: those that units wait for, and those that agents at work asked, which are answered in words."""
    asked = [effect for effect in doing if isinstance(effect, AskHuman)]
    return asked + [
        AskHuman(id=one.effect, unit=one.unit, question=one.text, after=one.effect, in_words=True)
        for one in doing.spoken.values()
    ]


def why_refused(doing: Doing, directive: Posted) -> str | None:
    """Say why the directive does not count, in words that follow the run's name; None when it does."""
    who = directive.who
    if isinstance(directive, Speak):
        return None if who is not None and who.launch == directive.effect else "an agent speaks only for its own launch"
    if who is not None and who.launch is not None:
        return f"`{name_of(directive)}` came from inside the launch {who.launch}, and agents may not direct runs"
    if who is not None and who.surface is Surface.UNKNOWN:
        return f"`{name_of(directive)}` does not say who sent it; say it again with `orc`"
    asked = directive.asked if isinstance(directive, Answer | Instruct) else None
    if asked is None or doing.wants(asked):
        return None
    now = question_of(doing, directive)
    if now is not None:
        return f"{now.unit} has asked anew since that answer was given; look at it again, then answer"
    return None if isinstance(directive, Answer) and directive.unit is not None else "what was answered is not asked any more"
