"""A run in one line: what `orc list` and `orc status` show without reading the journal."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from agent_orchestrator.core.doing import Doing
from agent_orchestrator.core.effects import AskHuman, AwaitGates
from agent_orchestrator.core.events import StopReason
from agent_orchestrator.core.hold import HoldReason
from agent_orchestrator.core.limits import TAIL_CHARS

ASKS_SHOWN = 8
QUESTIONS_SHOWN = 3
CHECKS_SHOWN = 3
UNITS_MAX = 500
"""Of a run with more units than this it is not looked up what proves it."""


class Proof(msgspec.Struct, frozen=True, kw_only=True):
    """A check that passed."""

    unit: str
    command: str
    duration_s: float


class AskedQuestion(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A question to a person."""

    unit: str
    text: str
    in_words: bool = False
    """True for one to be answered, not something to approve or reject."""
    spoken: bool = False
    """True for one of an agent that works on meanwhile."""


class Summary(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Cheap to make: a system keeps the counts as it goes."""

    status: str
    """running, waiting, paused, aborting, or the stop reason of an ended run."""
    stop: StopReason | None = None
    detail: str = ""
    done: int = 0
    total: int = 0
    failed: int = 0
    doing: tuple[str, ...] = ()
    """A few of the units at work, for people."""
    asks: tuple[str, ...] = ()
    """A few of the units that wait for a person or whose agent asks one something, also while others work."""
    questions: tuple[AskedQuestion, ...] = ()
    """A few of their questions."""
    proofs: tuple[Proof, ...] | None = None
    """The newest checks that passed, once it has ended; None where that is not looked up."""
    error: str = ""
    """The error of the unit that it failed by, looked up with the proofs."""
    taken_over: tuple[str, ...] = ()
    """A few of the units whose session a person has taken over."""
    facts: dict[str, Any] = {}
    """Facts for the system's overview of all its runs."""

    @property
    def ended(self) -> bool:
        """True when nothing more will happen by itself or by an answer."""
        return self.status not in {"running", "waiting", "paused", "aborting"}


def asking(summary: Summary, doing: Doing) -> Summary:
    """The summary with the units that wait for a person, and their questions."""
    if summary.ended:
        return summary
    asked = [effect for effect in doing if isinstance(effect, AskHuman)]
    asks = [*(effect.unit for effect in asked), *doing.spoken]
    if not asks:
        return summary
    questions = [
        AskedQuestion(unit=one.unit, text=one.question[:TAIL_CHARS], in_words=one.in_words) for one in asked[:QUESTIONS_SHOWN]
    ]
    spoken = list(doing.spoken.values())[:QUESTIONS_SHOWN]
    questions += [AskedQuestion(unit=one.unit, text=one.text[:TAIL_CHARS], spoken=True) for one in spoken]
    return msgspec.structs.replace(summary, asks=tuple(asks[:ASKS_SHOWN]), questions=tuple(questions))


def closing(summary: Summary, state: Any, details: Callable[[Any], dict[str, Any]]) -> Summary:
    """The summary of an ended run with what proves it, or the error that it failed by; any other as it is."""
    if not summary.ended or summary.total > UNITS_MAX:
        return summary
    proofs = tuple(_find_proofs(details(state).get("steps", {}))[-CHECKS_SHOWN:])
    error = _find_error(getattr(state, "steps", {}), summary.detail)
    return msgspec.structs.replace(summary, proofs=proofs, error=error[:TAIL_CHARS])


def _find_proofs(steps: dict[str, Any]) -> list[Proof]:
    """Return the checks that passed, the newest of each command and unit; one that failed later is none."""
    newest: dict[tuple[str, str], dict[str, Any]] = {}
    for unit, step in steps.items():
        for one in step.get("evidence", ()):
            newest[unit, one["command"]] = one
    passed = [
        (unit, one) for (unit, _), one in newest.items() if one["exit_code"] == 0 and not one["void"] and not one["failure"]
    ]
    return [Proof(unit=unit, command=one["command"], duration_s=one["duration_s"]) for unit, one in passed]


def _find_error(steps: dict[str, Any], detail: str) -> str:
    """Return the error of the first unit that the run's own words name, with its unit."""
    failed = [unit.strip() for unit in detail.split(",")]
    errors = [f"{unit}: {steps[unit].last_error}" for unit in failed if unit in steps and steps[unit].last_error]
    return errors[0] if errors else ""


def parked(summary: Summary, doing: Doing) -> Summary:
    """The summary of a run in which nothing can go on before a rate limit is over or a person hands back; any other as it is."""
    holds = doing.holds
    if not holds:
        return summary
    taken = tuple(unit for unit, hold in holds.items() if hold.why is HoldReason.PERSON)[:ASKS_SHOWN]
    if taken and not summary.ended:
        summary = msgspec.structs.replace(summary, taken_over=taken)
    if summary.status != "running" or any(hold.why not in (HoldReason.RATE_LIMIT, HoldReason.PERSON) for hold in holds.values()):
        return summary
    if not all(effect.unit in holds or isinstance(effect, AskHuman | AwaitGates) for effect in doing):
        return summary
    limited = [hold for hold in holds.values() if hold.why is HoldReason.RATE_LIMIT]
    if not limited:
        told = f"the person who took over {', '.join(taken)}"
        return msgspec.structs.replace(summary, status="waiting", stop=StopReason.WAITING_ON_HUMAN, detail=told)
    first = min(limited, key=lambda hold: (hold.until_us or 0, hold.effect))
    return msgspec.structs.replace(summary, status="waiting", stop=StopReason.RATE_LIMITED, detail=first.told)


def waits_for_people(doing: Doing) -> bool:
    """Say whether nothing but a person can move the run: by an answer, by opening a gate, or by handing a session back."""
    held = {unit for unit, hold in doing.holds.items() if hold.why is HoldReason.PERSON} if doing.holds else ()
    return len(doing) > 0 and all(isinstance(effect, AskHuman | AwaitGates) or effect.unit in held for effect in doing)
