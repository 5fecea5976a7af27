"""The keys of the person at the terminal: read without an echo, so that they never smear what is drawn there.

Signals stay what they are: Ctrl-C interrupts. In the background nothing is read and nothing is set: the terminal is another's.
"""

from __future__ import annotations

import codecs
import contextlib
import os
import re
import select
import sys
import termios
from typing import Any

READ_BYTES = 64 * 1024

_NAMES = {
    "\r": "enter",
    "\n": "enter",
    "\t": "tab",
    "\x7f": "backspace",
    "\x08": "backspace",
    "\x15": "ctrl-u",
    "\x17": "ctrl-w",
    "\x1b": "escape",
    "\x1b[A": "up",
    "\x1b[B": "down",
    "\x1bOA": "up",
    "\x1bOB": "down",
    "\x1b[5~": "page up",
    "\x1b[6~": "page down",
    "\x1b[H": "home",
    "\x1b[F": "end",
    "\x1b[1~": "home",
    "\x1b[4~": "end",
}
_PART = re.compile(r"\x1b\[200~(?P<pasted>.*?)\x1b\[201~|\x1b(?:\[[0-?]*[ -/]*[@-~]|O[@-~])|.", re.DOTALL)
_OPEN_PASTE = re.compile(r"\x1b\[200~(?!.*\x1b\[201~)", re.DOTALL)


class Pasted(str):
    """A text that was pasted: no key is meant by any part of it."""

    __slots__ = ()


def read_keys(text: str) -> tuple[list[str], str]:
    """Return the keys that a text of the terminal means, characters as they are, and a paste that has not ended."""
    unfinished = _OPEN_PASTE.search(text)
    whole, rest = (text[: unfinished.start()], text[unfinished.start() :]) if unfinished is not None else (text, "")
    keys: list[str] = []
    for part in _PART.finditer(whole):
        if part["pasted"] is not None:
            keys.append(Pasted(part["pasted"].replace("\r\n", "\n").replace("\r", "\n")))
        elif part[0] in _NAMES:
            keys.append(_NAMES[part[0]])
        elif part[0].isprintable():
            keys.append(part[0])
    return keys, rest


class Keyboard:
    """The standard input, if a person can type there."""

    def __init__(self) -> None:
        self._before: list[Any] | None = None
        """The terminal's modes as they were found."""
        self._ours: list[Any] | None = None
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._rest = ""
        try:
            self._fd = sys.stdin.fileno()
            self.present = os.isatty(self._fd)
        except (AttributeError, OSError, ValueError):
            self._fd, self.present = -1, False

    def open(self) -> bool:
        """Take the terminal where it is ours, again if somebody changed it meanwhile; say whether keys can be read."""
        if not self._is_ours():
            return False
        with contextlib.suppress(termios.error, OSError):
            modes = termios.tcgetattr(self._fd)
            if self._ours is None or modes[3] != self._ours[3]:
                self._before = self._before or [*modes[:6], list(modes[6])]
                modes[3] &= ~(termios.ECHO | termios.ICANON)
                modes[6][termios.VMIN], modes[6][termios.VTIME] = 1, 0
                termios.tcsetattr(self._fd, termios.TCSADRAIN, modes)
                self._ours = modes
            return True
        return False

    def read(self, wait_s: float = 0.0) -> list[str]:
        """Return the keys that were pressed, within so many seconds if there are none yet."""
        ready = self._is_ours()
        if not select.select([self._fd] if ready else [], [], [], wait_s)[0] or not ready:
            return []
        try:
            found = os.read(self._fd, READ_BYTES)
        except OSError:
            found = b""
        if not found:
            self.present = False  # The terminal was hung up.
        keys, self._rest = read_keys(self._rest + self._decoder.decode(found))
        return keys

    def drop(self) -> None:
        """Forget what was typed before a question: it was not meant for it."""
        self._rest = ""
        if self._is_ours():
            with contextlib.suppress(termios.error, OSError):
                termios.tcflush(self._fd, termios.TCIFLUSH)

    def close(self) -> None:
        """Give the terminal back as it was found."""
        if self._before is not None and self._is_ours():
            with contextlib.suppress(termios.error, OSError):
                termios.tcsetattr(self._fd, termios.TCSADRAIN, self._before)
        self._before = self._ours = None

    def _is_ours(self) -> bool:
        try:
            return self.present and os.tcgetpgrp(self._fd) == os.getpgrp()
        except OSError:
            return False
