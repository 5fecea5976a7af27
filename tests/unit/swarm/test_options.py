"""The options that can never work are refused before a run exists, in one sentence."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from agent_orchestrator.errors import AgentMissing, InvalidSpec, InvalidValue, OrcError, UsageError
from agent_orchestrator.runs.swarm.options import (
    DispatchOptions,
    SwarmOptions,
    checked_branch,
    prepare_bead,
    prepare_file,
    with_branches,
)
from agent_orchestrator.systems.swarm.spec import BeadSpec

NOW_US = 1_760_000_000_000_000


def prepared(home: Path, bead: str = "bd-1", prompt: str = "do it", **options: Any) -> BeadSpec:
    given = DispatchOptions(**{"bead": bead, "prompt": prompt, "agent": "claude", "agent_command": "sh", **options})
    return prepare_bead(given, home).spec.beads[0]


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
        ({"branch": ""}, "--branch is ''"),
        ({"template": "feature", "variables": ("prompt=other",)}, "{prompt} of a template is the bead's own"),
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
    argv = [str(tmp_path / "one" / "agent.sh")]  # also where the bead works in a worktree
    assert prepared(tmp_path, repo="one", agent_command="./agent.sh").agent.options == {"argv": argv}
    beads = tmp_path / "beads.jsonl"
    beads.write_text('{"id": "a", "prompt": "x", "repo": "one"}\n{"id": "b", "prompt": "x", "repo": "two"}\n')
    with pytest.raises(AgentMissing, match=r"there is no such file in .*/two"):
        prepare_file(SwarmOptions(file=str(beads), agent_command="./agent.sh"), tmp_path, NOW_US, {})


def _commit(repo: Path) -> None:
    identity = ("-c", "user.name=x", "-c", "user.email=x@example.org")
    subprocess.run(["git", "init", "--quiet"], cwd=repo, check=True)
    subprocess.run(["git", "symbolic-ref", "HEAD", "refs/heads/main"], cwd=repo, check=True)
    subprocess.run(["git", *identity, "commit", "--quiet", "--allow-empty", "-m", "one"], cwd=repo, check=True)


def test_a_branch_needs_a_commit_to_start_from_and_nobody_else_on_it(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "--quiet"], cwd=tmp_path, check=True)
    with pytest.raises(UsageError, match="needs a commit to start from"):
        prepared(tmp_path, branch="mine")
    _commit(tmp_path)
    with pytest.raises(UsageError, match=r"--branch main is the branch that .* is on itself"):
        prepared(tmp_path, branch="main")
    with pytest.raises(InvalidValue, match="--branch is ''"):
        with_branches((prepared(tmp_path),), "")
    assert prepared(tmp_path, branch="mine").branch == "mine"


def test_a_fault_of_a_file_names_its_line_its_bead_and_its_key(tmp_path: Path) -> None:
    faulty = {
        '"timeout": "soon"': "timeout is 'soon': it must be a positive duration such as 90, 90s, 10m or 2h",
        '"max_retries": 0': "max_retries is 0: it must be a whole number, at least 1",
        '"priority": -1': "priority is -1: it must be a whole number, at least 0",
        '"branch": "a b"': "branch is 'a b': it must be a branch name such as fix/login: letters, digits and . _ / + @ = -",
        '"branch": "mine"': f"branch mine needs a git repository, and {tmp_path} is none; run `git init` and commit",
        '"agent": ":"': "agent is ':': it must be NAME or NAME:MODEL, as in claude:opus",
        '"repo": "nowhere"': f"The repository {tmp_path}/nowhere does not exist; check the path",
    }
    file = tmp_path / "beads.jsonl"
    file.write_text("".join(f'{{"id": "b{at}", "prompt": "x", {key}}}\n' for at, key in enumerate(faulty)))
    with pytest.raises(InvalidSpec) as raised:
        prepare_file(SwarmOptions(file=str(file), agent_command="sh"), tmp_path, NOW_US, {})
    said = str(raised.value).splitlines()
    assert said == [f"{file}:{at + 1}: bead b{at}: {text}" for at, text in enumerate(faulty.values())]
    wrong: list[dict[str, Any]] = [{"timeout": "soon"}, {"max_retries": "0"}, {"template": "none"}, {"repo": "nowhere"}]
    for options in wrong:
        with pytest.raises(UsageError) as refused:
            prepare_file(SwarmOptions(file=str(file), agent_command="sh", **options), tmp_path, NOW_US, {})
        assert str(file) not in str(refused.value), "it is the command line's fault"


def test_each_bead_gets_a_branch_of_its_own_unless_it_names_one(tmp_path: Path) -> None:
    _commit(tmp_path)
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
