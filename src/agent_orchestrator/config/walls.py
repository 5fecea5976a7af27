"""The settings of the wall in a repository's file: it may make the wall stronger, never weaker, without the user's word."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from agent_orchestrator.config.keys import SANDBOX, SANDBOX_NETWORK, SANDBOX_READ, SANDBOX_WRITE, YOLO, Key
from agent_orchestrator.core.sandbox import AUTO, NONE, REACHES, Wall

OFFERED: Mapping[str | None, int] = {NONE: 0, AUTO: 1, Wall.LANDLOCK: 2, Wall.BWRAP: 3}
"""The strength of a wall at its worst: `auto` may turn out to be none."""
ASKED: Mapping[str | None, int] = {None: 0, NONE: 0, Wall.LANDLOCK: 2, AUTO: 3, Wall.BWRAP: 3}
"""The strength that somebody may count on who asked for it: `auto` asks for the best."""
STRONGEST = 4


def find_weakening(key: Key, value: Any, users: Any) -> str | None:
    """Say how a value of the repository's file weakens the wall that the user's own file asks for; None if it does not."""
    return _RULES[key](value, users) if key in _RULES and value != users else None


def _compare_walls(value: str, users: str | None) -> str | None:
    if value not in OFFERED:
        return "names a program to start"
    return "is a weaker wall than your own file asks for" if OFFERED[value] < ASKED.get(users, STRONGEST) else None


def _compare_networks(value: str, users: str | None) -> str | None:
    if value not in REACHES:
        return "names a proxy that everything goes through"
    asked = REACHES.index(users or "on") if users in (None, *REACHES) else len(REACHES) - 1
    return "opens more of the network than your own file does" if REACHES.index(value) < asked else None


def _compare_paths(value: list[str], users: list[str] | None) -> str | None:
    return None if set(value) <= set(users or ()) else "opens paths to agents"


_RULES: Mapping[Key, Callable[[Any, Any], str | None]] = {
    SANDBOX: _compare_walls,
    SANDBOX_NETWORK: _compare_networks,
    SANDBOX_WRITE: _compare_paths,
    SANDBOX_READ: _compare_paths,
    YOLO: lambda value, users: "says what agents may do" if value else None,
}
