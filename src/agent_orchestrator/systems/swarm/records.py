"""Run and result records, version 1: the fields of the seed in its order, and no others.

A record is the document; the state keeps it and replaces it whole. What is not known yet is null, never faked.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any

import msgspec
from msgspec import UNSET

from agent_orchestrator.core.text import stamp
from agent_orchestrator.core.units import US
from agent_orchestrator.systems.swarm.spec import NO_MODEL, PROMPT_SHOWN_CHARS, BeadSpec, hash_prompt, session_of

VERSION = 1
RUNS, RESULTS = "state/runs", "state/results"
ATTEMPTS = "state/attempts"
"""The ended attempts: beside the two folders, so that whoever walks through those counts each bead once."""
ABORTED = "aborted"
"""The failure reason of what a person ended."""
BUDGET_EXHAUSTED = "budget-exhausted"
"""The failure reason of what cannot go on before there is more to spend."""


class AttemptStatus(StrEnum):
    """The seed's words."""

    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    TIMEOUT = "timeout"


class RunRecord(msgspec.Struct, frozen=True, kw_only=True):
    """`state/runs/<bead>.json`."""

    schema_version: int = VERSION
    bead: str
    agent: str
    model: str
    repo: str
    prompt: str
    prompt_full: str
    prompt_hash: str
    started_at: str
    finished_at: str | None = None
    duration_seconds: int | None = None
    status: AttemptStatus
    attempt: int
    max_retries: int
    session_name: str
    result_file: str
    exit_code: int | None = None
    output_summary: str | None = None
    failure_reason: str | None = None
    template_name: str | None = None
    verification: Any = UNSET
    """Evidence in a record of another tool, kept as it was; ours have none."""


class ResultRecord(msgspec.Struct, frozen=True, kw_only=True):
    """`state/results/<bead>.json`."""

    schema_version: int = VERSION
    bead: str
    agent: str
    status: AttemptStatus
    reason: str
    started_at: str
    finished_at: str
    duration_seconds: int | None = None
    attempt: int
    max_retries: int
    will_retry: bool
    exit_code: int | None
    session_name: str
    output_summary: str
    verification: Any = UNSET


class Kept(msgspec.Struct, frozen=True):
    """Both records of an ended attempt."""

    run: RunRecord
    result: ResultRecord


def name_attempt(bead: str, number: int | str, kind: str) -> str:
    """Return the path of an ended attempt's `run` or `result`."""
    return f"{ATTEMPTS}/{bead}.{number}.{kind}.json"


class AttemptVerdict(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The end of an attempt, in the words of the records."""

    status: AttemptStatus
    reason: str
    failure_reason: str | None = None
    exit_code: int | None = None


def start_record(bead: BeadSpec, attempt: int, total: int, at_us: int) -> RunRecord:
    """The record of an attempt that begins."""
    return RunRecord(
        bead=bead.id,
        agent=bead.agent.name,
        model=bead.agent.model or NO_MODEL,
        repo=bead.repo,
        prompt=bead.prompt[:PROMPT_SHOWN_CHARS],
        prompt_full=bead.prompt,
        prompt_hash=hash_prompt(bead.prompt),
        started_at=stamp(at_us),
        status=AttemptStatus.RUNNING,
        attempt=attempt,
        max_retries=total,
        session_name=session_of(bead.id),
        result_file=f"{RESULTS}/{bead.id}.json",
        template_name=bead.template,
    )


def end_record(
    run: RunRecord, verdict: AttemptVerdict, *, started_us: int, ended_us: int, output: str, will_retry: bool
) -> tuple[RunRecord, ResultRecord]:
    """Both records of an attempt that has ended; they always agree."""
    # Of the printed times, so that whoever subtracts them gets the same.
    duration_s = ended_us // US - started_us // US
    finished_at = stamp(ended_us)
    ended = msgspec.structs.replace(
        run,
        finished_at=finished_at,
        duration_seconds=duration_s,
        status=verdict.status,
        exit_code=verdict.exit_code,
        output_summary=output,
        failure_reason=verdict.failure_reason,
    )
    result = ResultRecord(
        bead=run.bead,
        agent=run.agent,
        status=verdict.status,
        reason=verdict.reason,
        started_at=run.started_at,
        finished_at=finished_at,
        duration_seconds=duration_s,
        attempt=run.attempt,
        max_retries=run.max_retries,
        will_retry=will_retry,
        exit_code=verdict.exit_code,
        session_name=run.session_name,
        output_summary=output,
    )
    return ended, result
