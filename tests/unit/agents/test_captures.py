"""The output of real CLIs, each with the verdict it must get: recorded runs against a scripted model, trimmed.

The report file lies there in every case: what is judged here is everything else, so a false success would show.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
import pytest

from agent_orchestrator.agents import find_agent
from agent_orchestrator.agents.adapter import Agent, Verdict
from agent_orchestrator.core.effects import AgentChoice
from agent_orchestrator.core.failure import Failure, FailureKind
from agent_orchestrator.testing.agents import make_ending, make_task

DATA = Path(__file__).parent / "data"

CUT_OFF = 124
"""The recorder ended the client, as the engine's time limit would."""

OK = "ok"
EXPECTED: dict[str, dict[str, str]] = {
    "claude": {
        "write-streamjson": OK, "json": OK, "resume": OK, "streamin": OK, "mcp": OK, "malformed": OK, "hangmid-default": OK,
        "retries2-truncated": OK, "e429x2-recover": OK, "bypass-root-sandbox": OK,
        "cost-A1": OK, "cost-A4fork": OK, "cost-A5-budget": OK, "cost-B1": OK,
        "schema": "report_invalid", "denied": OK, "outside": OK,
        "maxturns": "agent_limit", "budget": "agent_limit", "cost-A6-budgetloop": "agent_limit",
        "retries2-e401": "auth", "e403": "auth", "noauth": "auth", "quota": "auth",
        "e400": "spec", "toolong": "prompt_too_long",
        "e429": "rate_limited", "e429-ra3600": "rate_limited", "retries2-e429": "rate_limited", "limit-5h": "rate_limited",
        "e500": "overloaded", "e529": "overloaded", "retries2-e529": "overloaded", "html": "overloaded",
        "refused": "overloaded", "hang-timeout10s": "overloaded",
        "bypass-root": "launch", "bypass-root-mode": "launch", "noverbose": "launch", "emptyprompt": "launch",
        "sessionid-reuse": "launch", "resume-unknown": "session_lost",
        "SIGINT": "exit", "SIGTERM": "exit", "SIGTERM-tool": "exit",
        "e401": "timeout", "truncated": "timeout", "hangmid-timeout10s": "timeout", "hangmid-watchdog10s": "timeout",
    },
    "codex": {
        "write-json": OK, "applypatch": OK, "resume": OK, "readonly": OK, "schema": "report_invalid",
        "e401": "auth", "e403": "auth", "noretry-e401": "auth", "missing-key": "auth", "quota": "auth",
        "e400": "spec", "toolong": "prompt_too_long", "e429": "rate_limited", "noretry-e429": "rate_limited",
        "e500": "overloaded", "e529": "overloaded", "noretry-e500": "overloaded", "html": "overloaded",
        "malformed": "overloaded", "truncated": "overloaded", "hangmid-idle5s": "overloaded",
        "badflag": "launch", "nogit": "launch", "resume-unknown": "session_lost",
        "SIGINT": "exit", "SIGTERM": "exit", "SIGTERM-tool": "exit", "hang-idle5s": "timeout", "e429-ra3600": "timeout",
        "broken-sandbox": "unwritten",
    },
    "gemini": {
        "write": OK, "loop": "agent_limit", "maxturns": "agent_limit", "e401": "auth", "e429-max2": "rate_limited",
        "malformed": "overloaded", "truncated": "overloaded", "notrust": "launch", "e429": "timeout", "e500": "timeout",
    },
    "opencode": {
        "write": OK, "resume": OK, "noauto": "denied", "e401": "auth", "e429": "rate_limited", "hang": "overloaded",
        "malformed": "timeout", "truncated": "timeout",
    },
}  # fmt: skip
CASES = [(cli, name) for cli, names in EXPECTED.items() for name in names]


@cache
def captures(cli: str) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = json.loads((DATA / f"{cli}.json").read_text("utf-8"))
    return found


def judge(cli: str, name: str, folder: Path) -> Verdict:
    """The adapter's verdict on a recorded run."""
    capture = captures(cli)[name]
    agent = find_agent(cli)
    task = make_task(folder, AgentChoice(name=cli))
    if name == "resume-unknown":
        task = msgspec.structs.replace(task, effect=msgspec.structs.replace(task.effect, session="gone"))
    code = capture["exit"] if capture["exit"] >= 0 else 128 - capture["exit"]
    cause = Failure(kind=FailureKind.TIMEOUT, message="too long") if code == CUT_OFF else None
    ending = make_ending(task, code, cause)
    ending.out.write_text("\n".join(capture["out"]), "utf-8")
    ending.err.write_text(capture["err"], "utf-8")
    task.report.write_text('{"status": "COMPLETED"}')
    assert not hasattr(agent, "act")
    adapter: Agent = agent
    return adapter.judge(task, ending)


def test_every_capture_has_its_verdict() -> None:
    assert {cli: sorted(names) for cli, names in EXPECTED.items()} == {cli: sorted(captures(cli)) for cli in EXPECTED}


@pytest.mark.parametrize(("cli", "name"), CASES)
def test_a_recorded_run_gets_its_verdict(cli: str, name: str, tmp_path: Path) -> None:
    verdict = judge(cli, name, tmp_path)
    kind = verdict.failure.kind.value if verdict.failure is not None else OK
    assert kind == EXPECTED[cli][name], verdict
    assert verdict.failure is None or verdict.failure.message.strip()


@pytest.mark.parametrize(
    ("cli", "name", "tool", "asked", "allow"),
    [
        ("claude", "denied", "Write", "/repo/c7/hello.txt", "--allow-tool 'Edit(//repo/c7/hello.txt)'"),
        ("claude", "outside", "Write", "/", "--allow-tool 'Edit(//"),
        ("codex", "readonly", "apply_patch", "patch rejected", "--permission-mode danger-full-access"),
        ("opencode", "noauto", "bash", "", "--allow-tool"),
    ],
)
def test_a_recorded_refusal_says_what_would_allow_it(
    cli: str, name: str, tool: str, asked: str, allow: str, tmp_path: Path
) -> None:
    (denial,) = judge(cli, name, tmp_path).denials
    assert denial.tool == tool
    assert denial.asked.startswith(asked)
    assert denial.allow.startswith(allow)


@pytest.mark.parametrize(
    ("cli", "name", "counts"),
    [
        ("claude", "write-streamjson", (2400, 68, 2000, 200, 0.00957)),
        ("claude", "budget", (6000, 170, 5000, 500, 0.023925)),
        ("claude", "mcp", (1200, 34, 1000, 100, None)),
        ("claude", "SIGTERM", (None, None, None, None, None)),
        ("codex", "write-json", (400, 68, 2000, 0, None)),
        ("codex", "e401", (None, None, None, None, None)),
        ("gemini", "write", (400, 68, 2000, None, None)),
        ("opencode", "write", (400, 68, 2000, 0, 0.000536)),
    ],
)
def test_consumption_is_what_the_run_says_and_unknown_where_it_says_nothing(
    cli: str, name: str, counts: tuple[object, ...], tmp_path: Path
) -> None:
    usage = judge(cli, name, tmp_path).usage
    assert usage is not None
    found = (usage.input_tokens, usage.output_tokens, usage.cache_read_tokens, usage.cache_write_tokens, usage.cost_usd)
    assert found == pytest.approx(counts) if None not in counts else found == counts
    assert usage.session


def test_a_rate_limit_says_until_when_where_the_client_knows(tmp_path: Path) -> None:
    for cli, name, until_us in (
        ("opencode", "e429", 1_794_773_331_607_000 + 2_000_000),
        ("claude", "limit-5h", 1_794_788_584_000_000),
        ("claude", "e429", None),
        ("codex", "e429", None),
    ):
        limited = judge(cli, name, tmp_path / f"{cli}-{name}").failure
        assert limited is not None
        assert limited.retry_at_us == until_us


def test_what_a_client_does_without_is_a_warning(tmp_path: Path) -> None:
    (mcp,) = judge("claude", "mcp", tmp_path / "claude").warnings
    assert mcp == "The agent says: the MCP server broken is not there (failed)"
    (model,) = judge("codex", "write-json", tmp_path / "codex").warnings
    assert model.startswith("The agent says: Model metadata for `gpt-5.1-codex` not found.")
    assert judge("claude", "write-streamjson", tmp_path / "quiet").warnings == ()


def test_a_session_that_never_began_costs_nothing(tmp_path: Path) -> None:
    assert judge("codex", "badflag", tmp_path).usage is None


@pytest.mark.parametrize(
    ("cli", "name"), [("claude", "write-streamjson"), ("codex", "write-json"), ("gemini", "write"), ("opencode", "write")]
)
def test_its_last_words_are_known_beside_its_stream(cli: str, name: str, tmp_path: Path) -> None:
    said = judge(cli, name, tmp_path).said
    assert said
    assert not said.startswith("{"), said
