"""The strict subset of JSON Schema that model services enforce, in their own words, for answers that must fit a schema.

`strict_faults` is what OpenAI says of `strict: true` schemas; `answer_faults` is what no service could have answered.
Used by the scripted model server, and by the tests that every role's report is asked for by such a schema.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import jsonschema_rs

NESTING_MAX = 10
PROPERTIES_MAX = 5_000
ENUM_VALUES_MAX = 1_000
NAMES_CHARS_MAX = 120_000
"""Names of properties and definitions, and values of enums, all together."""

COMPOSED = ("anyOf", "items", "properties", "$defs", "definitions")
PERMITTED = frozenset(
    {
        *COMPOSED,
        *("type", "required", "additionalProperties", "enum", "const", "$ref", "title", "description"),
        *("pattern", "format", "multipleOf", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"),
        *("minItems", "maxItems"),
    }
)
"""The keywords that are taken; refused are `default`, `allOf`, `oneOf`, `not`, `if`, `patternProperties`, `uniqueItems`, …"""
FORMATS = frozenset({"date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"})


def strict_faults(schema: Any) -> list[str]:
    """Return the service's reasons to refuse a strict schema, each as it says it; none for one that it takes."""
    if not isinstance(schema, dict) or schema.get("type") != "object":
        got = schema.get("type") if isinstance(schema, dict) else None
        return [f"schema must be a JSON Schema of 'type: \"object\"', got 'type: \"{got}\"'."]
    places = list(_places(schema, ()))
    faults = [fault for place, depth, one in places for fault in _faults(place, one)]
    deepest = max(depth for _, depth, _ in places)
    if deepest > NESTING_MAX:
        faults.append(f"{deepest} levels of nesting exceeds limit of {NESTING_MAX}.")
    properties = [name for _, _, one in places for name in one.get("properties", ())]
    if len(properties) > PROPERTIES_MAX:
        faults.append(f"{len(properties)} object properties exceeds limit of {PROPERTIES_MAX}.")
    values = [value for _, _, one in places for value in one.get("enum", ())]
    if len(values) > ENUM_VALUES_MAX:
        faults.append(f"{len(values)} enum values exceeds limit of {ENUM_VALUES_MAX}.")
    size = sum(len(str(word)) for word in (*properties, *values, *schema.get("$defs", ())))
    if size > NAMES_CHARS_MAX:
        faults.append(f"{size} characters of names and enum values exceeds limit of {NAMES_CHARS_MAX}.")
    return faults


def answer_faults(answer: Any, schema: dict[str, Any]) -> list[str]:
    """Return the reasons why an answer could not have been given under this schema."""
    validator = jsonschema_rs.validator_for(schema)
    return [f"{_path(error.instance_path)}: {error.message}" for error in validator.iter_errors(answer)]


def schema_faults(schema: Any) -> list[str]:
    """Return the reasons why this cannot be the input of a tool: not an object, or no JSON Schema of draft 2020-12."""
    if not isinstance(schema, dict) or schema.get("type") != "object":
        return ["input_schema.type: Input should be 'object'"]
    try:
        jsonschema_rs.Draft202012Validator(schema)
    except (ValueError, jsonschema_rs.ValidationError) as error:
        return [f"input_schema: JSON schema is invalid. It must match JSON Schema draft 2020-12: {str(error).splitlines()[0]}"]
    return []


def filled(answer: Any, schema: dict[str, Any]) -> Any:
    """Return the answer with null for properties that may be null: a model has to write them, a test need not."""
    branch = next((one for one in schema.get("anyOf", (schema,)) if _is_for(answer, one)), schema)
    if isinstance(answer, list) and isinstance(branch.get("items"), dict):
        return [filled(one, branch["items"]) for one in answer]
    if isinstance(answer, dict) and isinstance(branch.get("properties"), dict):
        known = branch["properties"]
        empty = {name: None for name, one in known.items() if name not in answer and _takes_null(one)}
        return {name: filled(value, known.get(name, {})) for name, value in answer.items()} | empty
    return answer


def _places(schema: Any, place: tuple[str, ...], depth: int = 0) -> Iterator[tuple[tuple[str, ...], int, dict[str, Any]]]:
    """Return every schema in a schema, with where it stands and how deep."""
    if not isinstance(schema, dict):
        return
    depth += "properties" in schema or "items" in schema
    yield place, depth, schema
    for word in COMPOSED:
        inner = schema.get(word)
        if word == "items":
            yield from _places(inner, (*place, word), depth)
        elif isinstance(inner, list):
            for number, one in enumerate(inner):
                yield from _places(one, (*place, word, str(number)), depth)
        elif isinstance(inner, dict):
            for name, one in inner.items():
                yield from _places(one, (*place, word, name), depth)


def _faults(place: tuple[str, ...], schema: dict[str, Any]) -> Iterator[str]:
    where = f"In context={place!r}, "
    for word in schema:
        if word not in PERMITTED:
            yield f"{where}'{word}' is not permitted."
    if "$ref" in schema:
        if others := sorted(set(schema) - {"$ref"}):
            yield f"{where}$ref cannot have keywords {set(others)}."
        return
    if "type" not in schema and "anyOf" not in schema:
        yield f"{where}schema must have a 'type' key."
    kinds = schema.get("type")
    kinds = kinds if isinstance(kinds, list) else [kinds]
    if "object" in kinds:
        yield from _object_faults(where, schema)
    if "array" in kinds and not isinstance(schema.get("items"), dict):
        yield f"{where}array schema missing items."
    if schema.get("format", "date") not in FORMATS:
        yield f"{where}'{schema['format']}' is not a valid format."


def _object_faults(where: str, schema: dict[str, Any]) -> Iterator[str]:
    if schema.get("additionalProperties") is not False:
        yield f"{where}'additionalProperties' is required to be supplied and to be false."
    properties, required = schema.get("properties", {}), schema.get("required")
    demand = "'required' is required to be supplied and to be an array including every key in properties."
    for name in properties:
        if not isinstance(required, list) or name not in required:
            yield f"{where}{demand} Missing '{name}'."
    for name in required if isinstance(required, list) else ():
        if name not in properties:
            yield f"{where}{demand} Extra required key '{name}' supplied."


def _is_for(answer: Any, schema: dict[str, Any]) -> bool:
    return ("properties" in schema and isinstance(answer, dict)) or ("items" in schema and isinstance(answer, list))


def _takes_null(schema: dict[str, Any]) -> bool:
    kinds = schema.get("type")
    return kinds == "null" or (isinstance(kinds, list) and "null" in kinds) or any(map(_takes_null, schema.get("anyOf", ())))


def _path(parts: list[str | int]) -> str:
    return "$" + "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in parts)
