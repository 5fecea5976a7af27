"""The log of codex on its error output: each call's tokens, the sleep after a refusal, a write that was refused."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path

import msgspec
import pytest

from agent_orchestrator.agents.adapter import AgentTask, Ending, Reading, Verdict
from agent_orchestrator.agents.codex import AGENT
from agent_orchestrator.agents.output import read_tails
from agent_orchestrator.core.effects import AgentChoice
from agent_orchestrator.core.failure import Failure, FailureKind
from agent_orchestrator.core.units import from_iso
from agent_orchestrator.testing.agents import make_ending, make_task

BEGUN = '{"type":"thread.started","thread_id":"t1"}\n{"type":"turn.started"}\n'
DONE = (
    '{"type":"item.completed","item":{"type":"agent_message","text":"{\\"status\\": \\"COMPLETED\\"}"}}\n'
    '{"type":"turn.completed","usage":{"input_tokens":3027,"cached_input_tokens":1006,"cache_write_input_tokens":0,'
    '"output_tokens":65}}\n'
)
REFUSED = '{"type":"turn.failed","error":{"message":"exceeded retry limit, last status: 429 Too Many Requests"}}\n'
BROKEN = '{"type":"turn.failed","error":{"message":"unexpected status 500 Internal Server Error: no"}}\n'

CALL = (
    '2026-11-16T04:08:54.691606Z  INFO codex_otel.trace_safe: event.name="codex.sse_event" event.kind=response.completed '
    "input_token_count=1510 output_token_count=32 cached_token_count=503 cache_write_token_count=0 reasoning_token_count=7 "
    'tool_token_count=1542 ttft_ms=0 model_reasoning_effort="medium" event.timestamp=2026-11-16T04:08:54.691Z '
    "conversation.id=01a1e28b-2e08 app.version=0.166.0 originator=codex_exec terminal.type=dumb model=gpt-5.5 slug=gpt-5.5\n"
)
ASLEEP = (
    "2026-11-16T04:06:30.277503Z  WARN codex_core::responses_retry: stream disconnected - retrying sampling request "
    "(1/5 in {})... turn_id=01a1e288 retries=1 max_retries=5 "
    "sampling_error=exceeded retry limit, last status: {}\n"
)
LONG, SHORT = ASLEEP.format("3599.998640104s", "429 Too Many Requests"), ASLEEP.format("998.283199ms", "429 Too Many Requests")
BLOCKED = (
    "2026-11-15T20:04:54.582945Z ERROR codex_core::tools::router: error=patch rejected: writing is blocked by read-only "
    "sandbox; rejected by user approval settings\n"
)
WAKES_US = from_iso("2026-11-16T05:06:30.276143Z")


def launch(folder: Path, out: str, err: str, exit_code: int = 0, **options: object) -> tuple[AgentTask, Ending]:
    task = make_task(folder, AgentChoice(name="codex", options=options))
    ending = make_ending(task, exit_code)
    ending.out.write_text(out, "utf-8")
    ending.err.write_text("Reading additional input from stdin...\n" + err, "utf-8")
    return task, ending


def judge(folder: Path, out: str, err: str, exit_code: int = 0, **options: object) -> Verdict:
    return AGENT.judge(*launch(folder, out, err, exit_code, **options))


def test_each_call_is_seen_while_it_works(tmp_path: Path) -> None:
    prices = {"gpt-5.5": {"input": 10.0, "output": 100.0, "cache_read": 1.0}}
    task, ending = launch(tmp_path, BEGUN, CALL, prices=prices)
    meter = AGENT.meter(task, ending.out, ending.err)
    cost = (1007 * 10 + 32 * 100 + 503) / 1e6
    assert meter() == Reading(calls=1, cost_usd=cost, tokens=1542, largest_usd=cost, largest_tokens=1542)
    with ending.err.open("a") as file:
        file.write(CALL)
    assert meter().tokens == 2 * 1542


def test_a_turn_that_was_cut_short_has_the_tokens_of_its_calls(tmp_path: Path) -> None:
    usage = judge(tmp_path, BEGUN, CALL + CALL, 143).usage
    assert usage is not None
    assert (usage.input_tokens, usage.output_tokens, usage.cache_read_tokens, usage.calls) == (2014, 64, 1006, 2)
    assert (usage.model, usage.session) == ("gpt-5.5", "t1")


def test_the_total_of_a_turn_is_believed_and_its_model_is_that_of_the_log(tmp_path: Path) -> None:
    verdict = judge(tmp_path, BEGUN + DONE, CALL)
    assert verdict.failure is None
    assert verdict.usage is not None
    assert (verdict.usage.input_tokens, verdict.usage.model, verdict.cumulative) == (2021, "gpt-5.5", True)


@pytest.mark.parametrize(
    ("err", "sleeps"),
    [
        (LONG, True),
        (CALL + LONG, True),
        (SHORT, False),
        (LONG + CALL, False),
        (LONG[:-60], False),
        (ASLEEP.format("3600s", "503 Service Unavailable"), False),
        (LONG.replace("2026-11-16", "2026-99-16"), False),
        (f"error=a file that says: {LONG}", False),
    ],
)
def test_a_long_sleep_is_not_waited_for(err: str, sleeps: bool, tmp_path: Path) -> None:
    task, ending = launch(tmp_path, BEGUN, err)
    why = AGENT.watch_sleep(task, ending.err)()
    message = "Stopped: its API refused a call (429), and it would have slept for 1h 00m."
    assert why == (Failure(kind=FailureKind.RATE_LIMITED, message=message, retry_at_us=WAKES_US) if sleeps else None)


@pytest.mark.parametrize(
    ("out", "err", "exit_code", "kind", "retry_at_us"),
    [
        (REFUSED, LONG, 1, FailureKind.RATE_LIMITED, WAKES_US),
        (REFUSED, "", 1, FailureKind.RATE_LIMITED, None),
        ("", LONG, 143, FailureKind.RATE_LIMITED, WAKES_US),
        ("", LONG + CALL, 143, FailureKind.EXIT, None),
        (BROKEN, LONG, 1, FailureKind.OVERLOADED, None),
    ],
)
def test_a_rate_limit_says_until_when_unless_it_was_over(
    out: str, err: str, exit_code: int, kind: FailureKind, retry_at_us: int | None, tmp_path: Path
) -> None:
    failure = judge(tmp_path, BEGUN + out, err, exit_code).failure
    assert failure is not None
    assert (failure.kind, failure.retry_at_us) == (kind, retry_at_us)


def test_a_refused_write_is_found_however_much_was_logged_after_it(tmp_path: Path) -> None:
    err = BLOCKED + CALL * 1_000
    failure = judge(tmp_path / "fail", BEGUN + DONE, err, denials="fail").failure
    assert failure is not None
    assert failure.kind is FailureKind.DENIED
    assert "writing is blocked by read-only sandbox" in failure.message
    verdict = judge(tmp_path / "warn", BEGUN + DONE, err)
    assert verdict.failure is None
    assert "writing is blocked by read-only sandbox" in verdict.warnings[0]


def test_what_is_logged_for_us_is_no_reason_and_nothing_to_tell(tmp_path: Path) -> None:
    task, ending = launch(tmp_path, BEGUN, "thread 'main' panicked\n" + CALL * 3, 101)
    failure = AGENT.judge(task, ending).failure
    assert failure is not None
    assert failure.message == "Agent process exited with code 101: thread 'main' panicked"
    assert read_tails(ending, chatter=AGENT.chatter) == BEGUN + "thread 'main' panicked\n"
    assert "codex_otel" in read_tails(ending)


def test_the_log_is_asked_for_unless_somebody_asks_for_another(tmp_path: Path) -> None:
    task, _ = launch(tmp_path, "", "")
    assert AGENT.plan(task).env["RUST_LOG"].startswith("error,")
    task, _ = launch(tmp_path, "", "", env={"RUST_LOG": "debug"})
    assert AGENT.plan(task).env["RUST_LOG"] == "debug"


NOON = datetime(2026, 11, 16, 12, 0).astimezone()  # in local time, as codex tells it


@pytest.mark.parametrize(
    ("said", "until"),
    [
        ("or try again at 4:00 PM.", NOON.replace(hour=16, minute=1)),
        ("or try again at Nov 20th, 2026 12:00 AM.", NOON.replace(day=20, hour=0, minute=1)),
        ("or try again at Nov 31st, 2026 12:00 AM.", None),
        ("or try again later.", None),
    ],
)
def test_the_limit_of_a_plan_is_over_when_it_says(said: str, until: datetime | None, tmp_path: Path) -> None:
    message = f"You’ve hit your usage limit. Visit https://chatgpt.com/settings/usage to purchase more credits {said}"
    task, ending = launch(tmp_path, BEGUN + json.dumps({"type": "turn.failed", "error": {"message": message}}), CALL, 1)
    ending = msgspec.structs.replace(ending, ended_us=int(NOON.timestamp()) * 1_000_000)
    failure = AGENT.judge(task, ending).failure
    assert failure is not None
    assert failure.kind is FailureKind.RATE_LIMITED
    assert failure.retry_at_us == (int(until.timestamp()) * 1_000_000 if until is not None else None)
