"""An agent's report: one JSON object, read strictly. What cannot be understood is a failure, never a guess.

`read_report` is called by the engine for every agent and every system; the words that count as success or
failure come with the effect (`ReportRule`), so an unknown word fails the attempt here, once, for all systems.
"""

from __future__ import annotations

from typing import Any

import msgspec

from agent_orchestrator.core.failure import Failure, FailureKind

REPORT_SCHEMA = "run_report@v0"


class ReportRule(msgspec.Struct, frozen=True, kw_only=True):
    """What a report must look like for one effect."""

    words: dict[str, str]
    """Accepted status words, upper case, with the word each stands for."""
    required: bool = False
    any_status: bool = False
    """Whatever word, or none, is accepted: something else speaks for the work."""
    ids: dict[str, str] = {}
    """Fields which, where the report carries them, must have this value: a stale or foreign report is refused."""
    fields: dict[str, tuple[str, ...]] = {}
    """What the role may add to a report, with the JSON types it may have: only told to agents, never demanded."""


class Learning(msgspec.Struct, frozen=True, kw_only=True):
    """Something an agent wants later agents to know."""

    type: str
    lesson: str
    pattern: str = ""
    context: str = ""


class Report(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A valid report; `fields` keeps what is particular to a role."""

    status: str
    summary: str = ""
    artifacts: tuple[str, ...] = ()
    metrics: dict[str, Any] = {}
    logs: tuple[str, ...] = ()
    files_modified: tuple[str, ...] = ()
    learnings: tuple[Learning, ...] = ()
    fields: dict[str, Any] = {}
    warnings: tuple[str, ...] = ()


class _Known(msgspec.Struct, kw_only=True):
    schema: str | None = None
    status: str | None = None
    summary: str | None = None
    artifacts: list[str] | None = None
    metrics: dict[str, Any] | None = None
    logs: list[str] | None = None
    files_modified: list[str] | None = None
    learnings: list[Any] | None = None


def read_report(raw: bytes, rule: ReportRule) -> Report | Failure:
    """The report in `raw`, or the failure that says what is wrong with it."""
    try:
        document = msgspec.json.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        return _invalid(f"the report is not JSON ({error}): {_quoted(raw.decode('utf-8', 'replace'))}")
    if not isinstance(document, dict):
        return _invalid(f"the report is not a JSON object: {_quoted(raw.decode('utf-8', 'replace'))}")
    return check_report(document, rule)


def check_report(document: dict[str, Any], rule: ReportRule) -> Report | Failure:
    """The same for a report that arrived as an object (structured output of a CLI)."""
    for field, expected in rule.ids.items():
        if field in document and document[field] != expected:
            return _invalid(f"the report is for {field} {_quoted(document[field])}, not {expected!r}")
    try:
        known = msgspec.convert(document, _Known)
    except msgspec.ValidationError as error:
        return _invalid(f"the report has a wrong field: {error}")
    if known.schema is not None and known.schema != REPORT_SCHEMA:
        return _invalid(f"the report's schema is {_quoted(known.schema)}, not {REPORT_SCHEMA!r}")
    word = (known.status or "").strip().upper()
    status = rule.words.get(word, word if rule.any_status else None)
    if status is None:
        said = _quoted(document.get("status")) if "status" in document else "missing"
        return _invalid(f"the report's status is {said}; it must be one of {', '.join(rule.words)}")
    learnings, warnings = _learnings(known.learnings or [])
    return Report(
        status=status,
        summary=known.summary or "",
        artifacts=tuple(known.artifacts or ()),
        metrics=known.metrics or {},
        logs=tuple(known.logs or ()),
        files_modified=tuple(known.files_modified or ()),
        learnings=learnings,
        fields={key: value for key, value in document.items() if key not in _Known.__struct_fields__},
        warnings=warnings,
    )


def _learnings(raw: list[Any]) -> tuple[tuple[Learning, ...], tuple[str, ...]]:
    kept, warnings = [], []
    for entry in raw:
        try:
            kept.append(msgspec.convert(entry, Learning))
        except msgspec.ValidationError as error:
            warnings.append(f"a learning was dropped: {error}")
    return tuple(kept), tuple(warnings)


def _invalid(message: str) -> Failure:
    return Failure(kind=FailureKind.REPORT_INVALID, message=message)


def _quoted(value: object) -> str:
    text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    return repr(text if len(text) <= 80 else text[:77] + "…")
