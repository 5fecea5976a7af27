"""A bare task: `orc run "…"` with no file written by hand finds its workflow, its check and its agent, and says which."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.acceptance.rig import Rig

AGENT = """#!/bin/sh
cat >"$0.prompt.$ITERATION"
if [ "$ITERATION" = 0 ]; then echo wrong >greeting.txt; else echo hello >greeting.txt; fi
echo '{"status": "COMPLETED", "summary": "greeted"}' >"$REPORT_PATH"
"""
CHECK = "grep -q hello greeting.txt"


class TaskRig(Rig):
    """A repository without files, and beside it an agent that is right in its second iteration."""

    def __init__(self, repo: Path) -> None:
        super().__init__(repo)
        for name in ("prompt.md", "workflow.yaml"):
            (repo / name).unlink()
        self.agent = self.side / "agent.sh"
        self.agent.write_text(AGENT)
        self.agent.chmod(0o755)
        self.clean = {"PATH": f"{self.side}/bin:/usr/bin:/bin", "HOME": str(self.side)}
        """An environment with the agents of `install` and no others."""

    def install(self, *names: str) -> None:
        """Put programs with the names of clients on the PATH."""
        (self.side / "bin").mkdir(exist_ok=True)
        for name in names:
            (self.side / "bin" / name).write_text("#!/bin/sh\necho 1.0\n")
            (self.side / "bin" / name).chmod(0o755)

    def git(self, *arguments: str) -> str:
        return subprocess.run(["git", *arguments], cwd=self.repo, check=True, capture_output=True, text=True).stdout.strip()


@pytest.fixture
def rig(repo: Path) -> TaskRig:
    return TaskRig(repo)


@pytest.fixture
def empty(tmp_path: Path) -> TaskRig:
    """A repository without a commit."""
    repo = tmp_path / "repo"
    repo.mkdir()
    subprocess.run(["git", "init", "--quiet", "--initial-branch=main"], cwd=repo, check=True)
    return TaskRig(repo)


def keys_unset() -> dict[str, str]:
    """No key of any vendor, whatever the machine has."""
    return {name: "" for name in os.environ if name.endswith(("_API_KEY", "_TOKEN"))}


def test_a_task_is_coded_and_checked_in_a_worktree_and_what_fails_the_check_goes_back(rig: TaskRig) -> None:
    done = rig.orc("run", "greet the world", "--check", CHECK, "--agent-command", str(rig.agent), "--run-id", "t1")
    assert done.code == 0, done
    assert "check     check failed with exit code 1" in done.out
    assert "loops back to code" in done.out
    assert rig.git("show", "orc/t1:greeting.txt") == "hello"
    assert rig.git("log", "-1", "--format=%s", "orc/t1") == "greet the world: completed"
    assert not (rig.repo / "greeting.txt").exists()
    assert rig.git("status", "--porcelain") == ""
    first, second = (Path(f"{rig.agent}.prompt.{number}").read_text() for number in (0, 1))
    assert first.startswith("greet the world\n")
    assert f"    {CHECK}\n" in first
    assert f"check command: {CHECK}" in second
    assert rig.orc("list", "--json").json["runs"][0]["name"] == "greet the world"
    assert rig.orc("report", "--json").json["finished"]["entries"][0]["ways"] == ["orc merge t1", "orc diff t1"]
    assert rig.orc("merge", "t1").code == 0
    assert (rig.repo / "greeting.txt").read_text() == "hello\n"
    assert rig.orc("report", "--json").json["finished"]["entries"][0]["ways"] == ["orc show t1"]


def test_a_repository_without_a_commit_gets_an_empty_one_and_one_with_files_is_told_to_commit(empty: TaskRig) -> None:
    run = ("run", "greet", "--check", CHECK, "--agent-command", str(empty.agent))
    done = empty.orc(*run, "--run-id", "t1")
    assert done.code == 0, done
    assert "the repository had no commit: an empty one was made to start from." in done.err
    assert empty.git("log", "--format=%s", "main") == "Begin"
    assert empty.git("diff", "--name-only", "main", "orc/t1") == "greeting.txt"


def test_files_that_nobody_committed_are_not_left_behind_silently(empty: TaskRig) -> None:
    (empty.repo / "app.py").write_text("x = 1\n")
    refused = empty.orc("run", "greet", "--check", CHECK, "--agent-command", str(empty.agent))
    assert refused.code == 2
    assert "A worktree needs a commit to start from, and" in refused.err
    assert "commit first." in refused.err
    assert empty.orc("list", "--json").json["runs"] == []


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), 'What is to be done? Give a task, as in `orc run "fix the login bug"`, or --workflow FILE.'),
        (("greet",), "Nothing would verify the work: no check is configured, and none was recognised in "),
        (("greet", "--check", " "), "--check is empty: give a command, or --no-check to go without one."),
        (("greet", "--check", "true", "--no-check"), "--check and --no-check exclude each other; give one."),
        (("--check", "true"), "--check and --no-check are for a TASK; a workflow file says itself what is checked."),
        (("  ",), "TASK is '  ': it must be what is to be done, in words."),
        (("flow.yaml",), "flow.yaml is a file: `orc run --workflow flow.yaml` runs it."),
    ],
)
def test_what_is_missing_is_said_in_a_sentence(rig: TaskRig, words: tuple[str, ...], said: str) -> None:
    (rig.repo / "flow.yaml").write_text("steps: []\n")
    refused = rig.ask("run", *words, "--agent-command", "true")
    assert refused.code == 2
    assert said in refused.err
    assert len(refused.err.splitlines()) == 1


def test_without_a_check_it_is_said_that_nothing_is_verified(rig: TaskRig) -> None:
    done = rig.orc("run", "greet", "--no-check", "--agent-command", str(rig.agent), "--run-id", "t1")
    assert done.code == 0, done
    assert "orc: no check: nothing verifies what the agent does." in done.err
    assert list(rig.state("t1")["steps"]) == ["code"]


def test_a_detected_check_is_named_with_the_reason_and_a_configured_one_wins(rig: TaskRig) -> None:
    (rig.repo / "Makefile").write_text("build:\n\ttrue\ncheck: build\n\tgrep -q hello greeting.txt\n")
    rig.git("add", "Makefile")
    rig.git("commit", "-qm", "A Makefile")
    done = rig.orc("run", "greet", "--agent-command", str(rig.agent), "--run-id", "t1")
    assert done.code == 0, done
    said = "orc: check: make check (detected: its Makefile has a target `check`); --check or `run.check` says otherwise"
    assert said in done.err.splitlines()
    (rig.repo / ".orc.toml").write_text(f'[run]\ncheck = "{CHECK}"\n')
    planned = rig.orc("run", "greet", "--agent-command", str(rig.agent), "--plan")
    assert f"orc: check: {CHECK} ({rig.repo}/.orc.toml:2)" in planned.err.splitlines()
    assert CHECK in planned.out


def test_the_agent_that_is_installed_and_logged_in_works(rig: TaskRig) -> None:
    run = ("run", "greet", "--no-check", "--plan")
    env = {**keys_unset(), **rig.clean}
    nobody = rig.orc(*run, env=env)
    assert nobody.code == 3
    assert "No coding agent was found on the PATH (claude, codex, gemini, opencode): install one" in nobody.err
    rig.install("codex", "claude")
    unknown = rig.orc(*run, env=env)
    assert unknown.code == 3
    assert "No coding agent that is installed is logged in (claude: run `claude` once and log in" in unknown.err
    keyed = rig.orc(*run, env={**env, "CODEX_API_KEY": "dummy-key-of-a-test"})
    assert keyed.code == 0
    assert "orc: agent: codex (the only one that is installed and logged in)" in keyed.err.splitlines()
    (rig.side / ".claude").mkdir()
    (rig.side / ".claude" / ".credentials.json").write_text("{}")
    both = rig.orc(*run, env={**env, "CODEX_API_KEY": "dummy-key-of-a-test"})
    assert "orc: agent: claude (codex could work, too: --agent or `run.agent` chooses)" in both.err.splitlines()
    assert f"; logged in ({rig.side}/.claude/.credentials.json)" in rig.orc("doctor", env=env).out


def test_the_repositorys_own_workflow_takes_the_task_and_the_check(rig: TaskRig) -> None:
    (rig.repo / "flows").mkdir()
    (rig.repo / "flows" / "own.yaml").write_text(
        "steps:\n  - {id: first, agent: coder, prompt: own.md}\n"
        "  - {id: second, agent: coder, prompt: own.md, needs: [first], check: 'set -e; {check}', loop_back_to: first}\n"
    )
    (rig.repo / "flows" / "own.md").write_text("Please: {task}\n")
    (rig.repo / ".orc.toml").write_text('[run]\nworkflow = "flows/own.yaml"\nworktree = false\n')
    done = rig.orc("run", "greet", "--check", CHECK, "--agent-command", str(rig.agent), "--run-id", "t1")
    assert done.code == 0, done
    assert f"orc: workflow: flows/own.yaml ({rig.repo}/.orc.toml:2)" in done.err.splitlines()
    assert list(rig.state("t1")["steps"]) == ["first", "second"]
    assert (rig.repo / "greeting.txt").read_text() == "hello\n"
    assert f"check `set -e; {CHECK}` exited with code 1" in done.out
    assert Path(f"{rig.agent}.prompt.1").read_text().startswith("Please: greet\n")


def test_a_task_that_goes_on_is_the_same_task(rig: TaskRig) -> None:
    run = ("run", "greet", "--check", CHECK, "--agent-command", str(rig.agent), "--max-iterations", "1", "--run-id", "t1")
    assert rig.orc(*run).code == 5
    again = rig.orc("resume", "t1", "--max-iterations", "3")
    assert again.code == 0, again
    assert "changed since the run began" not in again.err


def test_a_script_that_came_with_a_clone_does_not_replace_the_built_in_one(rig: TaskRig) -> None:
    script = rig.repo / ".agents" / "prompts" / "check.sh"
    script.parent.mkdir(parents=True)
    script.write_text(f"touch {rig.side}/evil\n")
    assert rig.orc("run", "greet", "--check", CHECK, "--agent-command", str(rig.agent)).code == 0
    assert not (rig.side / "evil").exists()


def test_a_task_outside_of_git_is_done_in_place_and_that_is_said(tmp_path: Path) -> None:
    (tmp_path / "plain").mkdir()
    rig = TaskRig(tmp_path / "plain")
    done = rig.orc("run", "greet", "--check", CHECK, "--agent-command", str(rig.agent))
    assert done.code == 0, done
    assert "is no git repository: the agent works in it directly" in done.err
    assert (rig.repo / "greeting.txt").read_text() == "hello\n"


def test_init_puts_the_task_into_the_prompts_and_names_the_next_command_with_an_agent_that_is_there(rig: TaskRig) -> None:
    env = {**keys_unset(), **rig.clean}
    first = rig.orc("init", "--task", "log in with a token", env=env)
    assert first.code == 0, first
    assert "Run it with an agent:     orc run --workflow workflow.yaml --agent-command 'my-agent --yes'" in first.out
    assert "Or without these files:   orc run 'log in with a token'" in first.out
    for name in ("plan", "review"):
        assert "\n\nlog in with a token\n\n" in (rig.repo / "prompts" / f"{name}.md").read_text()
    rig.install("gemini")
    again = rig.orc("init", "--json", env={**env, "GEMINI_API_KEY": "dummy-key-of-a-test"}).json
    assert again["next"] == "orc run --workflow workflow.yaml --agent gemini"
    assert "prompts/plan.md" in again["kept"]
    played = rig.orc("run", "--workflow", "workflow.yaml", "--rehearse", "rehearsal.yaml")
    assert played.code == 0, played
