"""Brings an old record up to the full format, with what is known and nothing else. Pure: who calls it keeps the original."""

from __future__ import annotations

from typing import Any

from agent_orchestrator.analysis.records import is_placeholder, seconds_of
from agent_orchestrator.systems.swarm.schema import RESULT, RUN
from agent_orchestrator.systems.swarm.spec import PROMPT_SHOWN_CHARS, hash_prompt

SCHEMAS = {"run": RUN, "result": RESULT}
TIMES = ("started_at", "finished_at")


class Mended:
    """A record as it becomes, and what was changed."""

    def __init__(self, kind: str, document: dict[str, Any]) -> None:
        self.kind, self.document = kind, dict(document)
        self.changes: list[str] = []

    def put(self, name: str, value: object, why: str) -> None:
        """Fills a field that is missing."""
        self.document[name] = value
        self.changes.append(f"{name}: {why}")


def mend(kind: str, document: dict[str, Any], other: dict[str, Any] | None) -> Mended:
    """The record with what can be filled in honestly; `other` is the result of a run, or the run of a result."""
    mended = Mended(kind, document)
    _drop_nulls(mended)
    if "schema_version" not in mended.document:
        mended.put("schema_version", 1, "set to 1")
    same = other if other is not None and other.get("attempt") == document.get("attempt") else None
    if kind == "run":
        _mend_prompt(mended)
        if same is not None:
            _take_over(mended, same, ("status", "finished_at", "duration_seconds", "exit_code"), "from the result")
    elif same is not None:
        _take_over(mended, same, ("agent", "started_at"), "from the run")
    _mend_duration(mended)
    if "exit_code" not in mended.document:
        mended.put("exit_code", None, "set to null, it is not known")
    order = [*SCHEMAS[kind]["properties"]]
    known = {name: mended.document[name] for name in order if name in mended.document}
    mended.document = {**known, **mended.document}
    return mended


def unknown_fields(kind: str, document: dict[str, Any]) -> list[str]:
    """Fields that the format does not have; they are kept."""
    return [name for name in document if name not in SCHEMAS[kind]["properties"]]


def placeholders(document: dict[str, Any]) -> list[str]:
    """Times that a script forgot to fill in."""
    return [name for name in TIMES if is_placeholder(document.get(name))]


def _drop_nulls(mended: Mended) -> None:
    """Where null is not allowed, what is not known is left out."""
    properties, required = SCHEMAS[mended.kind]["properties"], SCHEMAS[mended.kind]["required"]
    for name, value in list(mended.document.items()):
        nullable = name in properties and "null" in properties[name]["type"]
        if value is None and name in properties and not nullable and name not in required:
            del mended.document[name]
            mended.changes.append(f"{name}: null left out")


def _mend_prompt(mended: Mended) -> None:
    prompt = mended.document.get("prompt")
    if not isinstance(prompt, str):
        return
    if "prompt_full" not in mended.document:
        mended.put("prompt_full", prompt, "from prompt")
    if len(prompt) > PROMPT_SHOWN_CHARS:
        mended.put("prompt", prompt[:PROMPT_SHOWN_CHARS], f"cut to {PROMPT_SHOWN_CHARS} characters")
    whole = mended.document["prompt_full"]
    if "prompt_hash" not in mended.document and isinstance(whole, str):
        mended.put("prompt_hash", hash_prompt(whole), "computed")


def _take_over(mended: Mended, other: dict[str, Any], names: tuple[str, ...], why: str) -> None:
    for name in names:
        if name not in mended.document and other.get(name) is not None:
            mended.put(name, other[name], why)


def _mend_duration(mended: Mended) -> None:
    if "duration_seconds" in mended.document:
        return
    started_s, finished_s = (seconds_of(mended.document.get(name)) for name in TIMES)
    if started_s is not None and finished_s is not None and finished_s >= started_s:
        mended.put("duration_seconds", int(finished_s - started_s), "from the times")
