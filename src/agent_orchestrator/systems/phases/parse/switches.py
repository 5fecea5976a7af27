"""The sections of a task document that switch the supervisor and the outer loop on and off."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from agent_orchestrator.core.units import read_count
from agent_orchestrator.errors import InvalidValue
from agent_orchestrator.systems.phases.parse.blocks import Section
from agent_orchestrator.systems.phases.spec import OUTER_ITERATIONS, Supervision

Complain = Callable[[str, int | None], None]

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


def read_supervision(section: Section, complain: Complain) -> dict[str, Any]:
    """`## Supervisor Checks`."""
    made = Supervision()
    for field in section.fields:
        key, value = field.key.lower(), " ".join(field.value.lower().split())
        if key in ("enable", "enabled"):
            made = msgspec.structs.replace(made, enabled=_switch(field.key, value, field.line, complain))
        elif key in ("auto-fix", "auto fix"):
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
    for field in section.fields:
        key, value = field.key.lower(), " ".join(field.value.lower().split())
        if key in ("enable", "enabled"):
            made["outer_ralph"] = _switch(field.key, value, field.line, complain)
        elif key in ("maximum iterations", "max iterations", "max"):
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
