"""A run in one line: what `orc list` and `orc status` show without reading the journal."""

from __future__ import annotations

from typing import Any

import msgspec

from agent_orchestrator.core.doing import Doing
from agent_orchestrator.core.effects import AskHuman, AwaitGates
from agent_orchestrator.core.events import StopReason
from agent_orchestrator.core.hold import HoldReason


class Summary(msgspec.Struct, frozen=True, kw_only=True):
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
    taken_over: tuple[str, ...] = ()
    """A few of the units whose session a person has taken over."""
    facts: dict[str, Any] = {}
    """Facts for the system's overview of all its runs."""

    @property
    def ended(self) -> bool:
        """True when nothing more will happen by itself or by an answer."""
        return self.status not in {"running", "waiting", "paused", "aborting"}


ASKS_SHOWN = 8


def asking(summary: Summary, doing: Doing) -> Summary:
    """The summary with the units that wait for a person."""
    asks = [effect.unit for effect in doing if isinstance(effect, AskHuman)] if not summary.ended else []
    asks += doing.spoken if not summary.ended else ()
    return msgspec.structs.replace(summary, asks=tuple(asks[:ASKS_SHOWN])) if asks else summary


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
