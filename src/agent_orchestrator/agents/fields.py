"""What stands at a path of a document that somebody else wrote: its shape may change at any time, and nothing fails for it."""

from __future__ import annotations

from typing import Any

from agent_orchestrator.core.units import from_iso


def at(document: object, *names: str) -> Any:
    """The value at a path of keys, or None: what a CLI writes may change its shape at any time."""
    for name in names:
        if not isinstance(document, dict):
            return None
        document = document.get(name)
    return document


def text_at(document: object, *names: str) -> str:
    """A text at a path, or nothing."""
    value = at(document, *names)
    return value if isinstance(value, str) else ""


def count_at(document: object, *names: str) -> int | None:
    """A count at a path, or None."""
    value = at(document, *names)
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def money_at(document: object, *names: str) -> float | None:
    """An amount at a path, or None."""
    value = at(document, *names)
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < 1e12 else None


def time_at(document: object, *names: str) -> int | None:
    """An ISO 8601 time at a path, in microseconds since the epoch, or None."""
    try:
        return from_iso(text_at(document, *names))
    except ValueError:
        return None
