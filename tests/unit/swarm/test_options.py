"""What can never work is refused before a run exists, in one sentence."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from agent_orchestrator.control.swarm import BeadOptions, checked_branch, prepare_bead, prepare_file, with_branches
from agent_orchestrator.errors import AgentMissing, InvalidValue, OrcError
from agent_orchestrator.systems.swarm import BeadSpec


def prepared(home: Path, bead: str = "bd-1", prompt: str = "do it", **options: Any) -> BeadSpec:
    return prepare_bead(bead, prompt, BeadOptions(**{"agent": "claude", "agent_command": "sh", **options}), home, {})


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"bead": "../x"}, "is not a valid id"),
        ({"prompt": "  "}, "The prompt is empty"),
        ({"repo": "nowhere"}, "does not exist"),
        ({"template": "nonsense"}, "There is no template 'nonsense'; there are: bug-fix, docs, feature, refactor, script"),
        ({"template": "no/such/template.md"}, "does not exist"),
        ({"variables": ("who=ada",)}, "needs a template"),
        ({"variables": ("who",)}, "NAME=VALUE"),
        ({"timeout": "soon"}, "--timeout is 'soon'"),
        ({"timeout": "nan"}, "--timeout is 'nan'"),
        ({"max_retries": "0"}, "--max-retries is '0'"),
        ({"branch": "fix/it"}, "needs a git repository"),
        ({"branch": "../it"}, "--branch is '../it'"),
        ({"agent": "nobody", "agent_command": None}, "nobody"),
        ({"agent": ":opus"}, "NAME or NAME:MODEL"),
        ({"agent_command": "'"}, "--agent-command"),
        ({"agent_command": "no-such-program-here"}, "was not found on the PATH"),
        ({"rehearse": "script.yaml"}, "exclude each other"),
    ],
)
def test_bad_input_is_one_sentence(given: dict[str, Any], said: str, tmp_path: Path) -> None:
    with pytest.raises(OrcError) as raised:
        prepared(tmp_path, **given)
    assert said in str(raised.value)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    "branch", ["-x", "a..b", "a b", "a//b", "a.lock", "/a", "a/", ".a", "a~1", "a^", "a:b", "a\\b", "", "x" * 201]
)
def test_a_branch_that_git_or_a_folder_cannot_have_is_refused(branch: str) -> None:
    with pytest.raises(InvalidValue):
        checked_branch(branch)


def test_the_agent_keeps_its_name_whoever_stands_in_for_it(tmp_path: Path) -> None:
    bead = prepared(tmp_path, agent="codex:gpt-5.3-codex")
    assert (bead.agent.name, bead.agent.model, bead.agent.performer) == ("codex", "gpt-5.3-codex", "command")


def test_a_program_given_by_a_relative_path_is_looked_for_in_the_repository_of_the_bead(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    (tmp_path / "one" / "agent.sh").write_text("#!/bin/sh\n")
    with pytest.raises(AgentMissing, match="it is not executable"):
        prepared(tmp_path, repo="one", agent_command="./agent.sh")
    (tmp_path / "one" / "agent.sh").chmod(0o755)
    assert prepared(tmp_path, repo="one", agent_command="./agent.sh").agent.options == {"argv": ["./agent.sh"]}
    beads = tmp_path / "beads.jsonl"
    beads.write_text('{"id": "a", "prompt": "x", "repo": "one"}\n{"id": "b", "prompt": "x", "repo": "two"}\n')
    with pytest.raises(AgentMissing, match=r"there is no such file in .*/two"):
        prepare_file(beads, BeadOptions(agent_command="./agent.sh"), tmp_path, {})


def test_each_bead_gets_a_branch_of_its_own_unless_it_names_one(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "--quiet"], cwd=tmp_path, check=True)
    beads = (prepared(tmp_path), prepared(tmp_path, bead="bd-2", branch="mine"))
    assert [bead.branch for bead in with_branches(beads, "work/")] == ["work/bd-1", "mine"]


def test_the_head_of_a_template_may_only_say_how_to_verify(tmp_path: Path) -> None:
    (tmp_path / "own.md").write_text("---\nverify: make\n---\n{prompt}")
    assert prepared(tmp_path, template=str(tmp_path / "own.md")).verify == "make"
    assert prepared(tmp_path, template=str(tmp_path / "own.md"), verify="true").verify == "true"
    (tmp_path / "own.md").write_text("---\nverfy: make\n---\n{prompt}")
    with pytest.raises(OrcError, match="unknown field `verfy`"):
        prepared(tmp_path, template=str(tmp_path / "own.md"))
    (tmp_path / "own.md").write_text("no place for it")
    with pytest.raises(OrcError, match="the prompt would be lost"):
        prepared(tmp_path, template=str(tmp_path / "own.md"))
