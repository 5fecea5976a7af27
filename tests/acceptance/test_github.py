"""`--pr` in every mode that leaves branches, and `orc github watch`, with the real `gh`: one run and one pull request each."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.acceptance import finish_rig
from tests.acceptance.finish_rig import KILLED, git
from tests.acceptance.github import PULLS, GitHub, Published
from tests.acceptance.loop_rig import LoopRig
from tests.acceptance.phases_rig import PhasesRig
from tests.acceptance.rig import ROOT, Result, Rig, wait_until
from tests.acceptance.swarm_rig import SwarmRig

pytestmark = pytest.mark.skipif(
    shutil.which("gh") is None or shutil.which("openssl") is None, reason="gh and openssl are needed; `make test` installs them"
)

WRITER = "sh -c 'cat >made.txt'"
WATCH = ("github", "watch", "--label", "orc", "--once")
OPTIONS = ("--", "--agent-command", WRITER, "--check", "test -e made.txt", "--sandbox", "none")


@pytest.fixture
def github(tmp_path: Path) -> Iterator[GitHub]:
    server = GitHub(tmp_path / "server")
    yield server
    server.close()


@pytest.fixture
def thing(repo: Path, github: GitHub, tmp_path: Path) -> Published:
    """A repository with a commit and a remote."""
    rig = Rig(repo)
    finish_rig.begin(repo)
    return Published(rig, github, tmp_path)


def _workflow(repo: Path) -> tuple[Rig, tuple[str, ...]]:
    return Rig(repo), ("run", "make it", "--agent-command", WRITER, "--check", "test -e made.txt", "--issue-number", "7")


def _loop(repo: Path) -> tuple[Rig, tuple[str, ...]]:
    rig = LoopRig(repo)
    rig.do("touch done")
    return rig, tuple(rig.loop_arguments())


def _phases(repo: Path) -> tuple[Rig, tuple[str, ...]]:
    rig = PhasesRig(repo)
    return rig, tuple(rig.arguments("--yes"))


def _swarm(repo: Path) -> tuple[Rig, tuple[str, ...]]:
    rig = SwarmRig(repo)
    rig.do("echo a >a.txt", "a")
    rig.beads({"id": "a", "prompt": "x"})
    return rig, tuple(rig.run_arguments("--max-agents", "1", "--branch", "work"))


MODES = {"workflow": _workflow, "loop": _loop, "phases": _phases, "swarm": _swarm}


@pytest.mark.parametrize("mode", sorted(MODES))
def test_a_run_that_is_asked_to_opens_its_pull_request_when_it_has_completed(
    mode: str, repo: Path, github: GitHub, tmp_path: Path
) -> None:
    rig, arguments = MODES[mode](repo)
    finish_rig.begin(repo)
    alone = rig.orc(*arguments, "--pr")
    assert (alone.code, "has no remote to push to" in alone.err) == (3, True), alone
    thing = Published(rig, github, tmp_path)
    done = thing.orc(*arguments, "--pr")
    assert done.code == 0, done
    assert "pull request: https://localhost/ada/thing/pull/1 (" in done.err, done
    (made,) = github.pulls
    assert [made["head"]] == thing.pushed()
    assert ("Fixes #7" in made["body"]) == (mode == "workflow")


def _completed(thing: Published, run: str) -> Callable[[], bool]:
    return lambda: thing.rig.ask("status", run, "--json").json["status"] == "completed"


def _labels(github: GitHub) -> dict[int, list[str]]:
    return {number: issue["labels"] for number, issue in github.issues.items()}


def test_an_issue_becomes_one_run_and_one_pull_request(thing: Published, github: GitHub) -> None:
    github.open_issue(7, "Greet people", "Write {run_id} and `$(id)` into made.txt.")
    github.put_label(7, "orc", "ada", 1)
    taken = thing.orc(*WATCH, *OPTIONS)
    assert (taken.code, taken.out) == (0, "issue 7: run issue-7 started: Greet people\n"), taken
    assert _labels(github) == {7: ["orc-running"]}
    wait_until(lambda: github.pulls)
    wait_until(_completed(thing, "issue-7"))
    told = git(thing.remote, "show", "orc/issue-7:made.txt")
    assert "Write {run_id} and `$(id)` into made.txt." in told
    assert "This is issue #7 of ada/thing." in told
    github.issues[7]["labels"].append("orc")  # Our own labels start nothing, and neither does the same one once more.
    again = thing.orc(*WATCH, *OPTIONS)
    assert again.code == 0, again
    assert _labels(github) == {7: ["orc-done"]}
    (made,) = github.pulls
    assert (made["head"], made["title"], "Fixes #7" in made["body"]) == ("orc/issue-7", "Greet people", True), made
    assert [run["run_id"] for run in thing.rig.ask("list", "--json").json["runs"]] == ["issue-7"]


def test_an_issue_that_nobody_with_a_say_has_labelled_as_it_is_starts_nothing(thing: Published, github: GitHub) -> None:
    for number in range(1, 6):
        github.open_issue(number, f"issue {number}", "please")
    github.put_label(1, "orc", "mallory", 1)
    github.put_label(2, "orc", "ada", 1)
    github.edit(2, "rm -rf /", 2)
    github.put_label(3, "orc", "ada", 1)
    github.rename(3, "something else", 2)
    github.put_label(4, "orc", "ghost", 1)
    github.issues[5]["labels"].append("orc")
    looked = thing.orc(*WATCH, *OPTIONS)
    assert looked.code == 0, looked
    assert [line.split(", who")[0].split(";")[0] for line in looked.out.splitlines()] == [
        "issue 1: no run: mallory",
        "issue 2: no run: it was changed after ada had put the label orc on it",
        "issue 3: no run: it was changed after ada had put the label orc on it",
        "issue 4: no run: ghost",
        "issue 5: no run: nobody is known to have put the label orc on it",
    ]
    assert set(map(tuple, _labels(github).values())) == {("orc-refused",)}
    assert thing.rig.ask("list", "--json").json["runs"] == []
    github.put_label(2, "orc", "ada", 3)
    thing.orc(*WATCH, *OPTIONS)
    wait_until(lambda: github.pulls)
    wait_until(_completed(thing, "issue-2"))


def test_an_issue_whose_run_cannot_start_holds_up_no_other(thing: Published, github: GitHub) -> None:
    for number in (1, 2):
        github.open_issue(number, "Greet people", "Write it.")
        github.put_label(number, "orc", "ada", 1)
    looked = thing.orc(*WATCH, "--", "--agent", "nobody", "--check", "true")
    assert looked.code == 3, looked
    assert [line.split(":")[0] for line in looked.out.splitlines()] == ["issue 1", "issue 2"]
    assert _labels(github) == {1: ["orc"], 2: ["orc"]}, "they are tried again"


def _watch_killed(thing: Published, at: int) -> bool:
    done = subprocess.run(
        [sys.executable, "-c", KILLED, *WATCH, *OPTIONS],
        cwd=thing.rig.repo,
        env=thing.rig.environment({"KILLED_AT": str(at), **thing.env}),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode in (0, -9), done
    return done.returncode == -9


def test_there_is_one_run_and_one_pull_request_whatever_is_killed(thing: Published, github: GitHub) -> None:
    github.open_issue(7, "Greet people", "Write it.")
    github.put_label(7, "orc", "ada", 1)
    at = 1
    while _watch_killed(thing, at):
        at += 1
    assert at > 5, "it was killed before each question, and before and after the label was moved"
    wait_until(_completed(thing, "issue-7"))
    wait_until(lambda: github.pulls)
    assert thing.orc(*WATCH, *OPTIONS).code == 0
    assert _labels(github) == {7: ["orc-done"]}
    assert len(github.pulls) == github.seen.count(f"POST {PULLS}") == 1
    assert [run["run_id"] for run in thing.rig.ask("list", "--json").json["runs"]] == ["issue-7"]


def test_a_failed_issue_says_so_and_is_tried_again_when_asked(thing: Published, github: GitHub) -> None:
    github.open_issue(7, "Greet people", "Write it.")
    github.put_label(7, "orc", "ada", 1)
    check = ("--check", f"test -e {thing.rig.side / 'fine'}", "--max-iterations", "1", "--sandbox", "none")
    options = ("--", "--agent-command", WRITER, *check)
    assert thing.orc(*WATCH, *options).code == 0
    wait_until(lambda: thing.rig.ask("status", "issue-7", "--json").json["status"] not in ("running", "waiting"))
    failed = thing.orc(*WATCH, *options)
    assert "why: orc show issue-7" in failed.out, failed
    assert (_labels(github), github.pulls) == ({7: ["orc-failed"]}, [])
    thing.rig.open("fine")
    github.put_label(7, "orc", "ada", 2)
    again = thing.orc(*WATCH, *options)
    assert again.out.startswith("issue 7: tries again: run issue-7, which is"), again
    wait_until(lambda: github.pulls)


def test_mistakes_are_said_in_one_sentence(thing: Published, github: GitHub) -> None:
    def said(*arguments: str) -> tuple[int, str]:
        done: Result = thing.orc("github", "watch", "--once", *arguments)
        return done.code, done.err

    assert said()[0] == 2
    assert said("--label", "a,b")[0] == 2
    assert said("--label", "orc", "--every", "soon")[0] == 2
    assert said("--label", "orc", "--remote", "nope")[0] == 2
    thing.env["GH_ENTERPRISE_TOKEN"] = ""
    code, err = said("--label", "orc")
    assert (code, len(err.splitlines())) == (3, 1), err
    git(thing.rig.repo, "remote", "remove", "origin")
    assert "has no remote" in said("--label", "orc")[1]


def _action() -> Any:
    return yaml.safe_load((ROOT / "action.yml").read_text("utf-8"))


def test_nothing_that_is_put_into_the_action_becomes_a_part_of_a_script() -> None:
    steps = _action()["runs"]["steps"]
    assert [step for step in steps if "${{" in step.get("run", "")] == []
    used = {value for step in steps for value in {**step.get("env", {}), **step.get("with", {})}.values()}
    assert {f"${{{{ inputs.{name} }}}}" for name in _action()["inputs"]} <= used


def test_the_action_runs_the_task_and_tells_its_outcome(thing: Published, github: GitHub, tmp_path: Path) -> None:
    script = next(step["run"] for step in _action()["runs"]["steps"] if step.get("id") == "run")
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "orc").write_text(f'#!/bin/sh\nexec {sys.executable} -m agent_orchestrator.cli "$@"\n')
    (programs / "orc").chmod(0o755)
    (tmp_path / "home" / "config" / "orc").mkdir(parents=True)
    (tmp_path / "home" / "config" / "orc" / "config.toml").write_text('[agents.mine]\ncommand = ["sh", "-c", "cat >made.txt"]\n')
    given = {"TASK": "greet; exit 7", "AGENT": "mine", "CHECK": "test -e made.txt", "ISSUE_NUMBER": "7", "PR": "true"}
    files = {name: str(tmp_path / name) for name in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY")}
    env = thing.rig.environment({**thing.env, **given, **files, "BUDGET_USD": "", "OPTIONS": "--sandbox\nnone\n"})
    env |= {"RUNNER_TEMP": str(tmp_path), "PATH": f"{programs}:{env['PATH']}"}
    done = subprocess.run(["bash", "-e", "-c", script], cwd=thing.rig.repo, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done
    told = dict(line.split("=", 1) for line in (tmp_path / "GITHUB_OUTPUT").read_text().splitlines())
    assert told["status"] == "completed"
    assert told["run-id"] in (tmp_path / "GITHUB_STEP_SUMMARY").read_text()
    assert "Fixes #7" in github.pulls[0]["body"]
