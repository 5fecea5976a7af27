"""Pieces of Markdown that prompts are made of."""

from __future__ import annotations

import re

_BACKTICKS = re.compile(r"`{3,}")


def section(title: str, text: str) -> str:
    """A heading with its text."""
    return f"## {title}\n\n{text.rstrip()}\n"


def fenced(text: str, language: str = "") -> str:
    """A block of code, in a fence that nothing inside it can end."""
    fence = max((len(run) + 1 for run in _BACKTICKS.findall(text)), default=3) * "`"
    return f"{fence}{language}\n{text.rstrip()}\n{fence}"
