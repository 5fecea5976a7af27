"""Money and time as people write them in a task document, and as the state file shows them."""

from __future__ import annotations

import math
import re
from typing import Any

import msgspec

from agent_orchestrator.core.budget import Amounts, Budget
from agent_orchestrator.core.units import MONEY_MAX_USD, US, read_count, read_duration_s
from agent_orchestrator.errors import InvalidValue
from agent_orchestrator.systems.phases.spec import UNLIMITED, Bounds

_WORDS = ((r"\s*(?:hours?|hrs?)\b", "h"), (r"\s*(?:minutes?|mins?)\b", "m"), (r"\s*(?:seconds?|secs?)\b", "s"))


def read_money_usd(value: object, what: str) -> float | None:
    """Read dollars out of `$10`, `10 USD`, `10.50`; None for `unlimited`."""
    text = str(value).strip()
    if text.lower() == UNLIMITED:
        return None
    match = re.fullmatch(r"\$?\s*(\d[\d,]*(?:\.\d+)?|\.\d+)\s*(?:USD)?", text, re.I)
    amount = float(match[1].replace(",", "")) if match is not None else math.nan
    if not 0 < amount <= MONEY_MAX_USD:
        raise InvalidValue(what=what, value=value, expected="a positive amount such as $10, 10 USD or unlimited")
    return amount


def read_time_s(value: object, what: str) -> float | None:
    """Read seconds out of `2h`, `2 hours`, `90m`, `1h 30m`; None for `unlimited`."""
    text = str(value).strip().lower()
    if text == UNLIMITED:
        return None
    for pattern, letter in _WORDS:
        text = re.sub(pattern, letter, text)
    try:
        return read_duration_s(text, what)
    except InvalidValue:
        expected = "a positive time such as 2h, 2 hours, 90m or unlimited"
        raise InvalidValue(what=what, value=value, expected=expected) from None


def change_bounds(bounds: Bounds, changes: dict[str, Any]) -> Bounds:
    """Give the bounds with the given ones instead, as they were written; raises InvalidValue."""
    made: dict[str, Any] = {}
    if "max_iterations" in changes:
        made["max_iterations"] = read_count(changes["max_iterations"], "maximum iterations per task")
    if "max_cost" in changes:
        made["max_cost_usd"] = read_money_usd(changes["max_cost"], "maximum cost")
        made["max_cost"] = str(changes["max_cost"]).strip()
    if "max_time" in changes:
        made["max_time_s"] = read_time_s(changes["max_time"], "maximum time")
        made["max_time"] = str(changes["max_time"]).strip()
    return msgspec.structs.replace(bounds, **made)


def show_cost(bounds: Bounds, limit_usd: float | None) -> str:
    """Show the limit that is in force, as it was written where it was."""
    if limit_usd is None:
        return UNLIMITED
    return bounds.max_cost if limit_usd == bounds.max_cost_usd else f"${limit_usd:g}"


def show_time(bounds: Bounds, limit_s: float | None) -> str:
    """Show the limit that is in force, as it was written where it was."""
    if limit_s is None:
        return UNLIMITED
    if limit_s == bounds.max_time_s:
        return bounds.max_time
    return f"{limit_s / 3600:g}h" if limit_s % 3600 == 0 else f"{limit_s / 60:g}m" if limit_s % 60 == 0 else f"{limit_s:g}s"


def budget_of(bounds: Bounds) -> Budget:
    """Give the budget that the document sets."""
    return Budget(run=Amounts(cost_usd=bounds.max_cost_usd, wall_s=bounds.max_time_s))


def say_money(cost_usd: float | None, *, unmetered: bool = False) -> str:
    """Say `$0.75`; `>=$0.75` when some of it is not known, `unknown` when nothing is; a tenth of a cent is not hidden."""
    if cost_usd is None:
        return "unknown" if unmetered else "$0.00"
    amount = f"${cost_usd:.4f}" if 0 < cost_usd < 0.01 else f"${cost_usd:.2f}"
    return f">={amount}" if unmetered else amount


def say_elapsed(elapsed_us: int) -> str:
    """Say `0h 34m 8s`."""
    seconds = elapsed_us // US
    return f"{seconds // 3600}h {seconds % 3600 // 60}m {seconds % 60}s"


def say_spent(spent_us: int) -> str:
    """Say `15m 23s`, and `1h 0m 3s` from an hour on."""
    seconds = spent_us // US
    return f"{seconds // 60}m {seconds % 60}s" if seconds < 3600 else say_elapsed(spent_us)
