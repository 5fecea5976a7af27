"""The fields of one object in a foreign file, in any spelling; those that nobody asks for are said to be left out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agent_orchestrator.systems.team.spellings import read_status, snake

NUMBER_MAX = 2**53
"""Beyond it a number of JSON is not the same number everywhere."""
LEFT_OUT = "left out"


class TeamFields:
    """The fields of one object: each is taken once, by the seed's name or another one for the same."""

    def __init__(self, given: Mapping[str, Any], where: str, notes: list[str]) -> None:
        """Keep the object with its path in the file; what is said goes to `notes`."""
        self._given, self._where, self._notes = given, where, notes
        self._left = {name: snake(name) for name, value in given.items() if value is not None}
        self._spelled: dict[str, str] = {}

    def take(self, *names: str) -> Any:
        """Take the first of these fields that is there; None when there is none."""
        for name in names:
            for spelled, plain in self._left.items():
                if plain == name:
                    del self._left[spelled]
                    self._spelled[names[0]] = spelled
                    return self._given[spelled]
        return None

    def path(self, name: str) -> str:
        """Give the path of a field as the file spells it, by the first of the names it was taken by."""
        spelled = self._spelled.get(name, name)
        return f"{self._where}.{spelled}" if self._where else spelled

    def take_text(self, *names: str) -> str | None:
        """Take a text; a number is one."""
        given = self.take(*names)
        if given is None or (text := as_text(given)) is not None:
            return text if given is not None else None
        self._refuse(names[0], "is not a text")
        return None

    def take_texts(self, *names: str) -> list[str]:
        """Take a list of texts; a single text is a list of one."""
        given = self.take(*names)
        if given is None:
            return []
        entries = given if isinstance(given, list) else [given]
        found = []
        for number, entry in enumerate(entries):
            if (text := as_text(entry)) is not None:
                found.append(text)
            elif entry is not None:
                self._notes.append(f"{self.path(names[0])}[{number}]: is not a text; {LEFT_OUT}")
        return found

    def take_flag(self, *names: str) -> bool | None:
        """Take a yes or no."""
        given = self.take(*names)
        if given is None or isinstance(given, bool):
            return given
        words = {"yes": True, "true": True, "no": False, "false": False}
        if isinstance(given, str) and given.strip().lower() in words:
            return words[given.strip().lower()]
        self._refuse(names[0], f"{given!r} is neither yes nor no")
        return None

    def take_number(self, *names: str) -> float | None:
        """Take a number that is not negative."""
        given = self.take(*names)
        if given is None:
            return None
        if isinstance(given, int | float) and not isinstance(given, bool) and 0 <= given <= NUMBER_MAX:
            return given
        self._refuse(names[0], f"{given!r} is not a usable number")
        return None

    def take_count(self, *names: str) -> int:
        """Take a whole number; 0 when there is none."""
        given = self.take_number(*names)
        if given is not None and not float(given).is_integer():
            self._refuse(names[0], f"{given!r} is not a whole number")
            return 0
        return int(given or 0)

    def take_status(self) -> str | None:
        """Take a status in the seed's words; a flag that says so means complete."""
        told = self.take("status", "state")
        status = read_status(told)
        if told is not None and status is None:
            self._refuse("status", f"{told!r} is no known status")
        if status is None and self.take_flag("completed", "done", "complete", "is_complete"):
            return "complete"
        return status

    def put_down(self, *names: str) -> None:
        """Take fields that are counted anew from the others, and need no word."""
        for name in names:
            self.take(name)

    def finish(self) -> None:
        """Say which fields nobody took."""
        for spelled in self._left:
            where = f"{self._where}.{spelled}" if self._where else spelled
            self._notes.append(f"{where}: {LEFT_OUT}, a team has no such field")
        self._left = {}

    def _refuse(self, name: str, why: str) -> None:
        self._notes.append(f"{self.path(name)}: {why}; {LEFT_OUT}")


def as_text(given: object) -> str | None:
    """Give a text, or a number as one; None for anything else and for an empty one."""
    if isinstance(given, str):
        return given.strip() or None
    return str(given) if isinstance(given, int | float) and not isinstance(given, bool) else None


def list_entries(given: object, where: str, notes: list[str]) -> list[tuple[str, str | None, Any]]:
    """List the entries of a list or a map, each with its path in the file and the key that it has in a map."""
    if isinstance(given, list):
        return [(f"{where}[{number}]", None, entry) for number, entry in enumerate(given) if entry is not None]
    if isinstance(given, dict):
        return [(f"{where}.{key}", key.strip() or None, entry) for key, entry in given.items()]
    if isinstance(given, str):
        return [(where, None, part.strip()) for part in given.split(",") if part.strip()]
    if given is not None:
        notes.append(f"{where}: is neither a list nor an object; {LEFT_OUT}")
    return []


def say_lost(before: object, after: object, where: str, notes: list[str]) -> None:
    """Say which fields of an object are not in what was made of it."""
    if isinstance(before, dict) and isinstance(after, dict):
        for name, value in before.items():
            if value is None or value == [] or value == {}:
                continue
            if snake(name) not in after and name not in after:
                notes.append(f"{where}.{name}: {LEFT_OUT}, a team has no such field")
            else:
                say_lost(value, after.get(snake(name), after.get(name)), f"{where}.{name}", notes)
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        for number, (one, other) in enumerate(zip(before, after, strict=True)):
            say_lost(one, other, f"{where}[{number}]", notes)


def spell(given: object) -> object:
    """Spell the names of all fields below as the seed does; of two for one name the first is kept."""
    if isinstance(given, dict):
        found: dict[str, Any] = {}
        for name, value in given.items():
            found.setdefault(snake(name), spell(value))
        return found
    return [spell(entry) for entry in given] if isinstance(given, list) else given


def drop_huge(given: Any, where: str, notes: list[str]) -> Any:
    """Leave out numbers that cannot be journaled."""
    if isinstance(given, dict):
        return {name: drop_huge(value, f"{where}.{name}" if where else name, notes) for name, value in given.items()}
    if isinstance(given, list):
        return [drop_huge(value, f"{where}[{number}]", notes) for number, value in enumerate(given)]
    if isinstance(given, int | float) and abs(given) > NUMBER_MAX:
        notes.append(f"{where}: {given!r} is too large a number; {LEFT_OUT}")
        return None
    return given
