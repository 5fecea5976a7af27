"""The settings of an agent that follow the configuration when it is read again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from agent_orchestrator.agents.options import AgentSettings, read_settings, resolve_agent
from agent_orchestrator.core.effects import AgentChoice
from agent_orchestrator.errors import UsageError
from agent_orchestrator.runs.settings import Reread, reread_agents


def configured(**tables: dict[str, Any]) -> dict[str, AgentSettings]:
    return {name: read_settings(table, name) for name, table in tables.items()}


def stored(choice: AgentChoice) -> AgentChoice:
    return msgspec.json.decode(msgspec.json.encode(choice), type=AgentChoice)


def reread(choice: AgentChoice, agents: dict[str, AgentSettings]) -> Reread:
    return reread_agents({"": stored(choice)}, agents, Path("/"), lambda name, value: "KEY" in name, lambda one: one)


def test_nothing_changed_says_nothing() -> None:
    agents = configured(sh={"command": ["sh"], "pass_env": ["X"]}, claude={"model": "opus", "binary": "sh", "max_turns": 3})
    for name in ("sh", "claude"):
        assert reread(resolve_agent(AgentChoice(name=name), agents), agents) == Reread()
    assert reread(AgentChoice(name="command", options={"argv": ["sh"]}), agents) == Reread()
    assert reread(AgentChoice(name="claude", adapter="command", options={"argv": ["sh"]}), agents) == Reread()


def test_what_changed_is_taken_and_said_and_what_a_command_line_gave_stays() -> None:
    before = configured(claude={"model": "opus", "binary": "sh", "allowed_tools": ["A"], "max_turns": 3})
    chosen = resolve_agent(AgentChoice(name="claude", model="haiku", options={"max_turns": 9}), before)
    chosen = msgspec.structs.replace(chosen, options={**chosen.options, "allowed_tools": ["A", "Given"]})
    now = configured(
        claude={"model": "sonnet", "binary": "sh", "allowed_tools": ["B"], "max_turns": 4, "permission_mode": "plan"}
    )
    read = reread(chosen, now)
    assert read.changes == (
        "agent claude: allowed_tools [A, Given] → [B, Given]",
        "agent claude: permission_mode unset → plan",
    )
    agent = read.agents[""]
    assert (agent.model, agent.options["max_turns"], agent.options["allowed_tools"]) == ("haiku", 9, ["B", "Given"])
    assert reread(agent, now) == Reread(), "it is taken once"


def test_a_setting_that_is_gone_is_unset_and_a_model_of_the_configuration_follows_it() -> None:
    chosen = resolve_agent(AgentChoice(name="claude"), configured(claude={"model": "opus", "binary": "sh", "args": ["--x"]}))
    read = reread(chosen, configured(claude={"model": "sonnet", "binary": "sh"}))
    assert read.changes == ("agent claude: args [--x] → []", "agent claude: model opus → sonnet")


def test_a_choice_of_0_1_0_follows_the_configuration_but_for_its_model() -> None:
    old = AgentChoice(name="claude", model="opus", options={"allowed_tools": ["A"], "binary": "sh"})
    read = reread(old, configured(claude={"allowed_tools": ["B"], "binary": "sh", "model": "sonnet"}))
    assert read.changes == ("agent claude: allowed_tools [A] → [B]",)


def test_a_secret_is_not_taken_and_a_setting_that_the_agent_does_not_know_is_refused() -> None:
    chosen = resolve_agent(AgentChoice(name="claude"), configured(claude={"binary": "sh"}))
    read = reread(chosen, configured(claude={"binary": "sh", "env": {"A_KEY": "hidden"}}))
    assert (read.agents, len(read.notes)) == ({}, 1)
    with pytest.raises(UsageError, match="usage_counts"):
        reread(chosen, configured(claude={"binary": "sh", "usage_counts": "sum"}))
