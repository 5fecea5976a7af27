"""Documents that span runs, print-outs that a system no longer lists, and trees that are saved."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec
import pytest

from agent_orchestrator.core.effects import Checkpoint
from agent_orchestrator.core.ids import RunId
from agent_orchestrator.core.inputs import CheckpointEnded
from agent_orchestrator.core.summary import Summary
from agent_orchestrator.core.system import Document, ListedRun
from agent_orchestrator.engine.engine import World
from agent_orchestrator.engine.overview import HEARTBEAT_S, Overviews
from agent_orchestrator.engine.owners import LockOwners
from agent_orchestrator.engine.ownership import Ownership
from agent_orchestrator.errors import GitFailed
from agent_orchestrator.testing.world import LaunchCourse
from tests.unit.engine.rig import Rig, agent, named
from tests.unit.engine.toy import ToyState, ToySystem, as_system


class Listing(ToySystem):
    """A toy whose runs are listed in one file, and whose steps leave a file each until the next is done."""

    def overview(self, runs: Sequence[ListedRun], driven: Callable[[str], bool], now_us: int) -> Iterable[Document]:
        listed = {run.id: [run.summary.done, driven(run.id)] for run in runs}
        old = Document(path="old.json", body=None, onto=lambda content: listed if content.startswith(b"{") else None)
        return [Document(path="all.json", body=listed), old]

    def summary(self, state: ToyState) -> Summary:
        made = super().summary(state)
        return msgspec.structs.replace(made, facts={"done": made.done})

    def documents(self, state: ToyState, now_us: int) -> list[Document]:
        last = [Document(path=f"step-{unit}.bin", body=unit.encode(), once=True) for unit in list(state.outcomes)[-1:]]
        return [*super().documents(state, now_us), *last]


class ListingRig(Rig):
    """Engines whose world can write overviews and save trees."""

    def __init__(self, folder: Path, cast: Callable[[str], LaunchCourse] | None = None) -> None:
        super().__init__(folder, cast, system=as_system(Listing()))
        self.more: dict[str, Any] = {}

    def world(self) -> World:
        return msgspec.structs.replace(super().world(), **self.more)


@pytest.fixture
def rig(tmp_path: Path) -> ListingRig:
    return ListingRig(tmp_path)


def overviews(rig: Rig) -> Overviews:
    return Overviews(rig.store, LockOwners(rig.home / "store"), rig.home / "store", rig.clock)


def listed(rig: Rig) -> Any:
    return json.loads((rig.home / "all.json").read_bytes())


def test_an_overview_is_written_from_a_fresh_read_and_says_who_is_driven(rig: ListingRig) -> None:
    rig.toys(agent("a"), run="one")
    rig.toys(agent("a"), run="two")
    held = Ownership(rig.home / "store", RunId("two"))
    assert overviews(rig).write(rig.system, rig.home)
    assert listed(rig) == {"one": [0, False], "two": [0, True]}
    held.release()
    assert not (rig.home / "old.json").exists()
    (rig.home / "old.json").write_text("somebody else's")
    overviews(rig).write(rig.system, rig.home)
    assert (rig.home / "old.json").read_text() == "somebody else's"
    (rig.home / "old.json").write_text("{}")
    overviews(rig).write(rig.system, rig.home)
    assert json.loads((rig.home / "old.json").read_bytes()) == listed(rig)


def test_a_system_without_an_overview_has_none(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    assert overviews(rig).write(rig.system, rig.home)
    assert not (rig.home / "all.json").exists()


def test_whoever_does_not_wait_is_told_that_another_process_writes(rig: ListingRig) -> None:
    rig.toys(agent("a"))
    folder = rig.home / "store"
    folder.mkdir()
    lock = os.open(folder / "toys.lock", os.O_RDWR | os.O_CREAT, 0o644)
    fcntl.flock(lock, fcntl.LOCK_EX)
    assert not overviews(rig).write(rig.system, rig.home, wait=False)
    os.close(lock)
    assert overviews(rig).write(rig.system, rig.home, wait=False)


def test_while_a_run_is_driven_its_overview_follows_every_change_and_the_heartbeat(tmp_path: Path) -> None:
    rig = ListingRig(tmp_path, lambda effect: LaunchCourse(5.0 if "/a/" in effect else 3 * HEARTBEAT_S))
    run = rig.toys(agent("a"), agent("b"))
    written: list[float] = []

    class Counting(Overviews):
        def write(self, system: Any, home: Path, *, wait: bool = True) -> bool:
            written.append(rig.clock.monotonic_s())
            return super().write(system, home, wait=wait) if len(written) != 2 else False

    rig.more["overviews"] = Counting(rig.store, LockOwners(rig.home / "store"), rig.home / "store", rig.clock)
    rig.drive(run)
    assert listed(rig) == {"one": [2, False]}
    gaps = [later - earlier for earlier, later in pairwise(written)]
    assert max(gaps) <= HEARTBEAT_S + 1
    assert min(gaps) < 1, "the write that found the lock taken was tried again at once"


def test_a_print_out_that_is_no_longer_listed_goes(tmp_path: Path) -> None:
    rig = ListingRig(tmp_path, lambda effect: LaunchCourse(5.0 * ("abc".index(effect.split("/")[1]) + 1)))
    rig.drive(rig.toys(agent("a"), agent("b"), agent("c")))
    assert [path.name for path in sorted(rig.home.glob("step-*"))] == ["step-c.bin"]
    assert (rig.home / "step-c.bin").read_bytes() == b"c"


def test_a_tree_that_cannot_be_saved_is_an_outcome_and_no_error(rig: ListingRig) -> None:
    effect = Checkpoint(id=named("a", "save"), unit="a", ref="refs/orc/one/1", message="m", at_us=1)

    def refuse(workdir: Path, scratch: Path, effect: Checkpoint) -> CheckpointEnded:
        raise GitFailed(command="commit-tree", where=workdir, detail="the disk is full")

    rig.more["save_tree"] = refuse
    rig.drive(rig.toys(effect))
    assert "the disk is full" in str(rig.notes.events)


def test_without_git_a_tree_is_not_saved_and_that_is_said(rig: ListingRig) -> None:
    effect = Checkpoint(id=named("a", "save"), unit="a", ref="refs/orc/one/1", message="m", at_us=1)
    rig.drive(rig.toys(effect))
    assert "there is no git here" in str(rig.notes.events)
