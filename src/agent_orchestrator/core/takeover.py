"""A person takes the session of a unit's agent over, and hands it back: the same for every system.

Between the two the engine holds the unit; everything else of the run goes on.
"""

from __future__ import annotations

from typing import Any

from agent_orchestrator.core.effects import RunAgent
from agent_orchestrator.core.events import DirectiveRefused, Event, UnitHandedBack, UnitSteered, UnitTakenOver
from agent_orchestrator.core.inputs import HandBack, TakeOver
from agent_orchestrator.core.lifecycle import Phase

DONE = "A person took over your session and says that the work is done: change nothing more, only report on what is there."
"""The report is the agent's, because each unit has a form of its own for it, and a check judges the work as always."""


def decide_takeover(state: Any, directive: TakeOver | HandBack) -> list[Event]:
    """Say what it means now: there has to be an agent whose session can be taken over, or one that was."""
    unit, life = directive.unit, state.lifecycle
    if isinstance(directive, HandBack):
        if unit in state.doing.taken:
            told = [UnitSteered(text=DONE, unit=unit)] if directive.done else []
            return [*told, UnitHandedBack(unit=unit)]
        why = f"nobody has taken {unit} over"
    elif life.ended or life.phase is Phase.ABORTING:
        why = f"it is {life.status}: no agent of it goes on"
    elif isinstance(state.doing.of(unit), RunAgent):
        return [UnitTakenOver(unit=unit)]
    elif unit in known_units(state):
        why = f"no agent is at work on {unit} now"
    else:
        why = say_unknown(state, unit)
    return [DirectiveRefused(directive=directive.id, why=why)]


def taken_over(state: Any, event: UnitTakenOver) -> None:
    """Apply that a person took over."""
    state.doing.take_over(event)


def handed_back(state: Any, event: UnitHandedBack) -> None:
    """Apply that a person handed back; the engine looks at its hold again."""
    state.doing.taken.discard(event.unit)


def known_units(state: Any) -> list[str]:
    """Return the names of units that there are."""
    return list(dict.fromkeys([*state.steps, *(effect.unit for effect in state.doing)]))


def say_unknown(state: Any, unit: str) -> str:
    """Say that there is no such unit, and which there are."""
    return f"there is no unit {unit!r}; there are: {', '.join(known_units(state)[:20])}"
