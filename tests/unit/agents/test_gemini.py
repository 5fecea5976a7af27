"""The refusals of gemini: the status may stand in the exit code alone, and most quotas come back by waiting."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from agent_orchestrator.agents.gemini import AGENT
from agent_orchestrator.agents.refusal import find_wait_s
from agent_orchestrator.core.effects import AgentChoice
from agent_orchestrator.core.failure import Failure
from agent_orchestrator.core.units import from_iso
from agent_orchestrator.testing.agents import make_ending, make_task

INIT = {"type": "init", "session_id": "s1", "model": "gemini-2.5-flash"}
AT = "2026-11-16T04:23:56.995Z"
ADVICE = "\nPlease wait and try again later. To increase your limits, request a quota increase through AI Studio"
QUOTA = (
    "[API Error: You exceeded your current quota, please check your plan and billing details. For more information on this "
    "error, head to: https://ai.google.dev/gemini-api/docs/rate-limits.\n* Quota exceeded for metric: "
    "generativelanguage.googleapis.com/generate_content_free_tier_requests, limit: {}, model: gemini-2.5-flash\n"
    "Please retry in 34.074824224s.\nSuggested retry after 34s.]" + ADVICE
)
FOREIGN = '[API Error: {"type":"error","error":{"type":"api_error","message":"scripted"}}]'


def judge(folder: Path, message: str, exit_code: int, at: str = AT) -> Failure:
    task = make_task(folder, AgentChoice(name="gemini"))
    ending = make_ending(task, exit_code)
    result = {"type": "result", "timestamp": at, "status": "error", "error": {"type": "unknown", "message": message}}
    ending.out.write_text("\n".join(map(json.dumps, (INIT, result))))
    failure = AGENT.judge(task, ending).failure
    assert failure is not None
    return failure


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, "spec"), (401, "auth"), (403, "auth"), (404, "spec"), (413, "prompt_too_long"), (429, "rate_limited"),
        (500, "overloaded"), (503, "overloaded"), (529, "overloaded"),
    ],
)  # fmt: skip
def test_a_status_that_only_the_exit_code_tells_is_believed(status: int, kind: str, tmp_path: Path) -> None:
    assert judge(tmp_path, FOREIGN, status % 256).kind.value == kind


def test_an_exit_code_that_is_no_status_says_nothing(tmp_path: Path) -> None:
    assert judge(tmp_path, FOREIGN, 1).kind.value == "exit"


@pytest.mark.parametrize(
    ("message", "kind", "wait_us"),
    [
        (QUOTA.format(10), "rate_limited", 34_074_824),
        (QUOTA.format(0), "auth", None),
        ("[API Error: You have exhausted your daily quota on this model.]" + ADVICE, "rate_limited", None),
        ("[API Error: You have exhausted your capacity on this model. Your quota will reset after 8h44m7s.]", "rate_limited",
         31_447_000_000),
        ("You exceeded your current quota, please check your plan and billing details. (insufficient_quota)", "auth", None),
    ],
)  # fmt: skip
def test_a_quota_that_comes_back_is_a_rate_limit(message: str, kind: str, wait_us: int | None, tmp_path: Path) -> None:
    failure = judge(tmp_path, message, 173)
    assert failure.kind.value == kind
    assert failure.retry_at_us == (from_iso(AT) + wait_us if wait_us is not None else None)


def test_without_a_time_of_its_own_it_cannot_say_until_when(tmp_path: Path) -> None:
    assert judge(tmp_path, QUOTA.format(10), 173, at="yesterday").retry_at_us is None


@pytest.mark.parametrize(
    ("message", "wait_s"),
    [
        ("Please retry in 34.074824224s.", 34.074824224), ("reset after 8h44m7s.", 31_447.0), ("Retry after 10m", 600.0),
        ("reset after 0s", None), ("retry in 5 minutes", None), ("retry in", None), ("no wait", None),
    ],
)  # fmt: skip
def test_a_wait_is_read_where_one_is_said(message: str, wait_s: float | None) -> None:
    assert find_wait_s(message) == wait_s
