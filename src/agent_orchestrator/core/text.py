"""Text for people and state files: cut to a length, put into one line; and the time as the seeds' files spell it.

What an agent or a person wrote has no length that we may rely on: every place that keeps some of it cuts it here.
"""

from __future__ import annotations

from collections.abc import Iterable

from agent_orchestrator.core.limits import ERROR_LINE_CHARS, TAIL_CHARS
from agent_orchestrator.core.units import iso


def clip(text: str, most: int = TAIL_CHARS) -> str:
    """Cut the text to at most `most` characters, without the white space around it; `…` marks the cut."""
    text = text.strip()
    return text if len(text) <= most else text[: most - 1] + "…"


def clip_line(text: str, most: int = ERROR_LINE_CHARS) -> str:
    """Put the text into one line of at most `most` characters."""
    return clip(" ".join(text.split()), most)


def last_line(output: str) -> str:
    """Give the last line of a program's output with something in it, as much of it as an error quotes."""
    lines = (line.strip() for line in reversed(output.splitlines()))
    return next((line for line in lines if line), "")[:ERROR_LINE_CHARS]


def find_near(word: str, known: Iterable[str], like: float = 0.6) -> str | None:
    """Give the word that was probably meant; `like` is how much it must be alike, from 0 to 1."""
    import difflib

    return next(iter(difflib.get_close_matches(word, list(known), n=1, cutoff=like)), None)


def stamp(at_us: int) -> str:
    """Spell a time as 2026-01-15T12:00:00Z: UTC, whole seconds."""
    return f"{iso(at_us)[:19]}Z"
