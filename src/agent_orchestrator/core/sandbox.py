"""The sandbox of a run: the wall around its agents and checks, as it is chosen once and stored with the run.

Which wall stands on which machine is found out by `engine/walls`; here are only the words.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Literal

import msgspec

from agent_orchestrator.errors import InvalidValue


class Wall(StrEnum):
    """The kinds of walls."""

    BWRAP = "bwrap"
    """bubblewrap: file systems, processes and, where asked, the network of their own."""
    LANDLOCK = "landlock"
    """The kernel's own rules about paths, inherited by every child; needs no program."""
    COMMAND = "command"
    """A program of the user's that encloses another: `podman run …`."""


AUTO, NONE = "auto", "none"
WALLS = (AUTO, Wall.BWRAP, Wall.LANDLOCK, NONE)
"""The words of `--sandbox`; a command line is the third kind of wall."""

Reach = Literal["on", "agents", "off"]
REACHES: tuple[Reach, ...] = ("on", "agents", "off")


class Sandbox(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A wall and its gates. Paths are absolute."""

    wall: Wall
    network: Reach = "on"
    """`agents`: the agents' alone, checks have none."""
    proxy: str = ""
    """The only address of the network that is open, as a URL."""
    write: tuple[str, ...] = ()
    """Paths that may be written to besides the working tree."""
    read: tuple[str, ...] = ()
    """Paths that may be read although they lie where secrets do."""
    command: tuple[str, ...] = ()
    """The program that encloses, with its arguments."""


def read_network(given: str | None, what: str = "--sandbox-network") -> tuple[Reach, str]:
    """Read who reaches the network, and the proxy that is the only way, "" for none, as `--sandbox-network` has them."""
    for word in REACHES:
        if given is None or given == word:
            return word, ""
    assert given is not None
    if given.startswith(("http://", "https://")):
        return "on", given
    raise InvalidValue(what=what, value=given, expected="on, agents, off, or the URL of a proxy")
