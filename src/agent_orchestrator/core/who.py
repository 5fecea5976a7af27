"""The author of what is said to a run: the person, or the program that spoke in a person's name. It travels with a directive
into the journal, beside the fact that the directive led to."""

from __future__ import annotations

from enum import StrEnum

import msgspec


class Surface(StrEnum):
    """The way by which something was said."""

    CLI = "cli"
    LIBRARY = "library"
    WEB = "web"
    MCP = "mcp"
    ANSWER_FILE = "answer file"
    SIGNAL = "signal"
    ORC = "orc"
    """The program itself, for its own book-keeping."""
    UNKNOWN = "unknown"
    """It lay in the inbox and names nobody."""


class Who(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A sender, as far as it could be found out; nothing here is proof against a program that writes to the store itself."""

    surface: Surface
    user: str = ""
    uid: int | None = None
    terminal: str = ""
    """As in pts/3; '' for a program without one."""
    pid: int | None = None
    launch: str | None = None
    """The launch of this store from inside which it was said."""

    def __str__(self) -> str:
        if self.surface is Surface.UNKNOWN:
            return "an unknown sender"
        if self.surface is Surface.ORC:
            return "orc"
        name = self.user or "somebody"
        if self.surface is Surface.ANSWER_FILE:
            return f"{name} (answer file)"
        if self.surface is Surface.WEB:
            return f"{name} (page)"
        if self.surface is Surface.MCP:
            return f"{name} (chat)"
        return f"{name} ({self.terminal or 'no terminal'})"


UNKNOWN = Who(surface=Surface.UNKNOWN)
"""The sender of a directive that names none."""
