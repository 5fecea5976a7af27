"""The JSON Schemas of the records, as data: what we write satisfies `RUN` and `RESULT`; the widened ones say what we read.

The files beside this one are the same schemas for other tools; a test keeps them equal.
"""

from __future__ import annotations

from typing import Any

DRAFT = "http://json-schema.org/draft-07/schema#"
TIME = r"^(\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d+)?(Z|[+-]\d{2}:?\d{2})|'?\$[A-Z_]+'?)$"
"""ISO 8601, or the placeholder of a script that forgot to fill it in, which is only warned about."""

_BEAD = {"type": "string", "minLength": 1, "description": "Unique bead identifier"}
_AGENT = {"type": "string", "minLength": 1, "description": "Agent type, as in claude or codex"}
_TIME = {"type": "string", "pattern": TIME}
_DURATION = {"type": "integer", "minimum": 0, "description": "Duration in seconds"}
_ATTEMPT = {"type": "integer", "minimum": 1, "description": "Attempt number, from 1"}
_LIMIT = {"type": "integer", "minimum": 0, "description": "Attempts at most"}
_STATUS = {"type": "string", "enum": ["running", "done", "failed", "timeout"]}
_EXIT = {"type": "integer", "description": "Process exit code; null if there is none"}
_SESSION = {"type": "string", "description": "Name of the tmux session"}
_OUTPUT = {"type": "string", "maxLength": 500, "description": "The last 500 characters of output"}
_VERSION = {"type": "integer", "const": 1}
_EVIDENCE = {
    "type": ["object", "array", "string", "boolean"],
    "description": "What verification found out, as another tool wrote it",
}


def _with_nulls(schema: dict[str, Any]) -> dict[str, Any]:
    """Let every field be null that need not be there."""
    rules = {name: rule if name in schema["required"] else _or_null(rule) for name, rule in schema["properties"].items()}
    return {**schema, "properties": rules}


def _or_null(rule: dict[str, Any]) -> dict[str, Any]:
    types = rule["type"] if isinstance(rule["type"], list) else [rule["type"]]
    if "null" in types:
        return rule
    choices = {"enum": [*rule["enum"], None]} if "enum" in rule else {}
    return {**rule, "type": [*types, "null"], **choices}


RUN: dict[str, Any] = _with_nulls(
    {
        "$schema": DRAFT,
        "title": "Run record",
        "description": "state/runs/<bead>.json: one attempt of a bead, full format (version 1)",
        "type": "object",
        "required": [
            *("schema_version", "bead", "agent", "model", "repo", "prompt", "prompt_full", "started_at", "attempt"),
        ],
        "properties": {
            "schema_version": _VERSION,
            "bead": _BEAD,
            "agent": _AGENT,
            "model": {"type": "string", "minLength": 1, "description": "Model name, or default"},
            "repo": {"type": "string", "minLength": 1, "description": "Absolute path of the repository worked on"},
            "prompt": {"type": "string", "maxLength": 200, "description": "The instruction, its first 200 characters"},
            "prompt_full": {"type": "string", "description": "The whole instruction"},
            "prompt_hash": {"type": "string", "description": "SHA-256 of the instruction"},
            "started_at": {**_TIME, "description": "When the agent was dispatched"},
            "finished_at": {**_TIME, "description": "When the agent completed"},
            "duration_seconds": _DURATION,
            "status": _STATUS,
            "attempt": _ATTEMPT,
            "max_retries": _LIMIT,
            "session_name": _SESSION,
            "result_file": {"type": "string", "description": "Path of the result record"},
            "exit_code": _EXIT,
            "output_summary": _OUTPUT,
            "failure_reason": {"type": "string", "description": "Why, when status is failed or timeout"},
            "template_name": {"type": "string", "description": "The prompt template that was used"},
            "verification": _EVIDENCE,
        },
    }
)

RESULT: dict[str, Any] = _with_nulls(
    {
        "$schema": DRAFT,
        "title": "Result record",
        "description": "state/results/<bead>.json: how an attempt of a bead ended, full format (version 1)",
        "type": "object",
        "required": ["schema_version", "bead", "agent", "status", "finished_at", "attempt"],
        "properties": {
            "schema_version": _VERSION,
            "bead": _BEAD,
            "agent": _AGENT,
            "status": _STATUS,
            "reason": {"type": "string", "minLength": 1, "description": "What was done, or why it was not"},
            "started_at": {**_TIME, "description": "When the agent was dispatched"},
            "finished_at": {**_TIME, "description": "When the agent completed"},
            "duration_seconds": _DURATION,
            "attempt": _ATTEMPT,
            "max_retries": _LIMIT,
            "will_retry": {"type": "boolean", "description": "Whether another attempt follows"},
            "exit_code": _EXIT,
            "session_name": _SESSION,
            "output_summary": _OUTPUT,
            "verification": _EVIDENCE,
        },
    }
)

_READ = {"run": ("bead", "agent", "model", "repo", "prompt", "started_at", "attempt"), "result": ("bead", "status", "attempt")}


def widened(schema: dict[str, Any], kind: str) -> dict[str, Any]:
    """Widen a schema to what is accepted when reading: the minimal format, null for the unknown, any length and any hash."""
    required = list(_READ[kind])
    loose = {"maxLength", "minLength", "pattern", "const"}
    properties: dict[str, Any] = {}
    for name, rule in schema["properties"].items():
        open_rule = {key: value for key, value in rule.items() if key not in loose}
        properties[name] = open_rule if name in required else _or_null(open_rule)
    note = "widened for reading: only the minimal format's fields are required, the others may be null, lengths are free"
    return {**schema, "description": f"{schema['description']}; {note}", "required": required, "properties": properties}


FILES: dict[str, dict[str, Any]] = {
    "run.schema.json": RUN,
    "result.schema.json": RESULT,
    "bead_run.schema.json": widened(RUN, "run"),
    "bead_result.schema.json": widened(RESULT, "result"),
}
"""The files of this folder: the strict two are also written to `state/schemas/`."""
