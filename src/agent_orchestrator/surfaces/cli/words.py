"""The words of a system on the command line: one with words of its own has them in `surfaces/cli/<system>/words.py`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from agent_orchestrator.systems import find_part

if TYPE_CHECKING:
    from agent_orchestrator.runs.orchestrator import Orchestrator
    from agent_orchestrator.runs.start import Change
    from agent_orchestrator.store.port import StoredRun


class Phrase(NamedTuple):
    """An event in words: its unit ("" for the run), the words, and whether only the history has them."""

    unit: str
    words: str
    quiet: bool = False


Phrases = Mapping[type, Callable[[Any], Phrase]]


class Words(NamedTuple):
    """The words of a system: `WORDS` of its module."""

    phrases: Phrases = MappingProxyType({})
    """Its events in words; others are told by their names and fields."""
    closing_lines: Callable[[Any], list[str]] | None = None
    """Tells more of a run, by its state, below its result when it rests."""
    check_source: Callable[[str, Path, Path | None], tuple[str, tuple[str, ...]]] | None = None
    """Checks the text of a file that runs are made of, with its path and the home to look for more in; raises InvalidSpec.

    Returns the file in words, and warnings.
    """
    check_state: Callable[[str, Any], str | list[str] | None] | None = None
    """Checks a state file, by its name and its document; raises InvalidSpec.

    Returns the file in words, or its faults, each with the path of its key before a colon; None for another system's.
    """
    try_again: Callable[[Orchestrator, StoredRun, Change, dict[str, Any]], int] | None = None
    """Tries an ended run again whose agents may do more now, for `orc resume`, if that is more than going on."""


_PLAIN = Words()


def words_of(system: str) -> Words:
    """Return the words of a system."""
    return find_part(f"surfaces.cli.{system}.words", "WORDS", _PLAIN)
