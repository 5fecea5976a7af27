"""The schemas as data are those in the files beside them, and what is read is wider than what is written."""

from __future__ import annotations

import os
from pathlib import Path

import jsonschema_rs
import msgspec
import pytest

import agent_orchestrator.systems.swarm.schema as package
from agent_orchestrator.systems.swarm.schema import FILES, RESULT, RUN

FOLDER = Path(package.__file__).parent


@pytest.mark.parametrize("name", FILES)
def test_the_file_is_the_schema(name: str) -> None:
    expected = msgspec.json.format(msgspec.json.encode(FILES[name]), indent=2) + b"\n"
    if os.environ.get("ORC_REWRITE"):
        (FOLDER / name).write_bytes(expected)
    assert (FOLDER / name).read_bytes() == expected


def test_every_schema_is_one() -> None:
    for schema in FILES.values():
        jsonschema_rs.validator_for(schema)
    assert sorted(path.name for path in FOLDER.glob("*.json")) == sorted(FILES)


@pytest.mark.parametrize(
    "wrong", [{"status": "ok"}, {"attempt": 0}, {"exit_code": "0"}, {"prompt": "p" * 201}, {"started_at": "now"}]
)
def test_what_we_write_is_held_to_the_strict_one(wrong: dict[str, object]) -> None:
    good = {
        "schema_version": 1,
        "bead": "b",
        "agent": "a",
        "model": "m",
        "repo": "/r",
        "prompt": "p",
        "prompt_full": "p",
        "started_at": "2026-02-12T17:08:00Z",
        "attempt": 1,
    }
    assert jsonschema_rs.is_valid(RUN, good)
    assert not jsonschema_rs.is_valid(RUN, {**good, **wrong})
    assert not jsonschema_rs.is_valid(RESULT, good)
