"""The report as a schema, for CLIs that can be made to keep to one, and in words, for those that cannot.

The schema is made from the struct that is decoded, and is of the strict kind that all services accept: every field is
required, what is optional may be null, nothing may be added, and free mappings are lists of pairs. `unfold` turns an
answer back into a report.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

from agent_orchestrator.agents.adapter import AgentTask
from agent_orchestrator.core.forms import NAME, VALUE, Form, Shape, example_of, mapped, shape_of
from agent_orchestrator.core.forms import unfold as unfold_shape
from agent_orchestrator.core.markdown import fenced
from agent_orchestrator.core.report import ReportRule

REPORT_TITLE = "## Report"

_ANYTHING: Shape = {"anyOf": [{"type": kind} for kind in ("string", "number", "boolean")]}
_KEPT = ("type", "enum", "description", "minimum", "maximum")
_NULL = {"type": "null"}


def status_words(rule: ReportRule) -> list[str]:
    """Return the words to choose from: each meaning once."""
    chosen: dict[str, str] = {}
    for word, meaning in rule.words.items():
        if meaning not in chosen or word == meaning.upper():
            chosen[meaning] = word
    return list(chosen.values())


def report_schema(rule: ReportRule, form: Form | None) -> dict[str, Any]:
    """Return the JSON Schema of a report under this rule."""
    schema = _strict_report(form)
    words = status_words(rule)
    status = {"type": "string", **({"enum": words} if words and not rule.any_status else {})}
    return {**schema, "properties": {**schema["properties"], "status": status}}


def unfold(answer: dict[str, Any], form: Form | None) -> dict[str, Any]:
    """Return the report in an answer to that schema."""
    report: dict[str, Any] = unfold_shape(answer, shape_of(form))
    return report


def ask_for_report(task: AgentTask, file: Path) -> str:
    """Return the closing section of a prompt whose agent answers by file."""
    rule, form = task.effect.report, task.form
    example = example_of(form, status_words(rule)[0] if rule.words else "DONE")
    return (
        f"{REPORT_TITLE}\n\n"
        "When you are done, and as the last thing you do, write one JSON object to this file:\n\n"
        f"    {file}\n\n"
        f"like this, leaving out what does not apply:\n\n{fenced(json.dumps(example, ensure_ascii=False, indent=2), 'json')}\n\n"
        f"What stands in it:\n\n{_list_meanings(rule, form)}\n"
    )


def tell_of_report(task: AgentTask) -> str:
    """Return the closing section of a prompt whose agent is held to the schema: the meaning of the fields, not their shape."""
    meanings = _list_meanings(task.effect.report, task.form)
    return f"{REPORT_TITLE}\n\nWhen you are done, report, in the form that you are held to. What its fields mean:\n\n{meanings}\n"


def _list_meanings(rule: ReportRule, form: Form | None) -> str:
    words = " or ".join(json.dumps(word) for word in status_words(rule))
    status = f"{words}, or a word of your own" if rule.any_status else words
    about = {name: field.get("description") for name, field in shape_of(form)["properties"].items()}
    told = {"status": status or "one word", **{name: said for name, said in about.items() if said}}
    return "\n".join(f"- `{name}`: {said}" for name, said in told.items())


@cache
def _strict_report(form: Form | None) -> dict[str, Any]:
    return _strict(shape_of(form))


def _strict(shape: Shape) -> Shape:
    kept = {word: shape[word] for word in _KEPT if word in shape}
    if "anyOf" in shape:
        return {**kept, "anyOf": [_strict(one) for one in shape["anyOf"]]}
    if "enum" in shape:
        return {**kept, "type": "string"}
    if "properties" in shape:
        needed = shape["required"]
        fields = {name: _strict(one) for name, one in shape["properties"].items()}
        return {**kept, **_object({name: one if name in needed else _or_null(one) for name, one in fields.items()})}
    if (values := mapped(shape)) is not None:
        pair = _object({NAME: {"type": "string"}, VALUE: _strict(values)})
        return {**kept, "type": "array", "items": pair}
    if shape.get("type") == "array":
        return {**kept, "items": _strict(shape["items"])}
    return kept if "type" in kept else {**kept, **_ANYTHING}


def _object(fields: dict[str, Any]) -> Shape:
    return {"type": "object", "properties": fields, "required": list(fields), "additionalProperties": False}


def _or_null(schema: Shape) -> Shape:
    about = {"description": schema["description"]} if "description" in schema else {}
    if "anyOf" in schema:
        return schema if _NULL in schema["anyOf"] else {**schema, "anyOf": [*schema["anyOf"], _NULL]}
    bare = {word: inner for word, inner in schema.items() if word != "description"}
    return {**about, "anyOf": [bare, _NULL]}
