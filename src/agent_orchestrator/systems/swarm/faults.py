"""Checks records against their schemas: every fault with the field it is about."""

from __future__ import annotations

from functools import cache
from typing import Any

import jsonschema_rs

from agent_orchestrator.systems.swarm.records import ATTEMPTS, RESULTS
from agent_orchestrator.systems.swarm.schema import RESULT, RUN

SCHEMAS = {"run": RUN, "result": RESULT}


def kind_of(path: str) -> str:
    """Tell whether a path is that of a `run` or of a `result`."""
    if f"/{ATTEMPTS}/" in f"/{path}":
        return "result" if path.endswith(".result.json") else "run"
    return "result" if RESULTS.rpartition("/")[2] in path.split("/")[:-1] else "run"


def record_faults(path: str, document: Any) -> list[str]:
    """List the faults of the record that stands, or is to stand, at the path."""
    return faults_of(kind_of(path), document)


def faults_of(kind: str, document: Any) -> list[str]:
    """Every fault of a run or result record."""
    return [_said(error) for error in _validator(kind).iter_errors(document)]


@cache
def _validator(kind: str) -> Any:
    return jsonschema_rs.validator_for(SCHEMAS[kind])


def _said(error: Any) -> str:
    where = ".".join(str(part) for part in error.instance_path)
    return f"{where}: {error.message}" if where else str(error.message)
