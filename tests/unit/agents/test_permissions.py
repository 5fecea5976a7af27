"""The permissions of agents: the options of a command line, the run's own checks, and what each client can be told of both."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path

import msgspec
import pytest

from agent_orchestrator.agents import find_agent
from agent_orchestrator.agents.cli import CliAgent
from agent_orchestrator.agents.events import Denied
from agent_orchestrator.agents.options import AgentSettings
from agent_orchestrator.core.effects import AgentChoice
from agent_orchestrator.errors import InvalidValue, UsageError
from agent_orchestrator.runs.choices import Permissions, read_idle_s
from agent_orchestrator.testing.agents import make_task


def adapter(name: str) -> CliAgent:
    agent = find_agent(name)
    assert isinstance(agent, CliAgent)
    return agent


def planned(folder: Path, name: str, *commands: str, **options: object) -> tuple[list[str], dict[str, str]]:
    task = make_task(folder, AgentChoice(name=name, options=options))
    effect = msgspec.structs.replace(task.effect, allowed_commands=commands)
    plan = adapter(name).plan(msgspec.structs.replace(task, effect=effect))
    return list(plan.argv), plan.env


def allowed(words: list[str], flag: str) -> list[str]:
    return [after for word, after in pairwise(words) if word == flag]


@pytest.mark.parametrize("command", ["pytest -q", "make a && make 'b, c'", 'python3 -c "print(1)"', "FOO=1 make"])
def test_claude_may_run_the_checks_as_they_are(command: str, tmp_path: Path) -> None:
    words, _ = planned(tmp_path, "claude", command, allowed_tools=["Bash(make:*)"])
    assert allowed(words, "--allowedTools") == ["Bash(make:*)", f"Bash({command})"]


@pytest.mark.parametrize("command", ["pytest tests/*.py", "make (", "a\nb", "a\\b", "", "x" * 2000])
def test_a_check_that_a_rule_would_widen_is_left_out(command: str, tmp_path: Path) -> None:
    words, _ = planned(tmp_path, "claude", command)
    assert allowed(words, "--allowedTools") == []


def test_gemini_may_run_plain_checks_and_look_at_the_repository(tmp_path: Path) -> None:
    words, _ = planned(tmp_path / "auto", "gemini", "pytest -q", "make a && make b", "make a,b")
    (told,) = allowed(words, "--allowed-tools")
    git = "run_shell_command(git status),run_shell_command(git ls-files),run_shell_command(git blame)"
    assert told == f"{git},run_shell_command(pytest -q)"
    words, _ = planned(tmp_path / "plan", "gemini", "pytest -q", permission_mode="plan")
    assert allowed(words, "--allowed-tools") == []


def test_opencode_is_told_by_its_permissions_where_it_would_ask(tmp_path: Path) -> None:
    rules = ["webfetch", "bash(make *)"]
    _, env = planned(tmp_path / "ask", "opencode", "pytest -q", "ls *", permission_mode="ask", allowed_tools=rules)
    told = json.loads(env["OPENCODE_PERMISSION"])
    assert told["webfetch"] == "allow"
    assert {"*": "ask", "make *": "allow", "pytest -q": "allow"}.items() <= told["bash"].items()
    assert "ls *" not in told["bash"]
    assert "OPENCODE_PERMISSION" not in planned(tmp_path / "auto", "opencode", "pytest -q")[1]


@pytest.mark.parametrize(
    ("agent", "denied", "mode", "allow"),
    [
        ("claude", Denied(tool="Bash", asked="pytest -q tests"), None, "--allow-tool 'Bash(pytest:*)'"),
        ("claude", Denied(tool="Bash", asked="git push origin"), None, "--allow-tool 'Bash(git push:*)'"),
        ("claude", Denied(tool="Bash", asked="make a && make b"), None, "--allow-tool 'Bash(make a && make b)'"),
        ("claude", Denied(tool="Bash", asked="rm *"), None, "--allow-tool Bash"),
        ("claude", Denied(tool="WebFetch", asked="http://x"), None, "--allow-tool WebFetch"),
        ("claude", Denied(tool="Write", asked="/etc/x"), None, "--allow-tool 'Edit(//etc/x)'"),
        ("claude", Denied(tool="Write", asked="/repo/x"), "default", "--permission-mode acceptEdits"),
        ("codex", Denied(tool="apply_patch"), "read-only", "--permission-mode workspace-write"),
        ("codex", Denied(tool="apply_patch"), None, "--permission-mode danger-full-access"),
        ("gemini", Denied(tool="run_shell_command", asked="make a"), None, "--allow-tool 'run_shell_command(make a)'"),
        ("gemini", Denied(tool="run_shell_command", asked="a && b"), None, "--permission-mode yolo"),
        ("gemini", Denied(tool="write_file", asked="/etc/x"), None, ""),
        ("opencode", Denied(tool="bash", asked="make a"), "ask", "--allow-tool 'bash(make a)'"),
        ("opencode", Denied(tool="bash", asked="rm *"), "ask", "--allow-tool bash"),
        ("opencode", Denied(tool="write", asked="x"), "ask", "--allow-tool edit"),
        ("opencode", Denied(tool="write", asked="/a b/x"), "ask", "--allow-tool edit --allow-tool 'external_directory(/a b/*)'"),
        ("opencode", Denied(tool="webfetch", asked=""), "ask", "--allow-tool webfetch"),
    ],
)
def test_each_refusal_has_the_option_that_would_allow_it(agent: str, denied: Denied, mode: str | None, allow: str) -> None:
    assert adapter(agent).suggest_flags(denied, AgentSettings(permission_mode=mode)) == allow


def test_options_of_a_command_line_reach_the_agents_that_can_follow() -> None:
    given = Permissions(allow_tools=("Bash(make:*)",), mode="acceptEdits")
    claude, codex = AgentChoice(name="claude", options={"allowed_tools": ["WebFetch"]}), AgentChoice(name="codex")
    given.check((claude, codex))
    assert given.given_to(claude).options == {"allowed_tools": ["WebFetch", "Bash(make:*)"], "permission_mode": "acceptEdits"}
    assert given.given_to(codex) == codex
    assert Permissions(mode="read-only").given_to(codex).options == {"permission_mode": "read-only"}


@pytest.mark.parametrize(
    ("given", "agent", "said"),
    [
        (Permissions(allow_tools=("x",)), "codex", "its sandbox decides: --permission-mode workspace-write"),
        (Permissions(allow_tools=("x",)), "command", "command cannot be told which tools may be used; leave it out"),
        (Permissions(mode="acceptEdits"), "codex", "codex has workspace-write, read-only, danger-full-access"),
        (Permissions(mode="auto"), "scripted", "scripted has no such modes; leave it out"),
    ],
)
def test_what_nobody_could_follow_is_refused(given: Permissions, agent: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        given.check((AgentChoice(name=agent),))


@pytest.mark.parametrize(("given", "idle_s"), [(None, None), ("0", 0.0), ("none", 0.0), ("15m", 900.0)])
def test_silence_is_limited_as_given(given: str | None, idle_s: float | None) -> None:
    assert read_idle_s(given) == idle_s


def test_silence_is_given_as_a_time() -> None:
    with pytest.raises(InvalidValue, match="--idle-timeout"):
        read_idle_s("soon")
