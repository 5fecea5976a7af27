"""An agent's report: one JSON object, read strictly. What cannot be understood is a failure, never a guess.

`read_report` is called by the engine for every agent and every system; the words that count as success or
failure come with the effect (`ReportRule`), so an unknown word fails the attempt here, once, for all systems.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from agent_orchestrator import typed
from agent_orchestrator.core.failure import Failure, invalid_report

REPORT_SCHEMA = "run_report@v0"

COMPLETED, FAILED = "COMPLETED", "FAILED"
SUCCESSES = (COMPLETED, "SUCCESS", "OK", "DONE", "PASSED")
FAILURES = (FAILED, "FAIL", "ERROR")
"""The words that every agent may use; FAILED says, whatever the role, that it did not get its own work done."""


def common_words(own: Iterable[str], completed: str | None) -> dict[str, str]:
    """The words of every agent that a role takes beside its own, which come first.

    `completed` is what having done its work means for the role; None where only a judgement will do: nobody approves,
    passes or plans by saying that he is done.
    """
    taken = {} if completed is None else dict.fromkeys(SUCCESSES, completed)
    return {word: meaning for word, meaning in (taken | dict.fromkeys(FAILURES, FAILED)).items() if word not in own}


class ReportRule(msgspec.Struct, frozen=True, kw_only=True):
    """The rule for the report of one effect."""

    words: dict[str, str]
    """The role's own status words, upper case, with the word each stands for: these are offered."""
    aliases: dict[str, str] = {}
    """Words that are accepted besides."""
    required: bool = False
    any_status: bool = False
    """Whatever word, or none, is accepted: something else speaks for the work."""
    ids: dict[str, str] = {}
    """Fields which, where the report carries them, must have this value: a stale or foreign report is refused."""
    form: str = ""
    """Which of its system's forms holds what the role may add; empty where it adds nothing."""


class Learning(msgspec.Struct, frozen=True, kw_only=True):
    """Something an agent wants later agents to know."""

    type: Annotated[str, Meta(description="pattern, antipattern or insight", examples=["pattern"])]
    lesson: str
    pattern: str = ""
    context: str = ""


class Common(msgspec.Struct, kw_only=True):
    """The fields that the report of every role may carry."""

    status: str
    summary: Annotated[str, Meta(description="What was done, in a few sentences, for people and for whoever works next.")]
    artifacts: Annotated[
        list[str],
        Meta(description="Paths of files that were made or changed and matter to later steps, relative to the working tree."),
    ] = []
    metrics: Annotated[
        dict[str, str | bool | float | list[str]], Meta(description="Named results, if there are any worth keeping.")
    ] = {}
    logs: Annotated[list[str], Meta(description="Lines worth keeping for people.")] = []
    files_modified: Annotated[list[str], Meta(description="Files that were changed.")] = []
    learnings: Annotated[
        list[Learning], Meta(description="What later agents should know, each a pattern, antipattern or insight.")
    ] = []


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


class _Lenient(Common, kw_only=True):
    """The same, as it is taken from a file: more than is asked for."""

    schema: str | None = None
    metrics: dict[str, Any] = {}
    learnings: list[Any] = []


def read_report(raw: bytes, rule: ReportRule) -> Report | Failure:
    """The report in `raw`, or the failure that says what is wrong with it."""
    try:
        document = msgspec.json.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        return invalid_report(f"the report is not JSON ({error}): {_quoted(raw.decode('utf-8', 'replace'))}")
    if not isinstance(document, dict):
        return invalid_report(f"the report is not a JSON object: {_quoted(raw.decode('utf-8', 'replace'))}")
    return check_report(document, rule)


def check_report(document: dict[str, Any], rule: ReportRule) -> Report | Failure:
    """The same for a report that arrived as an object (structured output of a CLI)."""
    for field, expected in rule.ids.items():
        if field in document and document[field] != expected:
            return invalid_report(f"the report is for {field} {_quoted(document[field])}, not {expected!r}")
    told = {name: value for name, value in document.items() if value is not None}
    try:
        known = typed.convert({"status": "", "summary": ""} | told, _Lenient)
    except msgspec.ValidationError as error:
        return invalid_report(f"the report has a wrong field: {error}")
    if known.schema is not None and known.schema != REPORT_SCHEMA:
        return invalid_report(f"the report's schema is {_quoted(known.schema)}, not {REPORT_SCHEMA!r}")
    word = known.status.strip().upper()
    status = rule.words.get(word) or rule.aliases.get(word, word if rule.any_status else None)
    if status is None:
        said = _quoted(document.get("status")) if "status" in document else "missing"
        return invalid_report(f"the report's status is {said}; it must be one of {', '.join(rule.words)}")
    learnings, warnings = _learnings(known.learnings)
    return Report(
        status=status,
        summary=known.summary,
        artifacts=tuple(known.artifacts),
        metrics=known.metrics,
        logs=tuple(known.logs),
        files_modified=tuple(known.files_modified),
        learnings=learnings,
        fields={key: value for key, value in document.items() if key not in _Lenient.__struct_fields__},
        warnings=warnings,
    )


def _learnings(raw: list[Any]) -> tuple[tuple[Learning, ...], tuple[str, ...]]:
    kept, warnings = [], []
    for entry in raw:
        try:
            kept.append(typed.convert(entry, Learning))
        except msgspec.ValidationError as error:
            warnings.append(f"a learning was dropped: {error}")
    return tuple(kept), tuple(warnings)


def _quoted(value: object) -> str:
    text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    return repr(text if len(text) <= 80 else text[:77] + "…")
