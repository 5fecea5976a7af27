"""Merges wait in line: one at a time for each target, in the order in which they came.

Pure bookkeeping for systems that merge; what a merge is, and who performs it, is told by effects.
"""

from __future__ import annotations

import msgspec

from agent_orchestrator.core.limits import CHECK_TIMEOUT_S


class MergeQueue:
    """Units in line for each target branch; the first of a line is the one that may merge."""

    __slots__ = ("_lines",)

    def __init__(self) -> None:
        self._lines: dict[str, list[str]] = {}

    def join(self, into: str, unit: str) -> None:
        """The unit goes to the end of the line, unless it stands in it already."""
        line = self._lines.setdefault(into, [])
        if unit not in line:
            line.append(unit)

    def leave(self, into: str, unit: str) -> None:
        """The unit merged, or has to do something else first."""
        line = self._lines.get(into, [])
        if unit in line:
            line.remove(unit)
        if not line:
            self._lines.pop(into, None)

    def first(self, into: str) -> str | None:
        """Whose turn it is."""
        line = self._lines.get(into)
        return line[0] if line else None

    def line(self, into: str) -> tuple[str, ...]:
        """Everybody in line, the first one first."""
        return tuple(self._lines.get(into, ()))

    def __len__(self) -> int:
        return sum(map(len, self._lines.values()))


class Landing(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A branch of a run that a person wants merged: into what, and with which check on the merged tree."""

    unit: str = ""
    """The unit whose work it is; '' for the run as a whole."""
    branch: str
    into: str
    message: str
    """The whole message of the merge, trailers included."""
    repo: str = ""
    """The repository, where it is not the run's home."""
    check: str | None = None
    timeout_s: float = CHECK_TIMEOUT_S
