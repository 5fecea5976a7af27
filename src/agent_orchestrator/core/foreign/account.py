"""The account of a foreign file: what became of each of its fields, by its path there."""

from __future__ import annotations

import re
from collections.abc import Iterable


class FieldAccount:
    """Lines about what was taken, changed and left out, each once."""

    def __init__(self) -> None:
        self._lines: dict[str, dict[str, None]] = {"taken": {}, "changed": {}, "left": {}}

    def take(self, line: str) -> None:
        """Add a field that is taken as it was; those of all entries of a list are one line."""
        self._lines["taken"][re.sub(r"\[\d+\]", "[]", line)] = None

    def change(self, *lines: str) -> None:
        """Add what had to be changed."""
        self._lines["changed"].update(dict.fromkeys(lines))

    def change_all(self, lines: Iterable[str]) -> None:
        """Add several things that had to be changed."""
        self.change(*lines)

    def leave(self, line: str) -> None:
        """Add a field that there is no place for."""
        self._lines["left"][line] = None

    def lines(self, kind: str) -> tuple[str, ...]:
        """Return the lines of one kind: `taken`, `changed` or `left`."""
        return tuple(self._lines[kind])

    @property
    def all(self) -> tuple[str, ...]:
        """All lines."""
        return tuple(line for lines in self._lines.values() for line in lines)
