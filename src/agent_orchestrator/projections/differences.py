"""The differences between a print-out as the journal has it and as it lies on disk, one line for each field."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

SHOWN_CHARS = 60
_NOTHING = object()


def differences(ours: Any, theirs: Any) -> list[str]:
    """List the fields that differ, as `steps.coding.status: "FAILED" -> "COMPLETED"`; in ASCII: agents may have written it."""
    return [f"{path}: {_shown(before)} -> {_shown(after)}" for path, before, after in _walk("", ours, theirs)]


def _walk(path: str, ours: Any, theirs: Any) -> Iterator[tuple[str, Any, Any]]:
    if isinstance(ours, dict) and isinstance(theirs, dict):
        for name in dict.fromkeys((*ours, *theirs)):
            yield from _walk(_join(path, name), ours.get(name, _NOTHING), theirs.get(name, _NOTHING))
    elif isinstance(ours, list) and isinstance(theirs, list):
        for index in range(max(len(ours), len(theirs))):
            yield from _walk(f"{path}[{index}]", _at(ours, index), _at(theirs, index))
    elif type(ours) is not type(theirs) or ours != theirs:
        yield path or "the file", ours, theirs


def _at(values: list[Any], index: int) -> Any:
    return values[index] if index < len(values) else _NOTHING


def _join(path: str, name: str) -> str:
    said = _cut(json.dumps(name)[1:-1])
    return f"{path}.{said}" if path else said


def _shown(value: Any) -> str:
    return "nothing" if value is _NOTHING else _cut(json.dumps(value))


def _cut(text: str) -> str:
    return text if len(text) <= SHOWN_CHARS else text[: SHOWN_CHARS - 3] + "..."
