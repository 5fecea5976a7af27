"""The fields of one object in a foreign file, in any spelling; those that nobody asks for are said to be left out."""

from __future__ import annotations

from typing import Any

from agent_orchestrator.core.foreign.account import FieldAccount
from agent_orchestrator.core.foreign.fields import ForeignFields
from agent_orchestrator.core.foreign.values import NUMBER_MAX, any_of, count_of, flag_of, label_of, say
from agent_orchestrator.systems.team.spellings import read_status

LEFT_OUT = "left out"
NO_FIELD = "a team has no such field"
NOT_A_TIME = "is not a time"
Listed = tuple[str, str | None, Any]
"""An entry of a list or a map: its path in the file, the key that it has in a map, and itself."""


class TeamFields(ForeignFields):
    """The fields of one object of a team's files, by the seed's name or another one for the same."""

    def take(self, *names: str) -> Any:
        """Take the first of these fields that is there; None when there is none."""
        return self.read(names[0], any_of, *names[1:])

    def take_text(self, *names: str) -> str | None:
        """Take a text; a number is one."""
        return self.read(names[0], label_of, *names[1:], wrong="is not a text")

    def take_texts(self, *names: str) -> list[str]:
        """Take a list of texts; a single text is a list of one."""
        given = self.take(*names)
        if given is None:
            return []
        entries = given if isinstance(given, list) else [given]
        found = []
        for number, entry in enumerate(entries):
            if (text := label_of(entry)) is not None:
                found.append(text)
            elif entry is not None:
                place = f"[{number}]" if isinstance(given, list) else ""
                self.account.change(f"{self.path(names[0])}{place}: {say(entry)} is not a text; {LEFT_OUT}")
        return found

    def take_lists(self, *names: str) -> list[Listed]:
        """Take the entries of all lists that these fields are, whatever they are called."""
        found = []
        for key, value in self.spellings(*names):
            self.account.take(self.place(key))
            found += list_entries(value, self.place(key), self.account)
        return found

    def take_flag(self, *names: str) -> bool | None:
        """Take a yes or no."""
        return self.read(names[0], flag_of, *names[1:], wrong="is neither yes nor no")

    def take_number(self, *names: str) -> float | None:
        """Take a number that is not negative."""
        return self.read(names[0], _number_of, *names[1:], wrong="is not a usable number")

    def take_count(self, *names: str) -> int:
        """Take a whole number; 0 when there is none."""
        return self.read(names[0], count_of, *names[1:], wrong="is not a usable number") or 0

    def take_status(self) -> str | None:
        """Take a status in the seed's words; done is what any field says to be."""
        said = {read_status(value) for _, value in self.peek("status", "state")}
        status = self.read("status", read_status, "state", wrong="is no known status")
        if "complete" in said and status != "complete":
            self.account.change(f"{self.path('status')}: was {status}, is complete: another field says so")
            status = "complete"
        done = self.take_flag("completed", "done", "complete", "is_complete")
        if done and status not in (None, "complete"):
            self.account.change(f"{self.path('status')}: was {status}, is complete: {self.path('completed')} says so")
        return "complete" if done else status

    def settle(self, own: str | None, *names: str) -> str | None:
        """Take a text that the plan has as well: what the plan says stands."""
        for key, value in self.spellings(*names):
            text = label_of(value)
            if text is None and value not in (None, "", [], {}):
                self.account.change(f"{self.place(key)}: {say(value)} is not a text; {LEFT_OUT}")
            elif text is None or own in (None, "", text):
                own = text or own
                self.account.take(self.place(key))
            else:
                self.account.leave(f"{self.place(key)} ({say(value)}, the plan says {say(own)})")
        return own

    def put_down(self, *names: str) -> None:
        """Take fields that are counted anew from the others."""
        self.ignore("counted anew", *names)

    def finish(self) -> None:
        """Say which fields nobody took."""
        self.leave_rest(NO_FIELD)


def _number_of(given: object) -> float | None:
    fine = isinstance(given, int | float) and not isinstance(given, bool) and 0 <= given <= NUMBER_MAX
    return given if isinstance(given, int | float) and fine else None


def list_entries(given: object, where: str, account: FieldAccount, *, split: bool = True) -> list[Listed]:
    """List the entries of a list or a map.

    A text is a list of names with commas, or, where it may hold any words, one entry.
    """
    if isinstance(given, list):
        return [(f"{where}[{number}]", None, entry) for number, entry in enumerate(given) if entry is not None]
    if isinstance(given, dict):
        return [(f"{where}.{key}", key.strip() or None, entry) for key, entry in given.items()]
    if isinstance(given, str):
        parts = given.split(",") if split else [given]
        return [(where, None, part.strip()) for part in parts if part.strip()]
    if given is not None:
        account.change(f"{where}: is neither a list nor an object; {LEFT_OUT}")
    return []


def drop_huge(given: Any, where: str, account: FieldAccount) -> Any:
    """Leave out numbers that cannot be journaled."""
    if isinstance(given, dict):
        return {name: drop_huge(value, f"{where}.{name}" if where else name, account) for name, value in given.items()}
    if isinstance(given, list):
        return [drop_huge(value, f"{where}[{number}]", account) for number, value in enumerate(given)]
    if isinstance(given, int | float) and abs(given) > NUMBER_MAX:
        account.change(f"{where}: {given!r} is too large a number; {LEFT_OUT}")
        return None
    return given
