"""The rules of strict schemas, as the services say them, and the scripted model that keeps to them."""

from __future__ import annotations

import json
from http.client import HTTPConnection
from typing import Any
from urllib.parse import urlsplit

import pytest

from agent_orchestrator.testing.model_server import ModelServer, Reply
from agent_orchestrator.testing.strict_schema import answer_faults, filled, schema_faults, strict_faults

TEXT = {"type": "string"}


def closed(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


def nested(levels: int) -> dict[str, Any]:
    return closed(inner=nested(levels - 1)) if levels else closed(text=TEXT)


GOOD = closed(
    words={"type": "string", "enum": ["A", "B"], "description": "One of them."},
    score={"anyOf": [{"type": "number", "minimum": 0, "maximum": 100}, {"type": "null"}]},
    list={"type": ["array", "null"], "items": closed(name=TEXT, more={"type": ["string", "null"]})},
)
DEMAND = "'required' is required to be supplied and to be an array including every key in properties."
BAD: dict[str, tuple[Any, str]] = {
    "no object": ({"type": "array", "items": TEXT}, "schema must be a JSON Schema of 'type: \"object\"', got 'type: \"array\"'."),
    "a union": ({"anyOf": [GOOD]}, "schema must be a JSON Schema of 'type: \"object\"', got 'type: \"None\"'."),
    "optional": ({**GOOD, "required": ["words", "score"]}, f"In context=(), {DEMAND} Missing 'list'."),
    "extra": ({**GOOD, "required": [*GOOD["required"], "x"]}, f"In context=(), {DEMAND} Extra required key 'x' supplied."),
    "open": (
        closed(a={**GOOD, "additionalProperties": TEXT}),
        "In context=('properties', 'a'), 'additionalProperties' is required to be supplied and to be false.",
    ),
    "default": (closed(a={**TEXT, "default": ""}), "In context=('properties', 'a'), 'default' is not permitted."),
    "any": (closed(a={"type": "array", "items": {}}), "In context=('properties', 'a', 'items'), schema must have a 'type' key."),
    "bare array": (closed(a={"type": "array"}), "In context=('properties', 'a'), array schema missing items."),
    "format": (closed(a={**TEXT, "format": "uri"}), "In context=('properties', 'a'), 'uri' is not a valid format."),
    "too deep": (nested(10), "11 levels of nesting exceeds limit of 10."),
    "too wide": (closed(**{f"p{n}": TEXT for n in range(5001)}), "5001 object properties exceeds limit of 5000."),
    "too many words": (
        closed(a={**TEXT, "enum": [str(n) for n in range(1001)]}),
        "1001 enum values exceeds limit of 1000.",
    ),
}


def test_a_strict_schema_is_taken() -> None:
    assert strict_faults(GOOD) == []
    assert strict_faults(nested(9)) == []


@pytest.mark.parametrize("name", list(BAD))
def test_another_is_refused_in_the_words_of_the_service(name: str) -> None:
    schema, said = BAD[name]
    assert strict_faults(schema) == [said]


def test_what_may_be_null_may_be_left_out_of_a_script_and_nothing_else() -> None:
    answer = filled({"words": "A", "list": [{"name": "x"}]}, GOOD)
    assert answer == {"words": "A", "score": None, "list": [{"name": "x", "more": None}]}
    assert answer_faults(answer, GOOD) == []
    assert answer_faults(filled({"list": [{"nam": "x"}]}, GOOD), GOOD)


def test_a_tool_takes_any_json_schema_of_an_object() -> None:
    assert schema_faults({"type": "object", "properties": {"a": {}}}) == []
    assert schema_faults({"type": "array"}) == ["input_schema.type: Input should be 'object'"]
    assert "draft 2020-12" in schema_faults({"type": "object", "properties": {"a": {"type": "text"}}})[0]


def call(url: str, path: str, body: dict[str, Any]) -> tuple[int, str]:
    place = urlsplit(url)
    connection = HTTPConnection(place.netloc)
    connection.request("POST", place.path + path, json.dumps(body))
    answer = connection.getresponse()
    text = answer.read().decode()
    connection.close()
    return answer.status, text


def asked_of(schema: Any) -> dict[str, Any]:
    """A call as codex makes it."""
    asked = {"type": "json_schema", "strict": True, "name": "codex_output_schema", "schema": schema}
    return {"stream": True, "tools": [{"type": "custom", "name": "apply_patch"}], "text": {"format": asked}}


def test_the_scripted_model_refuses_a_schema_that_is_not_strict() -> None:
    with ModelServer() as server:
        url = server.lane("x", [Reply({"words": "A"})])
        status, said = call(url, "/v1/responses", asked_of({**GOOD, "additionalProperties": True}))
    error = json.loads(said)["error"]
    assert (status, error["type"], error["code"]) == (400, "invalid_request_error", "invalid_json_schema")
    assert error["message"].startswith("Invalid schema for response_format 'codex_output_schema': In context=(), 'additional")


@pytest.mark.parametrize("fits", [True, False])
def test_a_script_that_breaks_its_schema_cannot_pass_unseen(fits: bool) -> None:
    server = ModelServer()
    server.__enter__()
    url = server.lane("x", [Reply({"words": "C"}, fits=fits)])
    status, said = call(url, "/v1/responses", asked_of(GOOD))
    with pytest.raises(AssertionError, match=r'lane x: .*\$\.words: "C" is not one of "A" or "B"'):
        server.__exit__()
    assert (status, "the scripted answer breaks its schema" in said) == (400, True)


def test_a_script_that_keeps_to_its_schema_is_told_whole() -> None:
    with ModelServer() as server:
        url = server.lane("x", [Reply({"words": "A"})])
        status, said = call(url, "/v1/responses", asked_of(GOOD))
        structured = {"tools": [{"name": "StructuredOutput", "input_schema": GOOD}]}
        whole = call(url, "/v1/messages", structured)[1]
    assert status == 200
    assert '{\\"words\\": \\"A\\", \\"score\\": null, \\"list\\": null}' in said
    assert json.loads(whole)["content"][0]["input"] == {"words": "A", "score": None, "list": None}
