"""The clients as a person uses them on an agent's session: the same rules and environment, and nothing of a headless start."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import msgspec
import pytest

from agent_orchestrator.agents import ADAPTERS, find_agent
from agent_orchestrator.agents.adapter import Interactive, Invocation
from agent_orchestrator.agents.cli import CliAgent
from agent_orchestrator.core.effects import AgentChoice
from agent_orchestrator.testing.agents import make_task

CLIENTS = ("claude", "codex", "gemini", "opencode")
HEADLESS = {"-p", "--output-format", "--format", "--json", "--json-schema", "--output-schema", "run", "exec", "-"}
SESSION = {"claude": "--resume", "codex": "resume", "gemini": "--resume", "opencode": "--session"}


def plan(folder: Path, name: str) -> tuple[Invocation, Invocation]:
    """The client for a person, and for the agent alone."""
    task = make_task(folder, AgentChoice(name=name, model="m-1", options={"args": ["--own"], "env": {"OWN": "1"}}))
    task = msgspec.structs.replace(task, effect=msgspec.structs.replace(task.effect, session="s-1"))
    task.prompt.write_text("work")
    agent = find_agent(name)
    assert isinstance(agent, CliAgent)
    return agent.plan_takeover(task), agent.plan(task)


@pytest.mark.parametrize("name", CLIENTS)
def test_a_person_gets_the_session_with_the_agents_model_settings_and_environment(name: str, tmp_path: Path) -> None:
    person, alone = plan(tmp_path, name)
    words = list(person.argv)
    assert {(SESSION[name], "s-1"), ("--model", "m-1")} <= set(pairwise(words))
    assert "--own" in words
    assert not HEADLESS & set(words)
    assert (person.env, person.keeps) == (alone.env, alone.keeps)
    assert person.stdin is None


def test_only_clients_with_sessions_can_be_taken_over() -> None:
    assert [name for name in ADAPTERS if isinstance(find_agent(name), Interactive)] == list(CLIENTS)
