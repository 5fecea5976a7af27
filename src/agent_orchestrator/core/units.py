"""Durations, money, counts and timestamps: strict readers and the one spelling we write.

Times are whole microseconds since the epoch (`_us`): exact, ordered, and equal after a round trip through JSON.
"""

from __future__ import annotations

import math
import re
from datetime import UTC, datetime, timedelta
from functools import lru_cache

from agent_orchestrator.errors import InvalidValue

US = 1_000_000

DURATION_MAX_S = 100 * 365 * 86_400.0
"""A hundred years: what ends later has no date that every program can write."""
MONEY_MAX_USD = 1e12
COUNT_MAX = 2**53
"""Beyond it a number of JSON is not the same number everywhere."""

_SECOND_NS = 1_000_000_000
_TICK_NS = 10_000_000
_COARSE_NS = 2 * _SECOND_NS

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_DURATION = re.compile(r"\s*(?:(\d+(?:\.\d+)?)\s*h)?\s*(?:(\d+(?:\.\d+)?)\s*m)?\s*(?:(\d+(?:\.\d+)?)\s*s?)?\s*\Z", re.I)


@lru_cache(maxsize=16)
def iso(at_us: int) -> str:
    """2025-01-15T14:30:00.123456Z: always six decimals. The facts of one row share their time."""
    second, rest_us = divmod(at_us, US)
    return f"{_iso_second(second)}.{str(US + rest_us)[1:]}Z"


@lru_cache(maxsize=256)
def _iso_second(second: int) -> str:
    """The facts of one tick share their second, and a journal of 10,000 steps is folded in one go."""
    return (_EPOCH + timedelta(seconds=second)).isoformat(timespec="seconds")[:19]


def day_start_us(at_us: int) -> int:
    """Return the beginning of a time's day, in UTC."""
    return at_us - at_us % (86_400 * US)


def latest_ns(changed_ns: int) -> int:
    """Return when a file may have changed at the latest: its time is that of the tick before, of the second on old file systems.

    A tick takes up to 10 ms, and FAT counts in steps of two seconds.
    """
    return changed_ns + (_TICK_NS if changed_ns % _SECOND_NS else _COARSE_NS)


def from_iso(text: str) -> int:
    """Microseconds since the epoch of an ISO 8601 time, one without a zone taken as UTC; raises ValueError."""
    moment = datetime.fromisoformat(text.replace("Z", "+00:00"))
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    try:
        moment = moment.astimezone(UTC)
    except OverflowError as error:  # Its zone takes it out of the calendar.
        raise ValueError(str(error)) from None
    return (moment - _EPOCH) // timedelta(microseconds=1)


def read_duration_s(value: object, what: str) -> float:
    """Seconds from a number, `90`, `90s`, `10m`, `2h`, `1h30m`; positive and finite."""
    seconds: float | None = None
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        seconds = as_float(value)
    elif isinstance(value, str) and value.strip() and (match := _DURATION.match(value)):
        hours, minutes, rest = (float(part) if part else 0.0 for part in match.groups())
        seconds = hours * 3600 + minutes * 60 + rest
    if seconds is None or not 0 < seconds <= DURATION_MAX_S:
        most = ", at most a hundred years" if seconds is not None and seconds > DURATION_MAX_S else ""
        raise InvalidValue(what=what, value=value, expected=f"a positive duration such as 90, 90s, 10m or 2h{most}")
    return seconds


def read_count(value: object, what: str, minimum: int = 1) -> int:
    """A whole number not below the minimum; `nan`, `-1`, `1.5` and True are refused."""
    number: int | None = None
    if isinstance(value, int) and not isinstance(value, bool):
        number = value
    elif isinstance(value, str) and re.fullmatch(r"[+-]?\d{1,18}", value.strip()):
        number = int(value)
    if number is None or not minimum <= number <= COUNT_MAX:
        most = f" and at most {COUNT_MAX}" if number is not None and number > COUNT_MAX else ""
        raise InvalidValue(what=what, value=value, expected=f"a whole number, at least {minimum}{most}")
    return number


def read_money(value: object, what: str) -> float:
    """Dollars: 20, 20.5 or $20; positive and finite."""
    amount = math.nan
    if isinstance(value, int | float) and not isinstance(value, bool):
        amount = as_float(value)
    elif isinstance(value, str) and value.isascii() and "_" not in value:
        try:
            amount = float(value.strip().removeprefix("$"))
        except ValueError:
            amount = math.nan
    if not 0 < amount <= MONEY_MAX_USD:
        raise InvalidValue(what=what, value=value, expected=f"a positive amount such as 20 or $20{_most_usd(amount)}")
    return amount


def _most_usd(amount: float) -> str:
    return f", at most {MONEY_MAX_USD:.0f}" if amount > MONEY_MAX_USD else ""


def as_float(number: float) -> float:
    """Return a number as floating point; infinity for a whole number beyond its range, which Python would not convert."""
    try:
        return float(number)
    except OverflowError:
        return math.copysign(math.inf, number > 0 or -1)


def say_duration(seconds: float) -> str:
    """0.8s, 42s, 3m 07s, 2h 05m: for people."""
    if seconds < 10:
        return f"{seconds:.1f}s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole}s"
    if whole < 3600:
        return f"{whole // 60}m {whole % 60:02d}s"
    return f"{whole // 3600}h {whole % 3600 // 60:02d}m"


def say_cost(cost_usd: float | None, *, partly: bool = False) -> str:
    """$0.75, `>= $0.75` when only a part is known, "unknown" when nothing is; four decimals below a dime."""
    if cost_usd is None:
        return "unknown"
    amount = f"${cost_usd:.4f}" if 0 < cost_usd < 0.1 else f"${cost_usd:,.2f}"
    return f">= {amount}" if partly else amount


def say_count(number: int, noun: str) -> str:
    """1 file, 2 files, 2 launches: for people."""
    if number == 1:
        return f"{number} {noun}"
    return f"{number} {noun}{'es' if noun.endswith('ch') else 's'}"


def was_or_were(number: int) -> str:
    """The verb after a count."""
    return "was" if number == 1 else "were"
