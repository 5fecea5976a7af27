"""The repair of old records: brought up to the full format with what is known and nothing else. The caller keeps the original."""

from __future__ import annotations

from typing import Any

from agent_orchestrator.analysis.records import is_placeholder, read_seconds
from agent_orchestrator.systems.swarm.schema import RESULT, RUN
from agent_orchestrator.systems.swarm.spec import PROMPT_SHOWN_CHARS, hash_prompt

SCHEMAS = {"run": RUN, "result": RESULT}
TIMES = ("started_at", "finished_at")
EVIDENCE = "verification"
NOT_KNOWN = "set to null, it is not known"


class RepairedRecord:
    """A repaired record, and its changes."""

    def __init__(self, kind: str, document: dict[str, Any]) -> None:
        self.kind, self.document = kind, dict(document)
        self.changes: list[str] = []

    def lacks(self, name: str) -> bool:
        """Return True if nothing is known of a field."""
        return self.document.get(name) is None

    def put(self, name: str, value: object, why: str) -> None:
        """Fill a field that is missing."""
        self.document[name] = value
        self.changes.append(f"{name}: {why}")


def repair_record(kind: str, document: dict[str, Any], other: dict[str, Any] | None) -> RepairedRecord:
    """Fill in what is known; `other` is the result of a run, or the run of a result."""
    repaired = RepairedRecord(kind, document)
    if repaired.lacks("schema_version"):
        repaired.put("schema_version", 1, "set to 1")
    same = other if other is not None and other.get("attempt") == document.get("attempt") else None
    if kind == "run":
        _repair_prompt(repaired)
        if same is not None:
            _take_over(repaired, same, ("status", "finished_at", "duration_seconds", "exit_code"), "from the result")
    elif same is not None:
        _take_over(repaired, same, ("agent", "started_at"), "from the run")
    _repair_duration(repaired)
    _add_nulls(repaired)
    order = [*SCHEMAS[kind]["properties"]]
    known = {name: repaired.document[name] for name in order if name in repaired.document}
    repaired.document = {**known, **repaired.document}
    return repaired


def list_unknown_fields(kind: str, document: dict[str, Any]) -> list[str]:
    """Return the fields that the format does not have; they are kept."""
    return [name for name in document if name not in SCHEMAS[kind]["properties"]]


def list_placeholders(document: dict[str, Any]) -> list[str]:
    """Return the times that a script forgot to fill in."""
    return [name for name in TIMES if is_placeholder(document.get(name))]


def _add_nulls(repaired: RepairedRecord) -> None:
    """Add the missing fields that may be null; evidence is not missed where there is none."""
    schema = SCHEMAS[repaired.kind]
    for name in schema["properties"]:
        if name not in repaired.document and name not in schema["required"] and name != EVIDENCE:
            repaired.put(name, None, NOT_KNOWN)


def _repair_prompt(repaired: RepairedRecord) -> None:
    prompt = repaired.document.get("prompt")
    if not isinstance(prompt, str):
        return
    if repaired.lacks("prompt_full"):
        repaired.put("prompt_full", prompt, "from prompt")
    if len(prompt) > PROMPT_SHOWN_CHARS:
        repaired.put("prompt", prompt[:PROMPT_SHOWN_CHARS], f"cut to {PROMPT_SHOWN_CHARS} characters")
    whole = repaired.document["prompt_full"]
    if repaired.lacks("prompt_hash") and isinstance(whole, str):
        repaired.put("prompt_hash", hash_prompt(whole), "computed")


def _take_over(repaired: RepairedRecord, other: dict[str, Any], names: tuple[str, ...], why: str) -> None:
    for name in names:
        if repaired.lacks(name) and other.get(name) is not None:
            repaired.put(name, other[name], why)


def _repair_duration(repaired: RepairedRecord) -> None:
    if not repaired.lacks("duration_seconds"):
        return
    started_s, finished_s = (read_seconds(repaired.document.get(name)) for name in TIMES)
    if started_s is not None and finished_s is not None and finished_s >= started_s:
        repaired.put("duration_seconds", int(finished_s - started_s), "from the times")
