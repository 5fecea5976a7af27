"""Criteria as documents write them: checkboxes or items, with what stands below an item as part of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from agent_orchestrator.systems.phases.commands import Exists, find_command, presume
from agent_orchestrator.systems.phases.parse.blocks import Complain, Entry
from agent_orchestrator.systems.phases.spec import Criterion, make_criteria


class DocumentReading(msgspec.Struct, frozen=True, kw_only=True):
    """The way of one reading: where faults and remarks go, and which programs there are."""

    complain: Complain
    warn: Callable[[str], None]
    exists: Exists = presume


def read_criteria(entries: Sequence[Entry], nameless: str, reading: DocumentReading) -> tuple[Criterion, ...]:
    """Read items as criteria; `nameless` is the complaint about one that has no text."""
    outer = min((entry.depth for entry in entries if entry.item), default=0)
    held: list[tuple[int, str, list[str]]] = []
    for entry in entries:
        text = entry.box if entry.box is not None else entry.text if entry.item else None
        if entry.text.startswith("|"):
            reading.complain("a criterion is an item, not a row of a table: write - [ ] and what must be true", entry.line)
        elif held and entry.box is None and entry.depth > (outer if entry.item else 0):
            held[-1][2].append(entry.text)
        elif text is not None and not text:
            reading.complain(f"{nameless}: say what must be true", entry.line)
        elif text is not None:
            held.append((entry.line, text, []))
    return find_commands([(line, _with_details(text, details)) for line, text, details in held], reading)


def find_commands(texts: Sequence[tuple[int, str]], reading: DocumentReading) -> tuple[Criterion, ...]:
    """Make criteria of texts with their lines, and say which codes look like a command and are not run."""
    found = [(line, text, find_command(text, reading.exists)) for line, text in texts]
    for line, _, one in found:
        for code in one.missing:
            way = "it is not run; write `run:` before it if it shall be"
            reading.warn(f"line {line}: `{code}` looks like a command, and there is no such program here: {way}")
    return make_criteria([(text, one) for _, text, one in found])


def _with_details(text: str, details: list[str]) -> str:
    return f"{text.rstrip(':')}: {'; '.join(details)}" if details else text
