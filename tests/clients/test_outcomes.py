"""Every way in which a real client's work can go ends in the right typed outcome, and never in a false success."""

from __future__ import annotations

import json
from typing import NamedTuple

import pytest

from agent_orchestrator.core.failure import DETERMINISTIC, FailureKind
from agent_orchestrator.testing.model_server import Behaviour, Broken, Refuse, Reply, Say, Shell, Write
from tests.clients.rig import Rig, charged, counts, report

CLIENTS = ("claude", "codex")


class Case(NamedTuple):
    """A behaviour of the model, the client's settings, and the outcome that must follow."""

    script: list[Behaviour]
    kind: str
    settings: tuple[str, ...] = ()


BOTH = {
    "401": Case([Refuse(401)], "auth"),
    "429 short": Case([Refuse(429, retry_after_s=1)], "rate_limited"),
    "429 long": Case([Refuse(429, retry_after_s=3600)], "rate_limited"),
    "529": Case([Refuse(529)], "overloaded"),
    "500": Case([Refuse(500)], "overloaded"),
    "400": Case([Refuse(400, "no such thing")], "spec"),
    "malformed": Case([Broken("malformed")], "overloaded"),
    "cut": Case([Broken("cut")], "overloaded"),
    "bad flag": Case([Say("never asked")], "launch", ('args = ["--no-such-flag"]',)),
    "no report": Case([Say("All done, trust me.")], "report_missing"),
    "reported failure": Case([Reply(report(status="FAILED", summary="it is too hard"))], "reported"),
}
AS_IT_COMES = 'args = ["-c", "model_providers.scripted.stream_max_retries=5"]'
READ_ONLY = ('permission_mode = "read-only"', 'denials = "fail"')
OWN = {
    ("claude", "another report"): Case([Reply(report(status="WONDERFUL"), fits=False)], "report_invalid"),
    ("codex", "another report"): Case([Say(json.dumps(report(status="WONDERFUL")))], "report_invalid"),
    ("claude", "too long"): Case([Refuse(400, "prompt is too long: 215000 tokens > 200000 maximum")], "prompt_too_long"),
    ("claude", "no credit"): Case([Refuse(400, "Your credit balance is too low to access the Anthropic API.")], "auth"),
    ("claude", "denied"): Case([Write("/etc/orc-test", "no"), Reply(report())], "denied", ('denials = "fail"',)),
    ("claude", "max turns"): Case([Shell("echo 1")], "agent_limit", ("max_turns = 2",)),
    ("claude", "budget"): Case([Shell("echo 1")], "agent_limit", ('args = ["--max-budget-usd", "0.005"]',)),
    ("codex", "too long"): Case([Refuse(400, "context_length_exceeded")], "prompt_too_long"),
    ("codex", "asleep"): Case([Refuse(429, retry_after_s=3600)], "rate_limited", (AS_IT_COMES,)),
    ("codex", "denied"): Case([Write("no.txt", "no"), Reply(report())], "denied", READ_ONLY),
}
HANGS_UP = ("claude", "another report")
"""It has enough of the fifth wrong report: on a busy machine it hangs up before it is told what that took, and estimates it."""
CASES = {**{(client, name): case for client in CLIENTS for name, case in BOTH.items()}, **OWN}


@pytest.mark.parametrize(("client", "name"), list(CASES))
def test_a_run_that_goes_wrong_says_how(client: str, name: str, rig: Rig) -> None:
    case = CASES[client, name]
    lane = rig.lane(client, case.script, *case.settings)
    summary, run = rig.run(agent=client)
    launch = rig.launches(run)[0]
    parked = case.kind == "rate_limited"
    assert (launch["failure"], summary.status) == (case.kind, "waiting" if parked else "failed"), rig.state(run)
    assert rig.state(run)["steps"]["work"]["last_error"]
    assert (FailureKind(case.kind) in DETERMINISTIC) == (case.kind in {"auth", "spec", "launch", "prompt_too_long"})
    known = [usage for usage in rig.usage(run) if usage.input_tokens is not None]
    if not any(isinstance(behaviour, Broken) for behaviour in case.script):  # what a broken answer costs is anybody's guess
        counted, bill = counts(known), charged(lane)
        if (client, name) == HANGS_UP:
            assert all(counted[kind] >= tokens for kind, tokens in bill.items()), (counted, bill)
        else:
            assert counted == bill


@pytest.mark.parametrize("client", CLIENTS)
def test_a_stream_that_breaks_once_is_mended_by_another_attempt(client: str, rig: Rig) -> None:
    rig.lane(client, [Broken("cut"), Write("hello.txt", "hi"), Reply(report())])
    summary, run = rig.run(agent=client, max_attempts=2)
    assert summary.status == "completed", rig.state(run)
    assert (rig.repo / "hello.txt").read_text().strip() == "hi"


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("how", ["silent", "stalls"])
def test_a_model_that_falls_silent_is_not_waited_for(client: str, how: str, rig: Rig) -> None:
    rig.lane(client, [Broken(how)])
    _, run = rig.run(agent=client, idle_timeout="4s")
    (launch,) = rig.launches(run)
    assert launch["failure"] == "idle"
    assert launch["session"]
    (usage,) = rig.usage(run)
    assert (usage.input_tokens, usage.cost_usd) == (None, None)


def test_a_limit_of_the_account_says_until_when(rig: Rig) -> None:
    resets_s = 4_000_000_000
    limit = {f"anthropic-ratelimit-unified-{name}": "rejected" for name in ("status", "5h-status")}
    limit |= {f"anthropic-ratelimit-unified-{name}": str(resets_s) for name in ("reset", "5h-reset")}
    refusal = Refuse(429, headers={**limit, "anthropic-ratelimit-unified-representative-claim": "five_hour"})
    rig.lane("claude", [refusal], 'pass_env = ["CLAUDE_CODE_OAUTH_TOKEN"]')
    _, run = rig.run(agent="claude")
    (failure,) = rig.failures(run)
    assert (failure.kind, failure.retry_at_us) == (FailureKind.RATE_LIMITED, resets_s * 1_000_000)
    step = rig.state(run)["steps"]["work"]
    assert (step["status"], step["attempts"]) == ("PENDING", 1)
    assert step["last_error"].endswith("(claude:CLAUDE_CODE_OAUTH_TOKEN, 5-hour window)")


def test_a_client_that_would_sleep_out_its_rate_limit_is_parked_until_then(rig: Rig) -> None:
    rig.lane("codex", [Write("hello.txt", "hi"), Refuse(429, retry_after_s=36_000)], AS_IT_COMES)
    _, run = rig.run(agent="codex")
    (failure,), launch = rig.failures(run), rig.launches(run)[0]
    assert failure.retry_at_us is not None
    assert 35_900e6 < failure.retry_at_us - launch["ended_us"] <= 36_000e6
    step = rig.state(run)["steps"]["work"]
    assert (step["status"], step["attempts"]) == ("PENDING", 1)
    (usage,) = rig.usage(run)
    assert usage.input_tokens, "what it did before is counted"


def test_an_attempt_that_failed_for_a_refusal_is_tried_again_and_told_to_do_without(rig: Rig) -> None:
    script: list[Behaviour] = [Write("/etc/orc-test", "no"), Reply(report()), Write("hello.txt", "hi"), Reply(report())]
    lane = rig.lane("claude", script, 'denials = "fail"')
    summary, run = rig.run(agent="claude", max_attempts=2)
    assert summary.status == "completed", rig.state(run)
    assert [failure.kind for failure in rig.failures(run)] == [FailureKind.DENIED]
    first, second = (json.dumps(lane.requests[number]) for number in (0, 2))
    assert "- Write: /etc/orc-test" not in first
    assert "- Write: /etc/orc-test" in second


def test_a_refused_tool_is_only_a_warning(rig: Rig) -> None:
    rig.lane("claude", [Write("/etc/orc-test", "no"), Reply(report())])
    summary, run = rig.run(agent="claude")
    assert summary.status == "completed"
    assert "was refused the tool Write (/etc/orc-test)" in rig.steps(run)["work"]["warnings"][0]
