"""Notices: the rows of the journals' tail that a person is told of. The same events mean it in every system."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import msgspec

from agent_orchestrator import typed
from agent_orchestrator.config.subscribers import NoticeKind
from agent_orchestrator.core.events import StopReason
from agent_orchestrator.core.hold import Hold, HoldReason
from agent_orchestrator.core.ids import EffectId, unit_of
from agent_orchestrator.core.text import clip_line
from agent_orchestrator.store.port import StoredRun, TailRow

TOLD_CHARS = 300
"""Of what an agent or a person wrote."""

_TELLING = tuple(f'"{tag}"'.encode() for tag in ("ended", "human_asked", "paused", "unit_held", "budget_warned"))
_TAKEN_UP = b'"taken_up"'
_BY_STOP = {StopReason.COMPLETED: NoticeKind.DONE, StopReason.BUDGET_EXHAUSTED: NoticeKind.BUDGET}
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]+")


class Notice(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One fact for a person."""

    kind: str
    run: str
    name: str
    system: str
    words: str
    """The fact in a few of our own words."""
    detail: str = ""
    """The same in the words of an agent, a vendor or a person: plain text that nobody may take for markup."""
    unit: str = ""
    at_us: int
    ends: bool = False
    """True if the run is over with it."""


def find_notices(row: TailRow, run: StoredRun, *, anew: bool = False) -> Iterator[Notice]:
    """Yield what a row tells people; with `anew`, also the questions of a run that was just taken up again."""
    body = row.body
    # Rows that a fork took over are older than it, and what an import brings along happened elsewhere.
    if body is None or row.at_us < run.context.created_us or row.seq == 1:
        return
    if anew and _TAKEN_UP in body and run.summary.asks:
        for unit in run.summary.asks:
            yield _notice(row, run, NoticeKind.PERSON, "waits for an answer", unit=unit)
        return
    if not any(tag in body for tag in _TELLING):
        return
    try:
        yield from [notice for event in msgspec.json.decode(body) for notice in _find_in(row, run, event)]
    except (LookupError, TypeError, AttributeError, msgspec.MsgspecError):
        return  # Of another version: nobody is told of what cannot be read, and those after it are.


def _find_in(row: TailRow, run: StoredRun, event: dict[str, Any]) -> Iterator[Notice]:
    match event.get("event"):
        case "human_asked":
            unit = unit_of(EffectId(event["effect"]))
            yield _notice(row, run, NoticeKind.PERSON, "waits for an answer", event.get("question", ""), unit)
        case "ended":
            stop = event["stop"]
            told = _notice(row, run, _BY_STOP.get(stop, NoticeKind.FAILED), stop.replace("_", " "), event.get("detail", ""))
            yield msgspec.structs.replace(told, ends=True)
        case "paused" if event.get("stop") == StopReason.BUDGET_EXHAUSTED:
            yield _notice(row, run, NoticeKind.BUDGET, "is paused", event.get("reason", ""))
        case "budget_warned":
            spent = f"{event['spent']:g} of {event['limit']:g}"
            yield _notice(row, run, NoticeKind.BUDGET, f"has used {event['percent']} % of {event['what']} ({spent})")
        case "unit_held":
            hold = typed.convert(event["hold"], Hold)
            if hold.why is HoldReason.RATE_LIMIT:
                yield _notice(row, run, NoticeKind.PARKED, "is parked", hold.told, event["unit"])
            elif hold.why is HoldReason.BUDGET:
                yield _notice(row, run, NoticeKind.BUDGET, "is held", hold.told, event["unit"])


def _notice(row: TailRow, run: StoredRun, kind: NoticeKind, words: str, detail: str = "", unit: str = "") -> Notice:
    return Notice(
        kind=kind.value,
        run=run.id,
        name=plain_line(run.name),
        system=run.system,
        words=words,
        detail=plain_line(detail),
        unit=unit,
        at_us=row.at_us,
    )


def plain_line(text: str) -> str:
    """Return a text in one line, without control characters, and not too long."""
    return clip_line(_CONTROL.sub(" ", text), TOLD_CHARS)
