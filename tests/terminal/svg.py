"""A terminal as a picture: what tmux captured, escapes and all, drawn as an SVG that needs nothing from elsewhere."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import escape
from typing import NamedTuple

from agent_orchestrator.surfaces.transcript import cells_of

CELL, LINE, PAD, BAR = 8.4, 18, 14, 30
BACK, FRONT, DIM = "#11151c", "#d6dbe4", "#8b93a1"
COLOURS = {
    30: "#5c6370",
    31: "#f2777a",
    32: "#8fd18b",
    33: "#f0c674",
    34: "#7aa6ff",
    35: "#c792ea",
    36: "#66d1d1",
    37: FRONT,
}
FONT = "ui-monospace, 'SFMono-Regular', Menlo, Consolas, 'DejaVu Sans Mono', monospace"

_CHUNK = re.compile(r"\S+(?: \S+)*")
"""Words with one space between them."""
_SGR = re.compile(r"\x1b\[([0-9;]*)m")


class Style(NamedTuple):
    """The look of a piece of text."""

    colour: str = FRONT
    bold: bool = False
    dim: bool = False

    def follow(self, codes: str) -> Style:
        """Return the style after an escape."""
        style = self
        for code in (int(one or 0) for one in codes.split(";")):
            if code == 0:
                style = Style()
            elif code == 1:
                style = style._replace(bold=True)
            elif code == 2:
                style = style._replace(dim=True)
            elif code == 22:
                style = style._replace(bold=False, dim=False)
            elif code == 39:
                style = style._replace(colour=FRONT)
            elif code in COLOURS or code - 60 in COLOURS:
                style = style._replace(colour=COLOURS[code if code in COLOURS else code - 60])
        return style


def split_styles(captured: str) -> Iterator[list[tuple[str, Style]]]:
    """Return the lines of a capture, each in pieces of one style; a style goes on until another one is said."""
    style = Style()
    for line in captured.split("\n"):
        pieces: list[tuple[str, Style]] = []
        for at, part in enumerate(_SGR.split(line)):
            if at % 2:
                style = style.follow(part)
            elif part:
                pieces.append((part, style))
        yield pieces


def draw(captured: str, columns: int, rows: int, title: str) -> str:
    """Return the picture of a terminal of this size."""
    width, height = columns * CELL + 2 * PAD, rows * LINE + PAD + BAR + PAD
    size, font = f'viewBox="0 0 {width:g} {height:g}" width="{width:g}"', f'font-family="{FONT}" font-size="14"'
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" {font}>',
        f"<title>{escape(title)}</title>",
        f'<rect width="{width:g}" height="{height:g}" rx="8" fill="{BACK}"/>',
        f'<rect width="{width:g}" height="{BAR - 6}" rx="8" fill="#1b212b"/>',
    ]
    out += [f'<circle cx="{16 + 16 * at}" cy="12" r="5" fill="{COLOURS[code]}"/>' for at, code in enumerate((31, 33, 32))]
    out.append(f'<text x="{width / 2:g}" y="17" fill="{DIM}" font-size="12" text-anchor="middle">{escape(title)}</text>')
    for row, pieces in enumerate(split_styles(captured)):
        out += _line(pieces, PAD + BAR + row * LINE)
    return "\n".join([*out, "</svg>", ""])


def _line(pieces: list[tuple[str, Style]], y: float) -> Iterator[str]:
    """Place each piece by its column, so that no font can shift what stands behind it."""
    column = 0
    for text, style in pieces:
        for chunk in _CHUNK.finditer(text):
            x = PAD + (column + cells_of(text[: chunk.start()])) * CELL
            length = f'textLength="{cells_of(chunk[0]) * CELL:g}" lengthAdjust="spacingAndGlyphs"'
            bold, fill = ' font-weight="bold"' if style.bold else "", DIM if style.dim else style.colour
            yield f'<text x="{x:g}" y="{y:g}" {length} fill="{fill}"{bold}>{escape(chunk[0])}</text>'
        column += cells_of(text)
