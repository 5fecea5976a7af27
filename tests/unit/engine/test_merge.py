"""A merge as the engine performs it: tested on the merged tree before it lands, found again after a crash."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import msgspec
import pytest

from agent_orchestrator.core.effects import Merge
from agent_orchestrator.core.inputs import MergeVerdict, Pause
from agent_orchestrator.engine.engine import Engine, World
from agent_orchestrator.git.merges import GitMerges
from agent_orchestrator.store.port import StoredRun
from agent_orchestrator.testing.world import LaunchCourse
from tests.unit.engine.rig import Rig, jump, named

AT_US = 1_750_000_000_000_000


def git(repo: Path, *arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=repo, check=True, capture_output=True, text=True).stdout.strip()


class MergeRig(Rig):
    """A rig whose home is a real repository with a branch to merge; checks are simulated programs."""

    def __init__(self, folder: Path, part: LaunchCourse | None = None) -> None:
        super().__init__(folder, lambda effect: part or LaunchCourse(5.0))
        git(self.home, "init", "--quiet", "--initial-branch=main")
        git(self.home, "commit", "--quiet", "--allow-empty", "--message", "First")
        git(self.home, "checkout", "--quiet", "-b", "feature")
        (self.home / "a.py").write_text("a\n")
        git(self.home, "add", "--all")
        git(self.home, "commit", "--quiet", "--message", "Work")
        git(self.home, "checkout", "--quiet", "main")

    def world(self) -> World:
        return msgspec.structs.replace(super().world(), merges=GitMerges())

    def merging(self, check: str | None = "make test", launch: int = 1, **more: Any) -> StoredRun:
        effect = Merge(
            id=named("merge", "merge", launch=launch), unit="merge", branch="feature", into="main",
            message="Merge feature", at_us=AT_US, check=check, **more,
        )  # fmt: skip
        return self.toys(effect)

    def outcome(self, run: StoredRun) -> Any:
        return self.state(run).outcomes["merge"]

    @property
    def tip(self) -> str:
        return git(self.home, "rev-parse", "main")


async def _leave(engine: Engine) -> None:
    await jump(engine, 1)
    engine.leave()


def test_a_merge_without_a_check_lands_at_once(tmp_path: Path) -> None:
    rig = MergeRig(tmp_path)
    run = rig.merging(check=None)
    rig.drive(run)
    assert (rig.outcome(run).verdict, rig.outcome(run).commit) == (MergeVerdict.LANDED, rig.tip)
    assert rig.machine.starts == []
    assert (rig.home / "a.py").exists()


def test_the_check_runs_on_the_merged_tree_before_anything_lands(tmp_path: Path) -> None:
    rig = MergeRig(tmp_path)
    run, before = rig.merging(), rig.tip
    seen: list[tuple[str, bool]] = []
    begin = rig.machine.begin
    rig.machine.begin = lambda order: (seen.append((rig.tip, (order.cwd / "a.py").exists())), begin(order))[1]  # type: ignore[method-assign,func-returns-value]
    rig.drive(run)
    assert seen == [(before, True)]
    assert rig.outcome(run).verdict is MergeVerdict.LANDED
    assert rig.tip == rig.outcome(run).commit != before


def test_a_red_check_leaves_the_target_where_it_is(tmp_path: Path) -> None:
    rig = MergeRig(tmp_path, LaunchCourse(5.0, exit_code=1))
    run, before = rig.merging(), rig.tip
    rig.drive(run)
    ended = rig.outcome(run)
    assert (ended.verdict, ended.exit_code, rig.tip) == (MergeVerdict.RED, 1, before)
    assert "exited with 1 on the merged tree" in ended.detail


def test_a_check_that_hangs_is_red(tmp_path: Path) -> None:
    rig = MergeRig(tmp_path, LaunchCourse(500.0))
    run = rig.merging(timeout_s=30.0)
    rig.drive(run)
    assert rig.outcome(run).verdict is MergeVerdict.RED
    assert "Timed out" in rig.outcome(run).detail


def test_a_check_that_outlives_its_engine_is_adopted_and_its_merge_lands(tmp_path: Path) -> None:
    rig = MergeRig(tmp_path, LaunchCourse(60.0))
    run = rig.merging()
    rig.drive(run, _leave)
    assert rig.state(run).outcomes == {}
    rig.drive(run)
    assert rig.outcome(run).verdict is MergeVerdict.LANDED
    assert len(rig.machine.starts) == 1, "the check was not run beside its repeat"


def test_a_check_lost_with_the_machine_is_to_be_done_again(tmp_path: Path) -> None:
    rig = MergeRig(tmp_path, LaunchCourse(60.0))
    run, before = rig.merging(), rig.tip
    rig.drive(run, _leave)
    rig.machine.reboot()
    rig.drive(run)
    assert (rig.outcome(run).verdict, rig.tip) == (MergeVerdict.INTERRUPTED, before)
    assert rig.outcome(run).again


def test_a_merge_that_is_stopped_lands_nothing(tmp_path: Path) -> None:
    rig = MergeRig(tmp_path, LaunchCourse(60.0))
    run, before = rig.merging(), rig.tip

    async def stop(engine: Engine) -> None:
        await jump(engine, 2)
        engine.drivers["one"].deliver(Pause(id="d1", now=True))

    rig.drive(run, stop)
    assert (rig.outcome(run).verdict, rig.tip) == (MergeVerdict.INTERRUPTED, before)


def test_a_target_that_moves_while_the_check_runs_is_merged_again_by_a_new_launch(tmp_path: Path) -> None:
    rig = MergeRig(tmp_path, LaunchCourse(30.0))
    run = rig.merging()

    async def meanwhile(engine: Engine) -> None:
        await jump(engine, 2)
        git(rig.home, "commit", "--quiet", "--allow-empty", "--message", "Meanwhile")

    rig.drive(run, meanwhile)
    assert (rig.outcome(run).verdict, rig.outcome(run).again) == (MergeVerdict.MOVED, True)


@pytest.mark.parametrize("check", [None, "make test"])
def test_what_an_earlier_process_landed_is_found(tmp_path: Path, check: str | None) -> None:
    rig = MergeRig(tmp_path)
    run = rig.merging(check=check)
    git(rig.home, "merge", "--quiet", "--no-edit", "feature")
    rig.drive(run)
    assert (rig.outcome(run).verdict, rig.outcome(run).commit) == (MergeVerdict.LANDED, rig.tip)
    assert rig.machine.starts == []


def test_without_git_it_says_so(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    effect = Merge(id=named("merge", "merge"), unit="merge", branch="a", into="b", message="m", at_us=AT_US)
    run = rig.toys(effect)
    rig.drive(run)
    ended = rig.state(run).outcomes["merge"]
    assert (ended.verdict, ended.detail) == (MergeVerdict.UNAVAILABLE, "there is no git here")
