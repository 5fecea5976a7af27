"""The report as a schema, for CLIs that can be made to keep to one, and in words, for those that cannot.

The schema is of the strict kind that all of them accept: every field is required, what is optional may be null, and
free mappings (metrics) are lists of pairs. `unfold` turns such an answer back into a report.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from agent_orchestrator.agents.adapter import Task
from agent_orchestrator.core.report import ReportRule

_TEXTS = {"type": ["array", "null"], "items": {"type": "string"}}
_VALUE = {"anyOf": [{"type": "string"}, {"type": "number"}, {"type": "boolean"}, {"type": "array", "items": {"type": "string"}}]}
_ABOUT = {
    "summary": "What was done, in a few sentences, for people and for whoever works next.",
    "artifacts": "Paths of files that were made or changed and matter to later steps, relative to the working tree.",
    "metrics": "Named results, if there are any worth keeping.",
    "logs": "Lines worth keeping for people.",
    "files_modified": "Files that were changed.",
    "learnings": "What later agents should know.",
    "quality_score": "How good the work is now, from 0 to 100, if you can tell.",
    "done": "Whether you believe that nothing is left to do; a check decides.",
    "gate_failure": "Null or false, unless the work that was looked at must not pass: then one sentence that says why.",
}


def status_words(rule: ReportRule) -> list[str]:
    """The words to choose from: each meaning once."""
    chosen: dict[str, str] = {}
    for word, meaning in rule.words.items():
        if meaning not in chosen or word == meaning.upper():
            chosen[meaning] = word
    return list(chosen.values())


def report_schema(rule: ReportRule) -> dict[str, Any]:
    """The JSON Schema of a report under this rule."""
    words = status_words(rule)
    fields: dict[str, dict[str, Any]] = {
        "status": {"type": "string", **({"enum": words} if words and not rule.any_status else {})},
        "summary": {"type": "string"},
        "artifacts": _TEXTS,
        "metrics": {"type": ["array", "null"], "items": _object({"name": {"type": "string"}, "value": _VALUE})},
        "logs": _TEXTS,
        "files_modified": _TEXTS,
        "learnings": {
            "type": ["array", "null"],
            "items": _object({name: {"type": "string"} for name in ("type", "lesson", "pattern", "context")}),
        },
    }
    for name, kinds in rule.fields.items():
        fields[name] = {"type": [*kinds, "null"], **({"items": {"type": "string"}} if "array" in kinds else {})}
    return _object({name: {**field, **_about(name)} for name, field in fields.items()})


def unfold(answer: dict[str, Any]) -> dict[str, Any]:
    """The report in an answer to that schema: nulls were only there because nothing may be left out."""
    report = {name: value for name, value in answer.items() if value is not None}
    pairs = report.get("metrics")
    if isinstance(pairs, list) and all(isinstance(pair, dict) and isinstance(pair.get("name"), str) for pair in pairs):
        report["metrics"] = {pair["name"]: pair.get("value") for pair in pairs}
    return report


def ask_for_report(task: Task, file: Path) -> str:
    """The closing section of a prompt whose agent answers by file."""
    rule = task.effect.report
    words = " or ".join(json.dumps(word) for word in status_words(rule))
    example = {"status": status_words(rule)[0] if rule.words else "DONE", "summary": "…", "artifacts": ["path/in/the/tree"]}
    more = "".join(f'\n- `"{name}"`: {_ABOUT.get(name, "as it applies")}' for name in rule.fields)
    return (
        "\n\n## Report\n\n"
        "When you are done, and as the last thing you do, write one JSON object to this file:\n\n"
        f"    {file}\n\n"
        f"like this: `{json.dumps(example, ensure_ascii=False)}`. `status` must be {words or 'one word'}; "
        f"a `metrics` object and a list of `logs` may be added.{more}\n"
    )


def _object(fields: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": fields, "required": list(fields), "additionalProperties": False}


def _about(name: str) -> dict[str, str]:
    return {"description": _ABOUT[name]} if name in _ABOUT else {}
