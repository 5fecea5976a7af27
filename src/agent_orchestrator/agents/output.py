"""Reads the end of what a program wrote, however much that is: never more than a few hundred kilobytes are touched."""

from __future__ import annotations

import os
import re
import stat
from pathlib import Path

from agent_orchestrator.agents.adapter import Ending
from agent_orchestrator.bounded import open_launched
from agent_orchestrator.core.limits import ERROR_LINE_CHARS, TAIL_CHARS
from agent_orchestrator.core.text import clip
from agent_orchestrator.errors import is_shortage

_LAST_LINE_BYTES = 64 * 1024
_ESCAPES = r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\-_])"
_CONTROLS = r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
"""Control characters, and those that turn the direction of text around or are half of a character."""


def read_tail(path: Path, chars: int = TAIL_CHARS, but: re.Pattern[str] | None = None) -> str:
    """Read the last characters of a file, without lines that begin with `but`; a missing file is empty."""
    if but is not None:
        raw, cut = _last_bytes(path, _LAST_LINE_BYTES)
        lines = raw.decode("utf-8", "replace").splitlines(keepends=True)[1 if cut else 0 :]
        return "".join(line for line in lines if not but.match(line))[-chars:]
    # A character has at most four bytes; one more than asked for shows whether the first is whole.
    raw, cut = _last_bytes(path, chars * 4 + 4)
    text = raw.decode("utf-8", "replace")
    return text[-chars:] if cut or len(text) > chars else text


def read_last_line(path: Path, but: re.Pattern[str] | None = None) -> str:
    """Read the last line with something to read in it, without colours and control characters, at most ERROR_LINE_CHARS.

    Lines that begin with `but` have nothing to read in them.
    """
    raw, _ = _last_bytes(path, _LAST_LINE_BYTES)
    for line in reversed(raw.decode("utf-8", "replace").splitlines()):
        # What a carriage return overwrote (a progress bar) was cut off by splitlines; the rest is for a person's eyes.
        readable = plain(line).strip()
        if readable and (but is None or not but.match(readable)):
            return clip(readable, ERROR_LINE_CHARS)
    return ""


def read_ends(path: Path, chars: int = TAIL_CHARS) -> str:
    """Read both ends of a file: a CLI that was called wrongly says so and then prints its whole help."""
    tail = read_tail(path, chars)
    try:
        with open_launched(path) as file:
            head = file.read(chars).decode("utf-8", "replace")
    except OSError as error:
        if is_shortage(error):
            raise
        return tail
    return tail if len(head) < chars else f"{head}\n{tail}"


def read_tails(ending: Ending, said: str | None = None, chatter: re.Pattern[str] | None = None) -> str:
    """Read the ends of both streams as text, at most TAIL_CHARS: the error output, without its chatter, comes last.

    `said` stands for the output where that is a stream of events, also when nothing was said.
    """
    err = readable(read_tail(ending.err, TAIL_CHARS // 2, chatter))
    room = TAIL_CHARS - len(err) - 1 if err else TAIL_CHARS
    out = readable(said)[-room:] if said is not None else readable(read_tail(ending.out, room))
    if not out or not err:
        return out or err
    return out + err if out.endswith("\n") else f"{out}\n{err}"


def plain(text: str) -> str:
    """Return the text without terminal escapes and control characters; tabs and newlines stay."""
    return re.sub(_CONTROLS, "", re.sub(_ESCAPES, "", text))


def readable(text: str) -> str:
    """Return the text as a terminal leaves it: without escapes, and without what a carriage return wrote over."""
    if text.isprintable():
        return text
    lines = (line.rstrip("\r").rpartition("\r")[2] for line in re.sub(_ESCAPES, "", text).split("\n"))
    return re.sub(_CONTROLS, "", "\n".join(lines))


def _last_bytes(path: Path, count: int) -> tuple[bytes, bool]:
    """Return the last bytes of a file, and whether there are more before them; raises OSError for anything but a plain file."""
    try:
        found = os.lstat(path)  # Most programs leave one of their streams empty: nothing is opened for that.
        if stat.S_ISREG(found.st_mode) and found.st_size == 0:
            return b"", False
        with open_launched(path) as file:
            start = max(0, file.seek(0, os.SEEK_END) - count)
            file.seek(start)
            return file.read(count), start > 0
    except FileNotFoundError:
        return b"", False
