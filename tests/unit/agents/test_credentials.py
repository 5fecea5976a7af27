"""The credentials of an agent: its own vendor's variables, the ones that are meant, and what to do where there is none."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import msgspec
import pytest

from agent_orchestrator.agents import find_agent
from agent_orchestrator.agents.cli import CliAgent
from agent_orchestrator.core.effects import AgentChoice
from agent_orchestrator.core.failure import FailureKind
from agent_orchestrator.testing.agents import make_ending, make_task

OWN = {
    "claude": ("ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL"),
    "codex": ("CODEX_API_KEY", "OPENAI_API_KEY", "CODEX_HOME"),
    "gemini": ("GEMINI_API_KEY", "GOOGLE_APPLICATION_CREDENTIALS", "GOOGLE_CLOUD_PROJECT"),
    "opencode": ("GROQ_API_KEY",),
}
EVERYTHING = {name: "set" for names in OWN.values() for name in names} | {"AWS_SECRET_ACCESS_KEY": "set", "GITHUB_TOKEN": "set"}
NOT_LOGGED_IN = b'{"type":"result","subtype":"success","is_error":true,"result":"Not logged in","api_error_status":null}\n'


def passed(choice: AgentChoice, environ: Mapping[str, str], *asked: str) -> set[str]:
    agent = find_agent(choice.performer)
    assert isinstance(agent, CliAgent)
    return set(agent.credentials(choice, asked, lambda names: {name: environ[name] for name in names if name in environ}))


@pytest.mark.parametrize("name", OWN)
def test_a_client_gets_what_its_vendor_has_and_nothing_else(name: str) -> None:
    assert passed(AgentChoice(name=name, model="groq/large"), EVERYTHING) == set(OWN[name])


@pytest.mark.parametrize("name", OWN)
def test_a_client_that_is_to_use_its_own_login_gets_nothing(name: str) -> None:
    assert passed(AgentChoice(name=name, options={"pass_credentials": False}), EVERYTHING) == set()


def test_whoever_names_one_key_does_not_get_the_others() -> None:
    environ = {"ANTHROPIC_API_KEY": "a", "CLAUDE_CODE_OAUTH_TOKEN": "b", "ANTHROPIC_BASE_URL": "c"}
    assert passed(AgentChoice(name="claude"), environ, "CLAUDE_CODE_OAUTH_TOKEN") == {"ANTHROPIC_BASE_URL"}
    set_here = AgentChoice(name="claude", options={"env": {"ANTHROPIC_AUTH_TOKEN": "d"}})
    assert passed(set_here, environ) == {"ANTHROPIC_BASE_URL"}


@pytest.mark.parametrize("switch", ["1", "true"])
def test_a_clouds_keys_come_with_its_switch_only(switch: str) -> None:
    environ = {"AWS_SECRET_ACCESS_KEY": "a", "AWS_REGION": "b", "GOOGLE_CLOUD_PROJECT": "c"}
    assert passed(AgentChoice(name="claude"), {**environ, "CLAUDE_CODE_USE_BEDROCK": "0"}) == set()
    on = {"CLAUDE_CODE_USE_BEDROCK": switch}
    assert passed(AgentChoice(name="claude"), environ | on) == {*on, "AWS_SECRET_ACCESS_KEY", "AWS_REGION"}
    assert passed(AgentChoice(name="claude", options={"env": on}), environ) >= {"AWS_SECRET_ACCESS_KEY", "AWS_REGION"}


@pytest.mark.parametrize(
    ("model", "name"),
    [
        ("anthropic/claude-sonnet-4-5", "ANTHROPIC_API_KEY"),
        ("google/gemini-2.5-pro", "GEMINI_API_KEY"),
        ("fireworks-ai/small", "FIREWORKS_API_KEY"),
        ("open-router/x", "OPEN_ROUTER_API_KEY"),
        ("github-copilot/x", None),
        ("../x", None),
        ("large", None),
        (None, None),
    ],
)
def test_of_many_providers_the_chosen_ones_key_is_passed(model: str | None, name: str | None) -> None:
    everything = {**EVERYTHING, "FIREWORKS_API_KEY": "x", "OPEN_ROUTER_API_KEY": "y"}
    assert passed(AgentChoice(name="opencode", model=model), everything) == ({name} if name else set())


def judged(folder: Path, choice: AgentChoice, out: bytes, inherited: Mapping[str, str]) -> str:
    task = msgspec.structs.replace(make_task(folder, choice), inherited_env=dict(inherited))
    agent = find_agent(choice.performer)
    assert isinstance(agent, CliAgent)
    ending = make_ending(task, 1)
    ending.out.write_bytes(out)
    failure = agent.judge(task, ending).failure
    assert failure is not None
    assert failure.kind is FailureKind.AUTH
    return failure.message


def test_a_missing_login_says_what_to_do(tmp_path: Path) -> None:
    claude = AgentChoice(name="claude")
    said = judged(tmp_path / "none", claude, NOT_LOGGED_IN, {})
    want = "claude is not logged in: run `claude` once and log in, or export ANTHROPIC_API_KEY. It said: Not logged in"
    assert said == want
    off = AgentChoice(name="claude", options={"pass_credentials": False})
    assert "pass_credentials is off in [agents.claude]" in judged(tmp_path / "off", off, NOT_LOGGED_IN, {})
    given = judged(tmp_path / "given", claude, NOT_LOGGED_IN, {"ANTHROPIC_API_KEY": "x"})
    assert given == "Not logged in (it was given ANTHROPIC_API_KEY)"


def test_an_empty_account_is_not_a_missing_login(tmp_path: Path) -> None:
    broke = NOT_LOGGED_IN.replace(b"Not logged in", b"Credit balance is too low").replace(b"null", b"400")
    assert judged(tmp_path, AgentChoice(name="claude"), broke, {}) == "Credit balance is too low"


def test_a_provider_without_a_key_is_said_by_its_name(tmp_path: Path) -> None:
    error = b'{"type":"error","sessionID":"s","error":{"name":"ProviderAuthError","data":{"message":"no API key"}}}\n'
    said = judged(tmp_path / "named", AgentChoice(name="opencode", model="groq/x"), error, {})
    assert "run `opencode auth login`, or export GROQ_API_KEY" in said
    assert "name a model as PROVIDER/MODEL" in judged(tmp_path / "open", AgentChoice(name="opencode"), error, {})
