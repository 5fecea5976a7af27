"""The values of foreign fields: texts, numbers, times and yes or no, as tools and people write them.

Each reader gives None for what it cannot use.
"""

from __future__ import annotations

import math
import re

from agent_orchestrator.core.text import stamp
from agent_orchestrator.core.units import US, from_iso

SAID_CHARS_MAX = 60
MS_FROM = 100_000_000_000
"""Numbers from here on are times in milliseconds: as seconds they would be in the year 5138."""
NUMBER_MAX = 2**53
"""Beyond it a number of JSON is not the same number everywhere."""
_DONE = """
completed complete done finished success succeeded successful passed merged approved closed accepted resolved shipped delivered
"""
DONE_WORDS = frozenset(_DONE.split())
"""The words for something that is done, in snake_case."""
_TAKEN_BACK = re.compile(
    r"(?:^|_)(?:not|fail[a-z]*|except[a-z]*|partial[a-z]*|pending|but|with|blocked|errors?|incomplete|unfinished|unmerged)(?:_|$)"
)
_DONE_MARKS = re.compile(r"\s*(?:✅|☑️?|✔️?|✓|\[[xX]\])\s*")
_FLAGS = {"true": True, "yes": True, "false": False, "no": False}


def snake(name: str) -> str:
    """Spell the name of a field in snake_case: `taskGroups`, `task-groups` and `Task Groups` are `task_groups`."""
    parted = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name.strip())
    return re.sub(r"[\s-]+", "_", parted).lower()


def say(value: object) -> str:
    """Quote a value of a file, cut where it is long."""
    text = repr(str(value) if isinstance(value, str) else value)
    return text if len(text) <= SAID_CHARS_MAX else f"{text[: SAID_CHARS_MAX - 1]}…"


def name_kind(value: object) -> str:
    """Name the kind of a JSON value."""
    kinds = {dict: "an object", list: "a list", str: "a text", bool: "true or false", type(None): "null"}
    return kinds.get(type(value), "a number")


def text_of(value: object) -> str | None:
    """Return text that says something."""
    return value if isinstance(value, str) and value.strip() else None


def label_of(value: object) -> str | None:
    """Return text without space around it, or a number as text."""
    if isinstance(value, str):
        return value.strip() or None
    return str(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def texts_of(value: object) -> tuple[str, ...] | None:
    """Return a text, or the texts of a list."""
    if isinstance(value, str):
        return (value,) if value.strip() else None
    if isinstance(value, list) and value and all(isinstance(one, str) and one.strip() for one in value):
        return tuple(value)
    return None


def count_of(value: object, least: int = 0) -> int | None:
    """Return a whole number, also one that is written as 3.0 or "3"."""
    if isinstance(value, str) and re.fullmatch(r"\s*\d{1,15}\s*", value):
        value = int(value)
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        value = int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) and least <= value < 1e15 else None


def number_of(value: object) -> float | None:
    """Return a number that can be an amount."""
    fine = isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value < 1e15
    return float(value) if isinstance(value, (int, float)) and fine and math.isfinite(value) else None


def flag_of(value: object) -> bool | None:
    """Return true or false, also where it is written as text."""
    if isinstance(value, str):
        return _FLAGS.get(value.strip().lower())
    return value if isinstance(value, bool) else None


def time_of(value: object) -> str | None:
    """Return a moment as ISO 8601, also one in seconds or milliseconds since the epoch; a placeholder is none."""
    if isinstance(value, str):
        try:
            stamp(from_iso(value.strip()))
        except (ValueError, OverflowError):
            return None
        return value
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value < MS_FROM * 1000:
        return None
    seconds = value / 1000 if value >= MS_FROM else value
    return stamp(int(seconds * US))


def any_of(value: object) -> object:
    """Return whatever stands there."""
    return value


def word_of(value: str) -> str:
    """Return a status as a word in snake_case, without signs: "COMPLETED ✅" is `completed`."""
    return re.sub(r"[^a-z]+", "_", snake(value)).strip("_")


def is_done(value: object) -> bool:
    """Tell whether a status says that something is done: "SUCCESS - all validated" does, "complete with errors" does not."""
    if not isinstance(value, str):
        return value is True
    word = word_of(value)
    if not word:
        return _DONE_MARKS.fullmatch(value) is not None
    first, _, more = word.partition("_")
    return word in DONE_WORDS or (first in DONE_WORDS and _TAKEN_BACK.search(more) is None)
