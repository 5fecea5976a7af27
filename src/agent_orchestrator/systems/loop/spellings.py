"""The spellings of loop state files: names of fields, words for a status, numbers and times, as older tools wrote them.

`Fields` reads an object by the names that a loop has and keeps account of every field of the file: taken, changed or left
out. Nothing here decides what a loop becomes; that is `imports`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar

from agent_orchestrator.core.text import stamp
from agent_orchestrator.core.units import US, from_iso
from agent_orchestrator.systems.loop.transitions import LoopStatus

T = TypeVar("T")
SAID_CHARS_MAX = 60
MS_FROM = 100_000_000_000
"""Numbers from here on are times in milliseconds: as seconds they would be in the year 5138."""

NAMES: dict[str, tuple[str, ...]] = {
    "version": ("version", "schema_version"),
    "loop_id": ("loop_id", "id"),
    "task": ("task", "prompt", "description", "task_summary", "task_description", "objective", "goal"),
    "completion_criteria": (
        *("completion_criteria", "completion", "completion_criterion", "completion_promise", "criteria", "success_criteria"),
        *("acceptance_criteria",),
    ),
    "status": ("status",),
    "iteration": ("iteration", "current_iteration", "iteration_count", "iterations_completed", "total_iterations"),
    "started_at": ("started_at", "start_time", "started", "created_at", "start_time_ms"),
    "completed_at": (
        *("completed_at", "completed_time", "completion_time", "completion_date", "end_time", "ended_at", "finished_at"),
        *("aborted_at", "failed_at", "end_time_ms"),
    ),
    "last_updated": ("last_updated", "updated_at", "last_active", "last_update", "last_updated_at", "timestamp"),
    "owner": ("owner",),
    "configuration": ("configuration", "config", "settings", "options"),
    "max_iterations": ("max_iterations", "max_iteration", "iteration_limit"),
    "timeout_minutes": ("timeout_minutes", "timeout"),
    "timeout_ms": ("timeout_ms",),
    "interactive": ("interactive",),
    "auto_test": ("auto_test",),
    "checkpoint_interval": ("checkpoint_interval", "checkpoint_frequency"),
    "execution_mode": ("execution_mode",),
    "progress": ("progress",),
    "metrics": ("metrics",),
    "history": ("iterations", "history", "iteration_history"),
    "learnings": ("learnings", "lessons", "lessons_learned"),
    "last_result": ("last_result",),
    "last_checkpoint": ("last_checkpoint",),
    "checkpoints": ("checkpoints",),
    "error_context": ("error_context", "error", "error_message", "last_error"),
    "active": ("active",),
    "completed": ("completed", "success"),
    "result": ("result",),
}
"""The fields of a loop and how they are spelled, the first that is there and usable being the one; in snake_case."""

ENTRY: dict[str, tuple[str, ...]] = {
    "iteration": ("iteration", "number", "iteration_number", "index"),
    "summary": ("action", "summary", "description", "focus", "title", "task"),
    "notes": ("notes", "result", "outcome", "message"),
    "error": ("error", "failure", "error_message"),
    "passed": ("passed", "success", "completed"),
    "status": ("status",),
    "started_at": NAMES["started_at"],
    "completed_at": (*NAMES["completed_at"], "timestamp"),
    "duration_seconds": ("duration_seconds", "duration", "duration_s"),
    "duration_ms": ("duration_ms",),
    "learnings": NAMES["learnings"],
}
"""The fields of one iteration in a history."""

_WORDS: dict[LoopStatus, str] = {
    LoopStatus.COMPLETED: "completed complete success succeeded successful done finished passed",
    LoopStatus.FAILED: "failed failure error errored limit_reached max_iterations max_iterations_reached timeout timed_out stuck",
    LoopStatus.ABORTED: "aborted abort cancelled canceled stopped killed terminated",
    LoopStatus.CRASHED: "crashed crash",
    LoopStatus.PAUSED: "paused suspended interrupted waiting blocked on_hold pending queued idle not_started",
    LoopStatus.RUNNING: "running in_progress active started iterating working executing partial_success",
    LoopStatus.COMPLETING: "completing verifying",
}
STATUS_WORDS = {word: status for status, words in _WORDS.items() for word in words.split()}
"""The words that tools and people use for a status, in snake_case."""


class FieldAccount:
    """The account of a file: what became of each field, by its path there."""

    def __init__(self) -> None:
        self._lines: dict[str, dict[str, None]] = {"taken": {}, "changed": {}, "left": {}}

    def take(self, line: str) -> None:
        """Add a field that is in the loop as it was."""
        self._lines["taken"][line] = None

    def change(self, line: str) -> None:
        """Add what had to be changed."""
        self._lines["changed"][line] = None

    def leave(self, line: str) -> None:
        """Add a field that a loop has no place for."""
        self._lines["left"][line] = None

    def lines(self, kind: str) -> tuple[str, ...]:
        """Return the lines of one kind, each once."""
        return tuple(self._lines[kind])


class Fields:
    """An object of a file, read by the names that a loop has; what is not asked for is left out at the end."""

    def __init__(
        self, given: Mapping[str, Any], account: FieldAccount, under: str = "", names: Mapping[str, tuple[str, ...]] = NAMES
    ) -> None:
        self._given, self._account, self._under, self._names = given, account, under, names
        self._spelled: dict[str, list[str]] = {}
        for key in given:
            self._spelled.setdefault(snake(key), []).append(key)
        self._asked: set[str] = set()

    def read(self, name: str, convert: Callable[[Any], T | None]) -> T | None:
        """Return the first usable value of a field in any of its spellings; None when there is none."""
        found: T | None = None
        for key, value in self.spellings(name):
            if value in (None, "", [], {}):
                self._account.take(f"{self._under}{key}")
                continue
            usable = convert(value)
            if usable is None:
                self._account.change(f"{self._under}{key}: {say(value)} is not usable, it is left out")
            elif found is None:
                found = usable
                self._keep_account(key, name, value, usable)
            elif usable == found:
                self._account.take(f"{self._under}{key}")
            else:
                self._account.leave(f"{self._under}{key} ({say(value)}, another field says {say(found)})")
        return found

    def within(self, name: str, names: Mapping[str, tuple[str, ...]] = NAMES) -> list[Fields]:
        """Return the objects of a field; anything else than an object is left out."""
        found = []
        for key, value in self.spellings(name):
            if value in (None, "", [], {}):
                self._account.take(f"{self._under}{key}")
            elif isinstance(value, dict):
                found.append(Fields(value, self._account, f"{self._under}{key}.", names))
            else:
                self._account.leave(f"{self._under}{key} ({say(value)} is not an object)")
        return found

    def spellings(self, name: str) -> Iterator[tuple[str, Any]]:
        """Give every field that is one of these, as the file spells it, with its value; each once."""
        for spelled in self._names.get(name, (name,)):
            for key in self._spelled.get(spelled, ()):
                if key not in self._asked:
                    self._asked.add(key)
                    yield key, self._given[key]

    def place(self, key: str) -> str:
        """Return the path of a field in the file."""
        return f"{self._under}{key}"

    def leave_rest(self) -> None:
        """Leave out what nobody asked for."""
        for key in self._given:
            if key not in self._asked:
                self._account.leave(f"{self._under}{key}")

    def _keep_account(self, key: str, name: str, value: object, usable: object) -> None:
        path, other = f"{self._under}{key}", "" if snake(key) == name else f" as {name}"
        if isinstance(usable, tuple):
            usable = usable[0] if isinstance(value, str) else list(usable)
        if value == usable:
            self._account.take(f"{path}{other}")
        else:
            self._account.change(f"{path}: {say(value)} is taken{other or ' as'} {say(usable)}")


def snake(key: str) -> str:
    """Spell a name in snake_case: `maxIterations`, `max-iterations` and `Max Iterations` are the same."""
    parted = re.sub(r"(?<=[a-z0-9])([A-Z])", r"_\1", key)
    return re.sub(r"[\s-]+", "_", parted.strip()).lower()


def say(value: object) -> str:
    """Quote a value of a file, cut where it is long."""
    text = repr(str(value) if isinstance(value, str) else value)
    return text if len(text) <= SAID_CHARS_MAX else f"{text[: SAID_CHARS_MAX - 1]}…"


def text_of(value: object) -> str | None:
    """Return text that says something."""
    return value if isinstance(value, str) and value.strip() else None


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
        return {"true": True, "yes": True, "false": False, "no": False}.get(value.strip().lower())
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


def status_of(value: object) -> LoopStatus | None:
    """Return the status that a word means."""
    return STATUS_WORDS.get(snake(value)) if isinstance(value, str) else None
