"""The past of a foreign loop: the iterations and checks that its file tells of."""

from __future__ import annotations

from typing import Any

import msgspec

from agent_orchestrator.core.foreign.account import FieldAccount
from agent_orchestrator.core.foreign.fields import ForeignFields
from agent_orchestrator.core.foreign.values import count_of, flag_of, number_of, say, text_of, texts_of, time_of
from agent_orchestrator.core.units import US, from_iso
from agent_orchestrator.systems.loop.spec import Tried
from agent_orchestrator.systems.loop.spellings import ENTRY, NAMES, status_of
from agent_orchestrator.systems.loop.transitions import LoopStatus

SUMMARY_CHARS_MAX = 300
"""As long as the summary of an iteration of ours: the next agents are told of them."""

_VERDICTS = {LoopStatus.COMPLETED: True, LoopStatus.FAILED: False, LoopStatus.CRASHED: False, LoopStatus.ABORTED: False}


class History(msgspec.Struct, frozen=True, kw_only=True):
    """The iterations of a file, and what was learned in them."""

    tried: tuple[Tried, ...] = ()
    count: int | None = None
    """The number of them, in a file that only counts them."""
    learnings: tuple[str, ...] = ()
    began: str | None = None
    ended: str | None = None
    timed: int = 0
    """Iterations whose duration is known."""
    worked_s: float = 0.0


def read_history(fields: ForeignFields, account: FieldAccount) -> History:
    """Read the history of a loop and its learnings; how many iterations it counts is read elsewhere."""
    tried: list[Tried] = []
    count: int | None = None
    learnings = list(fields.read("learnings", texts_of) or ())
    moments: list[str] = []
    durations: list[float] = []
    for key, value in fields.spellings("history"):
        place = fields.place(key)
        if not isinstance(value, list):
            count = count_of(value) if count is None else count
            account.take(place) if value is None or count is not None else account.leave(f"{place} ({say(value)} is no history)")
            continue
        account.take(f"{place} as what was tried")
        for number, entry in enumerate(value, 1):
            if isinstance(entry, str) and entry.strip():
                tried.append(Tried(iteration=number, passed=None, summary=_cut(entry, place, account)))
            elif isinstance(entry, dict):
                inner = ForeignFields(entry, account, f"{place}[]", ENTRY)
                tried.append(_read_entry(inner, number, place, account))
                learnings += inner.read("learnings", texts_of) or ()
                times = [time for time in (inner.read("started_at", time_of), inner.read("completed_at", time_of)) if time]
                durations += _read_duration(inner, times)
                moments += times
                inner.leave_rest()
            else:
                account.leave(f"{place}[{number - 1}] ({say(entry)} is not an iteration)")
    return History(
        tried=tuple(tried),
        count=count,
        learnings=tuple(dict.fromkeys(learnings)),
        began=min(moments, key=from_iso, default=None),
        ended=max(moments, key=from_iso, default=None),
        timed=len(durations),
        worked_s=sum(durations),
    )


def _read_entry(inner: ForeignFields, number: int, place: str, account: FieldAccount) -> Tried:
    passed, word = inner.read("passed", flag_of), inner.read("status", status_of)
    said = [text for name in ("summary", "notes") if (text := inner.read(name, text_of)) is not None]
    return Tried(
        iteration=inner.read("iteration", count_of) or number,
        passed=passed if passed is not None else _VERDICTS.get(word) if word is not None else None,
        summary=_cut(": ".join(said), place, account),
        error=_cut(inner.read("error", text_of) or "", place, account),
    )


def _read_duration(inner: ForeignFields, times: list[str]) -> list[float]:
    seconds, milliseconds = inner.read("duration_seconds", number_of), inner.read("duration_ms", number_of)
    if seconds is not None:
        return [seconds]
    if milliseconds is not None:
        return [milliseconds / 1000]
    between_us = from_iso(times[1]) - from_iso(times[0]) if len(times) == 2 else -1
    return [between_us / US] if between_us >= 0 else []


def _cut(text: str, place: str, account: FieldAccount) -> str:
    if len(text) > SUMMARY_CHARS_MAX:
        account.change(f"{place}: texts longer than {SUMMARY_CHARS_MAX} characters are cut")
    return text[:SUMMARY_CHARS_MAX]


def read_checks(fields: ForeignFields, account: FieldAccount) -> tuple[dict[str, Any], ...]:
    """Read the checks of `progress`; an entry without a verdict or a time is none."""
    kept: list[dict[str, Any]] = []
    for progress in fields.within("progress"):
        for key, value in progress.spellings("completion_checks"):
            place = progress.place(key)
            account.take(place)
            for number, entry in enumerate(value if isinstance(value, list) else [value] if value is not None else []):
                check = _read_check(entry, f"{place}[{number}]" if isinstance(value, list) else place, account)
                kept += [check] if check is not None else []
        for key, value in progress.spellings("last_completion_check"):
            check = _read_check(value, progress.place(key), account) if value is not None else None
            kept += [check] if check is not None and check not in kept else []
        progress.leave_rest()
    return tuple(kept)


def _read_check(entry: object, place: str, account: FieldAccount) -> dict[str, Any] | None:
    inner = ForeignFields(entry if isinstance(entry, dict) else {}, account, place, NAMES)
    iteration, passed = inner.read("iteration", count_of), inner.read("passed", flag_of)
    moment, output = (
        inner.read("timestamp", time_of),
        inner.read("output", lambda value: value if isinstance(value, str) else None),
    )
    inner.leave_rest()
    if iteration is None or passed is None or moment is None:
        account.change(f"{place}: {say(entry)} is not a check, it is left out")
        return None
    return {"iteration": iteration, "timestamp": moment, "passed": passed, "output": output or ""}
