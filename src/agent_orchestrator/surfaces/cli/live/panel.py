"""The lines that stand below those that scroll, and a page that takes the whole terminal for a while.

A terminal that was hung up is no reason to stop a run: what cannot be written is left out.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence

from agent_orchestrator.surfaces.cli.screen import Screen
from agent_orchestrator.surfaces.transcript import Line, cells_of

PAGE_ON, PAGE_OFF = "\x1b[?1049h", "\x1b[?1049l"
PASTE_ON, PASTE_OFF = "\x1b[?2004h", "\x1b[?2004l"
"""With it a terminal marks what is pasted, so that no part of it is taken for a key."""
TOP, ERASE_BELOW, ERASE_LINE = "\x1b[H", "\x1b[J", "\x1b[2K"
SHARE = 2 / 3
"""The part of the terminal that the panel may take; the rest is for what scrolls."""
ROWS_MIN = 8
"""A terminal with fewer rows has room for nothing else."""


class Panel:
    """The bottom of a terminal."""

    def __init__(self, screen: Screen) -> None:
        self._screen = screen
        self._drawn: list[str] = []
        """The lines that stand there, as they were painted."""
        self._cells: list[int] = []
        self._held: list[str] = []
        """Lines to be told when the page is closed."""
        self._paged = self._pastes = False

    @property
    def size(self) -> tuple[int, int]:
        """The columns and rows of the terminal as it is now."""
        try:
            columns, rows = os.get_terminal_size(self._screen.out.fileno())
        except OSError:
            columns, rows = 80, 24
        return (columns or 80, rows or 24)

    @property
    def room(self) -> tuple[int, int]:
        """The columns and rows that a panel may have."""
        columns, rows = self.size
        return columns, rows - 1 if rows <= ROWS_MIN else max(ROWS_MIN - 1, int(rows * SHARE))

    def is_ours(self) -> bool:
        """Say whether we are in the foreground: another's lines must not be taken back. What was drawn before stays there."""
        try:
            ours = os.tcgetpgrp(self._screen.out.fileno()) == os.getpgrp()
        except OSError:  # It is a terminal, and not the one that controls us.
            ours = True
        if not ours:
            self._drawn, self._cells = [], []
        return ours

    def tell(self, lines: Sequence[str]) -> None:
        """Let lines scroll by above the panel."""
        if self._paged:
            self._held += lines
        elif lines:
            self.is_ours()
            told = "".join(f"{line}\n" for line in lines)
            self._write(self._erasure() + told + "\n".join(self._drawn))

    def draw(self, lines: Sequence[Line]) -> None:
        """Show these lines instead of those that stand there."""
        painted = [self._screen.paint_line(line) for line in lines]
        if self._paged or painted == self._drawn:
            return
        erasure = self._erasure()
        self._drawn, self._cells = painted, [sum(cells_of(span.text) for span in line) for line in lines]
        self._write(erasure + "\n".join(painted))

    def page(self, lines: Sequence[Line]) -> None:
        """Show a page on the whole terminal; the panel waits behind it."""
        opening = "" if self._paged else PAGE_ON
        self._paged = True
        painted = "\r\n".join(f"{ERASE_LINE}{self._screen.paint_line(line)}" for line in lines)
        self._write(f"{opening}{TOP}{painted}{ERASE_BELOW}")

    def close_page(self) -> None:
        """Show the panel again, and what happened meanwhile."""
        if self._paged:
            self._paged = False
            self._write(PAGE_OFF)
            held, self._held = self._held, []
            self.tell(held)

    def take_pastes(self, wanted: bool) -> None:
        """Let the terminal mark what is pasted, or not any more."""
        if wanted != self._pastes:
            self._pastes = wanted
            self._write(PASTE_ON if wanted else PASTE_OFF)

    def close(self) -> None:
        """Take the panel away; what was told stays."""
        self.close_page()
        self.take_pastes(False)
        self.is_ours()
        self._write(self._erasure())
        self._drawn, self._cells = [], []

    def _erasure(self) -> str:
        """Return what takes the panel away: a terminal that became narrower has broken its lines."""
        if not self._drawn:
            return ""
        columns, rows = self.size
        taken = sum(max(1, -(-cells // columns)) for cells in self._cells)
        up = min(taken, rows) - 1
        return f"\r\x1b[{up}A{ERASE_BELOW}" if up else f"\r{ERASE_BELOW}"

    def _write(self, text: str) -> None:
        if text:
            with contextlib.suppress(OSError, ValueError):
                self._screen.out.write(text)
                self._screen.out.flush()
