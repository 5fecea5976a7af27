"""Forms: the fields that a role may put in its report, from one source, the struct that is decoded.

`shape_of` is its JSON Schema, which adapters turn into the strict kind that model services take; `example_of` is a whole
example, for prompts; `unfold` brings an answer to a strict schema back to what the struct decodes. All by type, never by
the name of a field.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, TypeVar, cast

import msgspec

from agent_orchestrator import typed
from agent_orchestrator.core.report import Common, Report

T = TypeVar("T")
Shape = dict[str, Any]
Form = type[msgspec.Struct]
"""A role's own fields; what every report may carry is `Common`."""
Forms = Mapping[str, Form]
"""The forms of a system, by the names that its report rules use."""

NAME, VALUE = "name", "value"
"""The keys of a pair, by which strict schemas spell what is a free mapping."""

_LEFT_OUT = ("$ref", "$defs", "title", "default")


@cache
def shape_of(form: Form | None) -> Shape:
    """The JSON Schema of a whole report with these fields, references resolved."""
    shapes = [_plain(one) for one in (Common, form) if one is not None]
    return {
        "type": "object",
        "properties": {name: field for shape in shapes for name, field in shape["properties"].items()},
        "required": [name for shape in shapes for name in shape["required"]],
    }


def mapped(shape: Shape) -> Shape | None:
    """Give the schema of a free mapping's values; None for anything else."""
    if shape.get("type") != "object" or "properties" in shape:
        return None
    values = shape.get("additionalProperties")
    return values if isinstance(values, dict) else {}


def unfold(value: Any, shape: Shape) -> Any:
    """The value as the struct decodes it: pairs are mappings again, null stands for what may be left out.

    What does not fit is left as it is: decoding says what is wrong with it.
    """
    for branch in shape.get("anyOf", (shape,)):
        values, items = mapped(branch), branch.get("items")
        if isinstance(value, list) and values is not None and all(_is_pair(one) for one in value):
            return {pair[NAME]: unfold(pair[VALUE], values) for pair in value}
        if isinstance(value, list) and isinstance(items, dict):
            return [unfold(one, items) for one in value]
        if isinstance(value, dict) and "properties" in branch:
            known, needed = branch["properties"], branch["required"]
            told = {name: one for name, one in value.items() if one is not None or name not in known or name in needed}
            return {name: unfold(one, known.get(name, {})) for name, one in told.items()}
        if isinstance(value, float) and branch.get("type") == "integer" and value.is_integer():
            return int(value)
    return value


def read_fields(report: Report, form: type[T]) -> T:
    """The role's fields of a report. Raises msgspec.ValidationError, which names the field."""
    return typed.convert(unfold(report.fields, _plain(cast(Form, form))), form)


def example_of(form: Form | None, status: str) -> dict[str, Any]:
    """A report with every field of the role, for a prompt; of what all reports may carry the summary and what was learned."""
    own = _example(_plain(form)) if form is not None else {}
    return {"status": status, "summary": "…", **own, "learnings": _example(_plain(Common)["properties"]["learnings"])}


@cache
def _plain(form: Form) -> Shape:
    schema = msgspec.json.schema(form)
    shape: Shape = _resolved(schema, schema.get("$defs", {}))
    return shape


def _resolved(schema: Any, known: dict[str, Any]) -> Any:
    if isinstance(schema, list):
        return [_resolved(one, known) for one in schema]
    if not isinstance(schema, dict):
        return schema
    if "$ref" in schema:
        schema = {**known[schema["$ref"].rpartition("/")[2]], **schema}
    return {word: _inner(word, inner, known) for word, inner in schema.items() if word not in _LEFT_OUT}


def _inner(word: str, inner: Any, known: dict[str, Any]) -> Any:
    """Return what stands below a word of a schema: names of fields and examples are no such words, whatever they are called."""
    if word == "properties":
        return {name: _resolved(field, known) for name, field in inner.items()}
    return inner if word in ("examples", "enum", "required") else _resolved(inner, known)


def _is_pair(value: Any) -> bool:
    return isinstance(value, dict) and isinstance(value.get(NAME), str) and VALUE in value


def _example(shape: Shape) -> Any:
    if shape.get("examples"):
        return shape["examples"][0]
    if "anyOf" in shape:
        return _example(next(one for one in shape["anyOf"] if one.get("type") != "null"))
    if "enum" in shape:
        return shape["enum"][0]
    if "properties" in shape:
        return {name: _example(one) for name, one in shape["properties"].items()}
    if (values := mapped(shape)) is not None:
        return {"…": _example(values)}
    if shape.get("type") == "array":
        return [_example(shape["items"])]
    return {"boolean": True, "integer": 0, "number": 0}.get(shape.get("type", ""), "…")
