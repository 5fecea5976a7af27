"""What a phrase is, and how times are spelled for people."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import NamedTuple

from agent_orchestrator.core.units import US


class Phrase(NamedTuple):
    """Who it is about ("" for the run), what happened, and whether only the history tells it."""

    unit: str
    words: str
    quiet: bool = False


def _local(at_us: int) -> datetime:
    return datetime.fromtimestamp(at_us / US, UTC).astimezone()


def clock_time(at_us: int) -> str:
    """12:03:04, local time."""
    return f"{_local(at_us):%H:%M:%S}"


def date_time(at_us: int) -> str:
    """2025-01-15 12:03:04, local time."""
    return f"{_local(at_us):%Y-%m-%d %H:%M:%S}"
