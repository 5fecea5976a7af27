"""The fields of one object of a foreign file, in any spelling: what is not asked for is left out, and said."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Self, TypeVar

from agent_orchestrator.core.foreign.account import FieldAccount
from agent_orchestrator.core.foreign.values import say, snake

T = TypeVar("T")
Names = Mapping[str, tuple[str, ...]]
"""The spellings of fields, in snake_case; the first that is there and usable is the one."""
NO_NAMES: Names = {}


class ForeignFields:
    """An object of a file, read by names of ours; `under` is its path in the file."""

    def __init__(self, given: Mapping[str, Any], account: FieldAccount, under: str = "", names: Names = NO_NAMES) -> None:
        self.account, self._given, self._names = account, given, names
        self._under = f"{under}." if under else ""
        self._spelled: dict[str, list[str]] = {}
        for key in given:
            self._spelled.setdefault(snake(key), []).append(key)
        self._asked: set[str] = set()
        self._read: dict[str, str] = {}

    def read(self, name: str, convert: Callable[[Any], T | None], *others: str, wrong: str = "is not usable") -> T | None:
        """Return the first usable value of a field in any of its spellings; None when there is none."""
        found: T | None = None
        for key, value in self.spellings(name, *others):
            if value in (None, "", [], {}):
                self.account.take(self.place(key))
                continue
            usable = convert(value)
            if usable is None:
                self.account.change(f"{self.place(key)}: {say(value)} {wrong}, it is left out")
            elif found is None:
                found = usable
                self._read[name] = key
                self._keep_account(key, name, value, usable)
            elif usable == found and isinstance(value, dict | list):
                self.account.leave(f"{self.place(key)} (it says the same as {self.path(name)})")
            elif usable == found:
                self.account.take(self.place(key))
            else:
                self.account.leave(f"{self.place(key)} ({say(value)}, another field says {say(found)})")
        return found

    def within(self, name: str, names: Names | None = None) -> list[Self]:
        """Return the objects of a field; anything else than an object is left out."""
        return list(self._objects((name,), names))

    def one(self, name: str, *others: str, names: Names | None = None) -> Self | None:
        """Return the first object of a field in any of its spellings; any other is left out."""
        first: Self | None = None
        for inner in self._objects((name, *others), names):
            if first is None:
                first = inner
            else:
                self.account.leave(f"{inner.root} ({first.root} is used)")
        return first

    def _objects(self, wanted: tuple[str, ...], names: Names | None) -> Iterator[Self]:
        for key, value in self.spellings(*wanted):
            if value in (None, "", [], {}):
                self.account.take(self.place(key))
            elif isinstance(value, dict):
                yield type(self)(value, self.account, self.place(key), self._names if names is None else names)
            else:
                self.account.leave(f"{self.place(key)} ({say(value)} is not an object)")

    def under(self, names: Names) -> ForeignFields:
        """Return the same object read by other names; what is asked of one is asked of both."""
        same = ForeignFields(self._given, self.account, self.root, names)
        same._asked = self._asked
        return same

    def spellings(self, *names: str) -> Iterator[tuple[str, Any]]:
        """Give every field that is one of these, as the file spells it, with its value; each once."""
        for spelled in dict.fromkeys(one for name in names for one in self._names.get(name, (name,))):
            for key in self._spelled.get(spelled, ()):
                if key not in self._asked:
                    self._asked.add(key)
                    yield key, self._given[key]

    def peek(self, *names: str) -> list[tuple[str, Any]]:
        """Return every field that is one of these without asking for it."""
        known = [spelled for name in names for spelled in self._names.get(name, (name,))]
        return [(key, self._given[key]) for spelled in known for key in self._spelled.get(spelled, ())]

    @property
    def root(self) -> str:
        """The path of the object in the file."""
        return self._under.removesuffix(".")

    @property
    def unread(self) -> list[str]:
        """The fields that nobody asked for, as the file spells them."""
        return [key for key in self._given if key not in self._asked]

    def has(self, *names: str) -> bool:
        """Tell whether one of these fields is there."""
        return any(spelled in self._spelled for name in names for spelled in self._names.get(name, (name,)))

    def place(self, key: str) -> str:
        """Return the path of a field in the file."""
        return f"{self._under}{key}"

    def path(self, name: str) -> str:
        """Return the path in the file of the field that was read by this name."""
        return self.place(self._read.get(name, name))

    def ignore(self, why: str, *names: str) -> None:
        """Leave out fields for a reason."""
        for key, value in self.spellings(*names):
            if value is None:
                self.account.take(self.place(key))
            else:
                self.account.leave(f"{self.place(key)} ({why})")

    def leave_rest(self, why: str = "") -> None:
        """Leave out what nobody asked for."""
        for key in self.unread:
            self.account.leave(f"{self.place(key)}{f' ({why})' if why else ''}")
            self._asked.add(key)

    def _keep_account(self, key: str, name: str, value: object, usable: object) -> None:
        path, other = self.place(key), "" if snake(key) == name else f" as {name}"
        if isinstance(usable, tuple):
            usable = usable[0] if isinstance(value, str) else list(usable)
        if value == usable:
            self.account.take(f"{path}{other}")
        else:
            self.account.change(f"{path}: {say(value)} is taken{other or ' as'} {say(usable)}")
