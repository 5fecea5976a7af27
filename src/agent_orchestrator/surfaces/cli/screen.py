"""Output for a terminal: tables that fit, colour where it is wanted, JSON where it is asked for.

`orc status` and `orc list` must stay instant: nothing is imported here that costs.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TextIO

import msgspec

WIDTH_MIN, WIDTH_MAX, WIDTH_UNKNOWN = 40, 160, 80
GAP = "  "

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]+")
_COLOURS = {"red": "31", "green": "32", "yellow": "33", "blue": "34", "cyan": "36", "dim": "2", "bold": "1"}
_BY_STATUS = {
    "completed": "green",
    "skipped": "dim",
    "running": "blue",
    "waiting": "yellow",
    "waiting_on_human": "yellow",
    "paused": "yellow",
    "pending": "dim",
    "complete": "green",
    "done": "green",
    **dict.fromkeys(("dev_working", "qa_testing", "tech_review", "planning", "final_check"), "blue"),
    **dict.fromkeys(("waiting_qa", "waiting_review", "watching"), "dim"),
    **dict.fromkeys(("dev_blocked", "qa_failed", "changes_requested"), "yellow"),
}


def plain(text: object) -> str:
    """One line without control characters: what an agent wrote must not steer the terminal."""
    return _CONTROL.sub(" ", str(text)).strip()


def shorten(text: object, width: int) -> str:
    """At most `width` characters of one line, the cut marked."""
    line = plain(text)
    return line if len(line) <= width else line[: max(0, width - 1)] + "…"


def tone_of(status: str) -> str:
    """Return the colour of a status; what is not listed went wrong."""
    return _BY_STATUS.get(status.lower(), "red")


def _columns(environ: Mapping[str, str]) -> int:
    """Return the width of the terminal. `shutil` knows it as well, but brings three compressors into every command."""
    given = environ.get("COLUMNS", "")
    if given.isdecimal() and len(given) < 6 and int(given):
        return int(given)
    try:
        return os.get_terminal_size(sys.__stdout__.fileno() if sys.__stdout__ else -1).columns or WIDTH_UNKNOWN
    except (OSError, ValueError):
        return WIDTH_UNKNOWN


class Screen:
    """The output of a command. Colour only on a terminal, and never when NO_COLOR is set."""

    def __init__(self, environ: Mapping[str, str], out: TextIO | None = None) -> None:
        self.out = out or sys.stdout
        self.terminal = self.out.isatty()
        self.drawable = self.terminal and environ.get("TERM", "dumb") != "dumb"
        """True where lines can be taken back and drawn anew."""
        self.colour = self.terminal and not environ.get("NO_COLOR") and environ.get("TERM") != "dumb"
        self.width = max(WIDTH_MIN, min(WIDTH_MAX, _columns(environ)))

    def line(self, text: str = "") -> None:
        """Writes one line at once, so that a pipe sees it when a terminal would."""
        self.out.write(text + "\n")
        self.out.flush()

    def paint(self, text: str, colour: str) -> str:
        """The text in a colour, if there are colours."""
        return f"\x1b[{_COLOURS[colour]}m{text}\x1b[0m" if self.colour and colour else text

    def paint_line(self, spans: Iterable[tuple[str, str]]) -> str:
        """The texts of a line, each with its colour, one after the other."""
        return "".join(self.paint(text, colour) for text, colour in spans if text)

    def paint_status(self, text: str, status: str) -> str:
        """The text in the colour of a status."""
        return self.paint(text, tone_of(status))

    def table(
        self,
        headers: Sequence[str],
        rows: Sequence[Sequence[object]],
        *,
        status: int | None = None,
        whole: int | None = None,
    ) -> None:
        """Rows under headers; the last column takes what is left and the widest of the others gives way, but for `whole`."""
        cells = [[plain(cell) for cell in row] for row in rows]
        widths = self._fit([max(len(head), *(len(row[at]) for row in cells), 0) for at, head in enumerate(headers)], whole)
        lines = [self.paint(_row(headers, widths), "bold")]
        for row in cells:
            text = [shorten(cell, widths[at]).ljust(widths[at]) for at, cell in enumerate(row)]
            if status is not None:
                text[status] = self.paint_status(text[status], row[status])
            lines.append(GAP.join(text).rstrip())
        self.line("\n".join(lines))

    def _fit(self, widths: list[int], whole: int | None) -> list[int]:
        room = self.width - len(GAP) * (len(widths) - 1)
        yielding = [at for at in range(len(widths)) if at != whole]
        while (over := sum(widths) - room) > 0:
            widest = max(yielding, key=lambda at: (widths[at], at))
            if widths[widest] <= 6:
                break
            second = max((widths[at] for at in yielding if at != widest), default=6)
            widths[widest] = max(6, widths[widest] - max(1, min(over, widths[widest] - second)))
        return widths


def _row(cells: Sequence[str], widths: Sequence[int]) -> str:
    return GAP.join(shorten(cell, width).ljust(width) for cell, width in zip(cells, widths, strict=True)).rstrip()


def print_json(document: Any) -> None:
    """The one object of `--json`."""
    sys.stdout.write(msgspec.json.format(msgspec.json.encode(document), indent=2).decode() + "\n")
    sys.stdout.flush()


def warn(text: str) -> None:
    """Something a person should know, on standard error."""
    sys.stderr.write(f"orc: {plain(text)}\n")
    sys.stderr.flush()
