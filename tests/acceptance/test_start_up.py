"""The imports of a command: `orc --help` and `orc status` must stay instant, so they may not pay for what they do not use."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from agent_orchestrator.systems import SYSTEMS
from tests.acceptance.rig import HUMAN, Rig
from tests.stores import OWN_STORE

SYSTEM = re.compile(r"agent_orchestrator\.(?:systems|runs|surfaces\.cli)\.(\w+)\.(?!about$)")
HEAVY = ("asyncio", "yaml", "apsw", "msgspec", "subprocess", "jsonschema_rs", "starlette", "uvicorn")


def _modules(rig: Rig, *arguments: str) -> set[str]:
    command = [sys.executable, "-X", "importtime", "-m", "agent_orchestrator.cli", *arguments]
    done = subprocess.run(command, cwd=rig.repo, env=rig.environment(), capture_output=True, text=True, check=False)
    return {line.rsplit("|", 1)[1].strip() for line in done.stderr.splitlines() if line.startswith("import time:")}


def _imported(rig: Rig, *arguments: str) -> set[str]:
    return _modules(rig, *arguments) & set(HEAVY)


@pytest.mark.parametrize("arguments", [["--help"], ["--version"], ["version"], ["run", "--help"], ["status", "--help"]])
def test_help_imports_nothing_that_costs(shared: Rig, arguments: list[str]) -> None:
    assert _imported(shared, *arguments) == set()


@OWN_STORE
@pytest.mark.parametrize("arguments", [["status"], ["list"], []])
def test_a_list_of_runs_imports_the_store_and_nothing_else(shared: Rig, arguments: list[str]) -> None:
    assert _imported(shared, *arguments) == {"apsw", "msgspec"}


@OWN_STORE
@pytest.mark.parametrize(
    "arguments", [["status", "over"], ["show", "over"], ["history", "over"], ["logs", "over"], ["report"], ["report", "--html"]]
)
def test_a_look_at_a_run_imports_no_event_loop_and_starts_no_program(shared: Rig, arguments: list[str]) -> None:
    assert _imported(shared, *arguments) & {"asyncio", "subprocess", "yaml"} == set()


@pytest.mark.parametrize("command", ["status", "show", "history", "logs", "approve", "pause", "resume"])
def test_no_system_is_loaded_but_the_runs_own(shared: Rig, command: str) -> None:
    found = {match[1] for name in _modules(shared, command, "over") if (match := SYSTEM.match(name)) is not None}
    assert found & set(SYSTEMS) == {"workflow"}


def test_a_list_of_runs_loads_no_system(shared: Rig) -> None:
    found = {match[1] for name in _modules(shared, "list") if (match := SYSTEM.match(name)) is not None}
    assert found & set(SYSTEMS) == set()


@OWN_STORE
@pytest.mark.parametrize("word", ["approve", "reject"])
def test_an_answer_imports_no_event_loop_and_no_agent(rig: Rig, word: str) -> None:
    rig.workflow(HUMAN)
    assert rig.run("--no-wait", "--run-id", "waits").code == 4
    modules = _modules(rig, word, "waits")
    assert "asyncio" not in modules
    assert not any(name.startswith(("agent_orchestrator.agents", "agent_orchestrator.runs.workflow")) for name in modules)
