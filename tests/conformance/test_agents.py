"""Every adapter in agents/ keeps the contract; a new file there is picked up by itself."""

from __future__ import annotations

import os
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import agent_orchestrator.agents as agents
from agent_orchestrator.agents import ADAPTERS, find_agent
from agent_orchestrator.core.effects import AgentChoice
from agent_orchestrator.errors import UsageError
from agent_orchestrator.testing.agents import check_agent

MODULES = sorted(file.stem for file in Path(agents.__path__[0]).glob("*.py") if file.stem != "__init__")
FOUND = [name for name in MODULES if hasattr(import_module(f"agent_orchestrator.agents.{name}"), "AGENT")]


def startable(name: str, folder: Path) -> AgentChoice:
    """A choice of that adapter which could start here."""
    program = folder / "agent.py"
    program.write_text("print('hello')\n")
    script = folder / "script.yaml"
    script.write_text("- step: '*'\n  report: {status: COMPLETED}\n")
    options: dict[str, dict[str, Any]] = {
        "wrapper": {"path": str(program), "args": ["--fast"]},
        "command": {"argv": [sys.executable, str(program)]},
        "scripted": {"script": str(script)},
        **{key: {"binary": sys.executable, "args": ["--fast"]} for key in ("claude", "codex", "gemini", "opencode")},
    }
    return AgentChoice(name=name, model="big", options=options.get(name, {}))


def test_the_registry_lists_exactly_the_adapters_in_the_folder() -> None:
    assert list(ADAPTERS) == FOUND


@pytest.mark.parametrize("name", FOUND)
def test_the_adapter_keeps_the_contract(name: str, tmp_path: Path) -> None:
    check_agent(find_agent(name), startable(name, tmp_path), tmp_path, os.environ)


def test_an_unknown_agent_is_refused_with_the_known_ones() -> None:
    with pytest.raises(
        UsageError, match="no agent 'gpt9'; there are: claude, codex, command, gemini, opencode, scripted, shell, wrapper"
    ):
        find_agent("gpt9")
