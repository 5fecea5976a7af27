"""The sections of a task document that switch the supervisor and the outer loop on and off."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

import msgspec

from agent_orchestrator.core.units import read_count
from agent_orchestrator.errors import InvalidValue
from agent_orchestrator.systems.phases.parse.blocks import Section
from agent_orchestrator.systems.phases.spec import OUTER_ITERATIONS, Supervision

Complain = Callable[[str, int | None], None]

ENABLE = ("enable", "enabled")
AUTO_FIX = ("auto-fix", "auto fix")
OUTER_MAX = ("maximum iterations", "max iterations", "max")
SUPERVISION_KEYS = (*ENABLE, *AUTO_FIX, "frequency")
OUTER_KEYS = (*ENABLE, *OUTER_MAX)
WORDS = {"yes": True, "true": True, "on": True, "enabled": True, "no": False, "false": False, "off": False, "disabled": False}
FREQUENCIES = {
    "every task": (True, True),
    "before and after each task": (True, True),
    "before each task": (True, False),
    "pre_task": (True, False),
    "after each task": (False, True),
    "post_task": (False, True),
    "on demand": (False, False),
    "on_demand": (False, False),
}


def only_fields(section: Section, known: Collection[str], example: str, complain: Complain) -> None:
    """A setting that is not written as one must not be overlooked: it may be the limit that somebody relies on."""
    taken = {field.line for field in section.fields}
    lost = {entry.line: entry.text for entry in section.entries if entry.item and entry.line not in taken}
    lost |= {line: text for line, (text, _) in section.unmarked(known).items()}
    for line, text in sorted(lost.items()):
        complain(f"{text!r} would not be read; write it as in - **{example}**: …", line)
    keys = [field.key.lower() for field in section.fields]
    for number, field in enumerate(section.fields):
        if field.key.lower() in keys[:number]:
            complain(f"{field.key!r} stands twice; keep one", field.line)


def read_supervision(section: Section, complain: Complain) -> dict[str, Any]:
    """`## Supervisor Checks`."""
    made = Supervision()
    only_fields(section, SUPERVISION_KEYS, "Enable", complain)
    for field in section.fields:
        key, value = field.key.lower(), " ".join(field.value.lower().split())
        if key in ENABLE:
            made = msgspec.structs.replace(made, enabled=_switch(field.key, value, field.line, complain))
        elif key in AUTO_FIX:
            made = msgspec.structs.replace(made, auto_fix=_switch(field.key, value, field.line, complain))
        elif key == "frequency":
            if value not in FREQUENCIES:
                known = "every task, before each task, after each task, on demand"
                complain(f"Frequency is {field.value!r}: it must be one of {known}", field.line)
            before, after = FREQUENCIES.get(value, (True, True))
            made = msgspec.structs.replace(made, before=before, after=after)
        else:
            complain(f"{field.key!r} is no setting of the supervisor; there are: Enable, Frequency, Auto-fix", field.line)
    return {"supervision": made}


def read_outer(section: Section, complain: Complain) -> dict[str, Any]:
    """`## Outer Ralph Loop`."""
    made: dict[str, Any] = {}
    only_fields(section, OUTER_KEYS, "Maximum iterations", complain)
    for field in section.fields:
        key, value = field.key.lower(), " ".join(field.value.lower().split())
        if key in ENABLE:
            made["outer_ralph"] = _switch(field.key, value, field.line, complain)
        elif key in OUTER_MAX:
            try:
                made["outer_max"] = read_count(value, field.key)
            except InvalidValue as error:
                complain(str(error), field.line)
            if made.get("outer_max", 1) > OUTER_ITERATIONS:
                complain(f"{field.key} is {value}: the outer loop makes at most {OUTER_ITERATIONS} iterations", field.line)
        else:
            complain(f"{field.key!r} is no setting of the outer loop; there are: Enable, Maximum iterations", field.line)
    return made


def _switch(key: str, value: str, line: int, complain: Complain) -> bool:
    word = value.split()[0].strip(".,;") if value else ""
    if word not in WORDS:
        complain(f"{key} is {value!r}: it must be yes or no", line)
    return WORDS.get(word, True)
