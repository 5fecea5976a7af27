"""Two runs in one working tree: refused in every mode, at the start and when one goes on, unless it is meant."""

from __future__ import annotations

import subprocess
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.acceptance.phases_rig import SMALL
from tests.acceptance.rig import HUMAN, Rig, wait_until

STARTS = {
    "run": ("run", "--workflow", "workflow.yaml", "--agent-command", "true"),
    "loop": ("loop", "run", "x", "--until", "true", "--agent-command", "true"),
    "team": ("team", "run", "x", "--agent-command", "true"),
    "phases": ("phases", "run", "task.md", "--agent-command", "true"),
    "swarm": ("swarm", "dispatch", "bd-1", ".", "claude", "x", "--agent-command", "true"),
}
APART = {"run": "--git-worktree", "loop": "--git-worktree", "swarm": "--branch"}


@pytest.fixture
def waiting(rig: Rig) -> str:
    """A run that waits for a person."""
    rig.workflow(HUMAN)
    (rig.repo / "task.md").write_text(SMALL)
    for command in (("add", "--all"), ("commit", "--quiet", "--message", "all")):
        subprocess.run(["git", *command], cwd=rig.repo, check=True)
    return rig.run("--no-wait", "--run-id", "first").run


@pytest.mark.parametrize("mode", STARTS)
def test_a_second_run_in_a_tree_is_refused_with_the_ways_out(rig: Rig, waiting: str, mode: str) -> None:
    refused = rig.ask(*STARTS[mode])
    assert refused.code == 2, refused
    assert f"Run first (workflow, waiting) has unfinished work in the same tree ({rig.repo});" in refused.err
    for way in ("`orc resume first`", "`orc abort first`", "--shared-tree", APART.get(mode, "")):
        assert way in refused.err
    assert [run["run_id"] for run in rig.ask("list", "--json").json["runs"]] == ["first"]


def test_who_means_it_shares_the_tree_and_is_told_with_whom(rig: Rig, waiting: str) -> None:
    shared = rig.orc(*STARTS["loop"], "--shared-tree")
    assert shared.code == 0, shared
    assert "run first (workflow, waiting) has unfinished work in the same tree" in shared.err
    assert rig.orc(*STARTS["loop"], "--git-worktree").code == 0
    assert rig.ask("abort", "first").code in (0, 1)
    assert rig.orc(*STARTS["loop"]).code == 0


def test_whoever_shares_a_tree_lets_others_go_on_in_it(rig: Rig) -> None:
    rig.play({"planning": {"until": "go"}})
    first = rig.start("run", "--workflow", "workflow.yaml", "--wrapper", str(rig.side / "wrapper.py"), "--run-id", "first")
    wait_until(lambda: rig.launches("planning"))
    assert rig.orc("pause", "first", "--now").code == 0
    assert first.end().code == 130
    given = (
        "run",
        "--workflow",
        "workflow.yaml",
        "--wrapper",
        str(rig.side / "wrapper.py"),
        "--run-id",
        "second",
        "--shared-tree",
    )
    second = rig.start(*given)
    wait_until(lambda: len(rig.launches("planning")) == 2)
    rig.open("go")
    assert rig.orc("resume", "first").code == 0
    assert second.end().code == 0


def test_a_run_goes_on_only_when_nobody_else_has_its_tree(rig: Rig) -> None:
    rig.play({"planning": {"exit": 1, "report": None}})
    assert rig.run("--run-id", "failed", "--max-attempts", "1").code == 1
    rig.workflow(HUMAN)
    assert rig.run("--run-id", "later", "--no-wait").code == 4
    refused = rig.ask("resume", "failed")
    assert (refused.code, "Run later (workflow, waiting) has unfinished work in the same tree" in refused.err) == (2, True), (
        refused
    )
    rig.play({})
    assert rig.orc("resume", "failed", "--shared-tree").code == 0
    assert rig.orc("resume", "later", "--no-wait").code == 4


def test_of_two_that_start_at_once_one_is_refused(rig: Rig) -> None:
    rig.workflow(HUMAN)

    def start(name: str) -> int:
        return rig.run("--no-wait", "--run-id", name).code

    with ThreadPoolExecutor(2) as threads:
        assert sorted(threads.map(start, ("one", "two"))) == [2, 4]


def test_a_folder_below_the_same_checkout_is_the_same_tree(rig: Rig, waiting: str) -> None:
    below = rig.repo / "below"
    below.mkdir()
    refused = rig.ask("swarm", "dispatch", "bd-2", "below", "claude", "x", "--agent-command", "true")
    assert (refused.code, "Run first" in refused.err) == (2, True), refused
