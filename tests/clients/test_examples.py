"""Every example that names a coding agent is run with the real one, found on the PATH, and a scripted model."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from agent_orchestrator.testing.model_cast import Cast, Part
from agent_orchestrator.testing.model_server import ModelServer, Reply, Write
from tests.acceptance.examples import EXAMPLES, Example
from tests.acceptance.plays import Play, check_example, idle_patterns, play_for
from tests.acceptance.stage_files import PLAN
from tests.acceptance.stages import Home, Stages
from tests.acceptance.test_examples import LEFT_OUT
from tests.clients.conftest import missing
from tests.clients.rig import ALONE, MODELS, binary

ASKED = "orc run --workflow asking.yaml --agent claude --run-id f8c1a491 --no-wait; orc approve f8c1"
LEGACY = {"loopId": "old", "task": "fix it", "completionCriteria": "test -f fixed.txt", "currentIteration": 2}
OLD_LOOP = f"mkdir -p .aiwg/ralph; echo '{json.dumps(LEGACY)}' > .aiwg/ralph/current-loop.json"
PLAYS = [
    ("orc loop resume LOOP *", Play("small", before=OLD_LOOP, names=(("LOOP", "old"),))),
    ("orc resume f8c1 --allow-tool *", Play("small", before=ASKED)),
    ("orc run *", Play("small")),
    ("orc loop run *", Play("small")),
    ("orc swarm dispatch *", Play("small")),
    ("orc swarm run *", Play("small")),
    ("./scripts/dispatch.sh *", Play("scripts")),
    ("bd export *", Play("small")),
    ("orc phases run *", Play("small")),
    ("orc team run *", Play("small")),
    ("orc import .claude/*", Play("foreign_phases")),
    ("orc import *", Play("foreign")),
    ("* mcp add orc *", Play("small")),
]
RUN_HERE = [example for example in EXAMPLES if example.clients and example.line not in LEFT_OUT]

WORKS = Write("fixed.txt", "yes")
CRITERIA = [{"name": "it_is_good", "value": True}]


def answer(status: str, **fields: Any) -> Reply:
    return Reply({"status": status, "summary": "It is done", **fields})


def parts() -> list[Part]:
    """One for every role of the five systems, told by its prompt; the last is for whoever is left."""
    return [
        Part("project manager", "You are the project manager. Plan the work", script=[Reply({**PLAN, "summary": "One group"})]),
        Part("project manager at the end", "You are the project manager. All groups are merged", script=[answer("DONE")]),
        Part("developer", "You are the developer of the group", script=[WORKS, answer("READY_FOR_QA")]),
        Part("QA", "You are the QA expert", script=[answer("PASS")]),
        Part("tech lead", "You are the tech lead", script=[answer("APPROVED", feedback="Good")]),
        Part("planner", "Read the plan and the code before anything starts", script=[answer("READY")]),
        Part("scanner", "All phases are complete", script=[answer("CLEAN")]),
        Part("supervisor", '"AUTO_FIX" or "RE_PLAN"', script=[answer("PASS")]),
        Part("executor", '"SUCCESS"', script=[answer("SUCCESS", criteria=CRITERIA)]),
        Part("judge", "judge whether the criterion is met", script=[answer("PASS")]),
        Part("iteration", "This is iteration", script=[WORKS, answer("OK", done=True)]),
        Part("bead", "It is bead", script=[WORKS, answer("DONE")]),
        Part("task", "You work in a git worktree of this repository", script=[WORKS, answer("COMPLETED")]),
        Part("anybody", "Do your part", script=[answer("COMPLETED")]),
    ]


class Company(Cast):
    """A cast in which a part is played as often as it is asked for."""

    def _part(self, prompt: str, said: int) -> Part | None:
        return next((part for part in self.parts if all(word in prompt for word in part.words)), None)


class Installed:
    """Puts the pinned clients on the PATH of a home, and the model at the addresses that they look for it."""

    def __init__(self, model: ModelServer, name: str = "examples") -> None:
        self.company = Company(parts())
        self.url = model.add(name, self.company)

    def move_in(self, home: Home) -> None:
        """Nothing but dummy keys, and nowhere to go but 127.0.0.1."""
        for client in ("claude", "codex"):
            program = binary(client)
            assert program is not None
            (home.bin / client).symlink_to(program)  # as npm does it
        home.more = {**ALONE, "ANTHROPIC_BASE_URL": self.url, "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1"}
        (home.folder / ".codex").mkdir()
        provider = {"name": "scripted", "base_url": f"{self.url}/v1", "env_key": "CODEX_API_KEY", "wire_api": "responses"}
        limits = {"request_max_retries": 0, "stream_max_retries": 0}
        tables: dict[str, dict[str, Any]] = {
            "analytics": {"enabled": False},
            "features": {"plugins": False},
            "model_providers.scripted": {**provider, **limits},
        }
        lines = [f'model = "{MODELS["codex"]}"', 'model_provider = "scripted"']
        for name, table in tables.items():
            lines += [f"[{name}]", *(f"{key} = {json.dumps(value)}" for key, value in table.items())]
        (home.folder / ".codex" / "config.toml").write_text("\n".join(lines) + "\n")


@pytest.fixture(scope="session")
def installed(model: ModelServer) -> Iterator[Installed]:
    if (why := missing()) is not None:
        pytest.skip(why)
    made = Installed(model)
    yield made
    assert made.company.strangers == []


@pytest.fixture(scope="session")
def stages(tmp_path_factory: pytest.TempPathFactory) -> Stages:
    return Stages(tmp_path_factory.mktemp("stages"))


@pytest.mark.parametrize("example", RUN_HERE, ids=lambda example: example.line)
def test_an_example_does_what_its_page_says_with_the_real_client(example: Example, stages: Stages, installed: Installed) -> None:
    play = play_for(example, PLAYS)
    assert play is not None, f"{example.where}: {example.line}: say in PLAYS on which stage it is run"
    home = stages.home(play.stage)
    installed.move_in(home)
    check_example(home, example, play)


def test_every_pattern_has_its_line() -> None:
    assert idle_patterns(RUN_HERE, PLAYS) == []
    assert {client for example in RUN_HERE for client in example.clients} >= {"claude", "codex"}
