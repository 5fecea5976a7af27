"""The inspection of a print-out on disk: ours, an edit by hand, torn by a power cut, or gone.

An edit is recognised by identity (inode, time, size), not by content: a known identity is our own print-out, however
old it is, and is simply written again. Nothing is looked at through a link below the run's home.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import Any

import msgspec

from agent_orchestrator.beneath import LinkInTheWay, open_folder, stat_beneath
from agent_orchestrator.bounded import read_bounded
from agent_orchestrator.core.printed import Identity
from agent_orchestrator.errors import is_shortage

EDIT_LIMIT_BYTES = 256 * 1024 * 1024


class PrintoutState(StrEnum):
    """The origin of the file at a print-out's place."""

    OURS = "ours"
    MISSING = "missing"
    TORN = "torn"
    EDITED = "edited"
    BROKEN = "broken"
    """Foreign, and not a JSON object."""
    UNREACHED = "unreached"
    """A link is on the way to it: whatever is behind that is not ours, and no edit of ours."""


class Inspection(msgspec.Struct, frozen=True, kw_only=True):
    """The file at a print-out's place: its state, and its content if a person edited it."""

    state: PrintoutState
    document: dict[str, Any] | None = None
    problem: str = ""


def find_known(home: Path, path: Path, known: Sequence[Identity]) -> Identity | None:
    """Return the identity of the file if it is one of these; raises OSError where there is none, or a link leads to it."""
    return find_identity(stat_beneath(home, path), known)


def find_identity(status: os.stat_result, known: Sequence[Identity]) -> Identity | None:
    """Return the identity by which a file is known, if it is one of these."""
    seen = (status.st_ino, status.st_mtime_ns, status.st_size)
    return next((one for one in reversed(known) if seen == (one.inode, one.mtime_ns, one.size)), None)


def remove_ours(home: Path, path: Path, known: Sequence[Identity]) -> bool:
    """Remove one of our own print-outs, and nothing else; return True if it is gone."""
    try:
        if find_known(home, path, known) is not None:
            with open_folder(home, path.parent) as folder:
                os.unlink(path.name, dir_fd=folder)
            return True
    except (FileNotFoundError, NotADirectoryError):
        return True
    except LinkInTheWay:
        pass
    return False


def inspect(home: Path, path: Path, known: Sequence[Identity]) -> Inspection:
    """Inspect one print-out; raises OSError where the machine is too short of something to look: that is no fault of it."""
    try:
        if find_known(home, path, known) is not None:
            return Inspection(state=PrintoutState.OURS)
        content = read_bounded(path, EDIT_LIMIT_BYTES, root=home)
    except (FileNotFoundError, NotADirectoryError):
        return Inspection(state=PrintoutState.MISSING)
    except LinkInTheWay as error:
        on_the_way = error.filename != str(path)
        problem = f"{error.filename} is a link, and state files are not read through one"
        return Inspection(state=PrintoutState.UNREACHED if on_the_way else PrintoutState.BROKEN, problem=problem)
    except OSError as error:
        if is_shortage(error):
            raise
        return Inspection(state=PrintoutState.BROKEN, problem=f"it cannot be read: {error.strerror}")
    if not content.strip(b"\0 \t\r\n"):
        return Inspection(state=PrintoutState.TORN)
    try:
        document = msgspec.json.decode(content)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        return Inspection(state=PrintoutState.BROKEN, problem=f"it is not JSON: {error}")
    if not isinstance(document, dict):
        return Inspection(state=PrintoutState.BROKEN, problem="it is not a JSON object")
    return Inspection(state=PrintoutState.EDITED, document=document)
