"""The records of beads: run and result merged into one outcome, whatever format they have: full, minimal or legacy.

Records come from any tool: a field of a wrong type is as good as none, a placeholder is no time.
"""

from __future__ import annotations

import re
from datetime import datetime
from typing import Any

import msgspec

from agent_orchestrator import typed

CUSTOM = "custom"
"""The template of a bead that had none."""

_PLACEHOLDER = re.compile(r"'?\$[A-Z_]+'?\Z")


class Outcome(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One bead, by its newest attempt; None means that it is not known."""

    bead: str
    status: str
    attempt: int = 1
    agent: str = "unknown"
    model: str = "unknown"
    template: str = CUSTOM
    started_s: float | None = None
    duration_s: float | None = None
    failure_reason: str | None = None
    cost_usd: float | None = None


class Record(msgspec.Struct, gc=False):
    """A run or result record, as far as analysis looks at it."""

    bead: Any = None
    agent: Any = None
    model: Any = None
    status: Any = None
    attempt: Any = 1
    started_at: Any = None
    finished_at: Any = None
    duration_seconds: Any = None
    failure_reason: Any = None
    template_name: Any = None
    reason: Any = None


decode_record = typed.decoder(Record)


def is_placeholder(text: object) -> bool:
    """Return True if a script forgot to fill this time in, as in '$START'."""
    return isinstance(text, str) and _PLACEHOLDER.match(text) is not None


def read_seconds(text: object) -> float | None:
    """Return a time of a record as seconds since the epoch; None for anything else."""
    if not isinstance(text, str) or not text[:1].isdigit():
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return moment.timestamp() if moment.tzinfo is not None else None


def merge_records(run: Record | None, result: Record | None, cost_usd: float | None = None) -> Outcome | None:
    """Merge a bead's two records; a result of another attempt than the run's newest says nothing about it."""
    newest = run if run is not None else result
    if newest is None or not isinstance(newest.bead, str):
        return None
    attempt = newest.attempt if isinstance(newest.attempt, int) else 1
    ended = result if result is not None and (run is None or result.attempt == run.attempt) else None
    status = ended.status if ended is not None else run.status if run is not None else None
    known = [one for one in (ended, run) if one is not None]
    started_s = next((at for one in known if (at := read_seconds(one.started_at)) is not None), None)
    finished_s = next((at for one in known if (at := read_seconds(one.finished_at)) is not None), None)
    failed = status in ("failed", "timeout")
    return Outcome(
        bead=newest.bead,
        status=status if status in ("done", "failed", "timeout", "running") else "running" if ended is None else "unknown",
        attempt=attempt,
        agent=_text(known, "agent") or "unknown",
        model=_text(known, "model") or "unknown",
        template=_text(known, "template_name") or CUSTOM,
        started_s=started_s if started_s is not None else finished_s,
        duration_s=_duration(known, started_s, finished_s),
        failure_reason=(_text(known, "failure_reason") or _text(known, "reason") or status) if failed else None,
        cost_usd=cost_usd,
    )


def _text(known: list[Record], name: str) -> str | None:
    for one in known:
        value = getattr(one, name)
        if isinstance(value, str) and value:
            return value
    return None


def _duration(known: list[Record], started_s: float | None, finished_s: float | None) -> float | None:
    for one in known:
        seconds = one.duration_seconds
        if isinstance(seconds, int | float) and not isinstance(seconds, bool) and seconds >= 0:
            return float(seconds)
    if started_s is None or finished_s is None or finished_s < started_s:
        return None
    return finished_s - started_s
