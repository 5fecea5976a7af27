"""A text that takes the whole terminal and is scrolled: pure. Keys go in, lines of one page come out."""

from __future__ import annotations

from collections.abc import Sequence

from agent_orchestrator.surfaces.transcript import Line, Span, cells_of, clip_cells

HELP = "↑ ↓ space b to scroll, q goes back"


class Page:
    """One text and the place in it."""

    def __init__(self, title: str) -> None:
        self._title = title
        self._top = 0
        self._rows = 1

    def render(self, lines: Sequence[Line], width: int, height: int) -> list[Line]:
        """Return the part of the text that is looked at, and a line below it."""
        self._rows = max(1, height - 1)
        self._top = max(0, min(self._top, len(lines) - self._rows))
        shown = [_clip(line, width) for line in lines[self._top : self._top + self._rows]]
        shown += [[] for _ in range(self._rows - len(shown))]
        last = min(len(lines), self._top + self._rows)
        place = f"{self._title}  {last}/{len(lines)}  {HELP}"
        return [*shown, [Span(clip_cells(place, width), "bold")]] if height > 1 else shown

    def press(self, key: str) -> bool:
        """Take a key; return False when the page is to be closed."""
        match key:
            case "q" | "escape" | "d":
                return False
            case "down" | "j" | "enter":
                self._top += 1
            case "up" | "k":
                self._top -= 1
            case " " | "page down" | "f":
                self._top += self._rows
            case "b" | "page up":
                self._top -= self._rows
            case "g" | "home":
                self._top = 0
            case "G" | "end":
                self._top = 2**31
        return True


def _clip(line: Line, width: int) -> Line:
    shown, room = [], width
    for text, tone in line:
        if room <= 0:
            break
        shown.append(Span(clip_cells(text, room), tone))
        room -= cells_of(shown[-1].text)
    return shown
