"""Snapshots: a long run is taken up from its newest one, and at any doubt as if there were none."""

from __future__ import annotations

import os
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import msgspec
import pytest

from agent_orchestrator.core.effects import AgentChoice
from agent_orchestrator.core.events import WentBack
from agent_orchestrator.core.ids import RunId
from agent_orchestrator.engine.journal import Folded, fold
from agent_orchestrator.engine.snapshots import GROWTH, Snapshot, encode, meaning_of, pack
from agent_orchestrator.store.port import Append, StoredRun
from agent_orchestrator.store.snapshots import MemorySnapshots, SnapshotFiles
from agent_orchestrator.systems.workflow.events import ItemsListed
from agent_orchestrator.systems.workflow.spec import StepSpec, WorkflowSpec
from agent_orchestrator.systems.workflow.system import WORKFLOW
from agent_orchestrator.testing.snapshots import check_snapshots, picture
from agent_orchestrator.testing.world import LaunchCourse
from tests.counting import count_calls
from tests.unit.engine.rig import Rig

ROWS = 10


def chain(folder: Path, length: int) -> WorkflowSpec:
    (folder / "p").write_text("Do it.")
    steps = tuple(
        StepSpec(id=f"s{n}", agent="worker", prompt="p", prompt_path=str(folder / "p"), needs=(f"s{n - 1}",) if n else ())
        for n in range(length)
    )
    return WorkflowSpec(name="chain", steps=steps, agents={"": AgentChoice(name="command", options={"argv": ["true"]})})


class Watched(MemorySnapshots):
    """Does something else with what is written."""

    def __init__(self, write: Callable[[RunId, bytes], None]) -> None:
        super().__init__()
        self._instead = write

    def write(self, run: RunId, content: bytes) -> None:
        self._instead(run, content)


def driven(
    folder: Path, length: int = 40, rows: int = ROWS, write: Callable[[RunId, bytes], None] | None = None
) -> tuple[Rig, StoredRun]:
    """A chain that completed, with its snapshots taken on the way."""
    rig = Rig(folder, lambda effect: LaunchCourse(1.0), WORKFLOW)
    rig.more["snapshot_rows"] = rows
    if write is not None:
        rig.store.snapshots = Watched(write)
    run = rig.create(chain(folder, length))
    assert rig.drive(run).status == "completed"
    return rig, run


def kept(rig: Rig, run: StoredRun) -> Snapshot:
    content = rig.store.snapshots.read(run.id)
    assert content is not None
    return msgspec.msgpack.decode(content, type=Snapshot)


def put(rig: Rig, of: StoredRun, /, **changed: object) -> None:
    rig.store.snapshots.write(of.id, msgspec.msgpack.encode(msgspec.structs.replace(kept(rig, of), **changed)))


def whole(rig: Rig, run: StoredRun) -> Folded:
    return fold(rig.store, WORKFLOW, run, len(rig.store.rows(run.id)))


def test_a_run_is_folded_from_its_newest_snapshot(tmp_path: Path) -> None:
    rig, run = driven(tmp_path)
    quick, slow = fold(rig.store, WORKFLOW, run), whole(rig, run)
    assert quick.since > ROWS, "the last snapshot is not the first one"
    assert slow.since == 0
    assert (quick.seq, quick.at_us) == (slow.seq, slow.at_us)
    assert picture(quick.state) == picture(slow.state)
    check_snapshots(WORKFLOW, rig.store, run)


def test_a_fold_applies_the_rows_after_the_snapshot_and_no_others(tmp_path: Path) -> None:
    rig, run = driven(tmp_path)
    rows = len(rig.store.rows(run.id))
    calls = count_calls(lambda: fold(rig.store, WORKFLOW, run))
    assert calls["add_living"] == rows - kept(rig, run).seq < rows / 2


def test_snapshots_are_as_far_apart_as_the_journal_is_long(tmp_path: Path) -> None:
    """Otherwise a run's cost would grow with its square: each is as large as the state."""
    written: list[int] = []
    driven(tmp_path, 200, write=lambda run, content: written.append(msgspec.msgpack.decode(content, type=Snapshot).seq))
    assert len(written) > 5
    for before, after in pairwise(written):
        assert after - before >= max(ROWS, before // GROWTH)


def test_a_short_run_has_none(tmp_path: Path) -> None:
    rig, run = driven(tmp_path, 5, rows=1_000)
    assert rig.store.snapshots.read(run.id) is None


DOUBTS: dict[str, Callable[[Rig, StoredRun], None]] = {
    "other code": lambda rig, run: put(rig, run, meaning="another"),
    "another run": lambda rig, run: put(rig, run, run="another"),
    "a run of the same id that is gone": lambda rig, run: put(rig, run, created_us=7),
    "a row of another time": lambda rig, run: put(rig, run, at_us=kept(rig, run).at_us - 1),
    "a row that is not there": lambda rig, run: put(rig, run, seq=10_000),
    "row 0": lambda rig, run: put(rig, run, seq=0),
    "a torn body": lambda rig, run: put(rig, run, body=kept(rig, run).body[:-9]),
    "another body": lambda rig, run: put(rig, run, body=b"nonsense"),
    "nothing": lambda rig, run: rig.store.snapshots.write(run.id, b""),
    "zeros": lambda rig, run: rig.store.snapshots.write(run.id, bytes(4096)),
    "half of it": lambda rig, run: rig.store.snapshots.write(run.id, encode(kept(rig, run))[:100]),
}


@pytest.mark.parametrize("doubt", DOUBTS)
def test_at_any_doubt_the_journal_is_folded(tmp_path: Path, doubt: str) -> None:
    rig, run = driven(tmp_path)
    DOUBTS[doubt](rig, run)
    folded = fold(rig.store, WORKFLOW, run)
    assert folded.since == 0
    assert picture(folded.state) == picture(whole(rig, run).state)


def test_a_run_that_went_back_is_folded_without_the_snapshot_that_it_went_behind(tmp_path: Path) -> None:
    rig, run = driven(tmp_path)
    rig.journal(run, WentBack(to=3, point="s1", generation=1, worked_us=0))
    folded = fold(rig.store, WORKFLOW, run)
    assert folded.since == 0
    assert folded.state.context.generation == 1
    assert folded.state.dag.finished < 5


def test_a_snapshot_knows_how_often_its_run_went_back(tmp_path: Path) -> None:
    rig, run = driven(tmp_path)
    rig.journal(run, WentBack(to=3, point="s1", generation=1, worked_us=0))
    before = fold(rig.store, WORKFLOW, run)
    rig.store.snapshots.write(run.id, encode(pack(WORKFLOW, run, before.state, before.seq, before.at_us)))
    restored = fold(rig.store, WORKFLOW, run)
    assert restored.since == before.seq
    assert picture(restored.state) == picture(before.state)


def test_the_mark_of_the_code_changes_with_what_a_state_means(tmp_path: Path) -> None:
    for name in ("engine/journal.py", "engine/shared_facts.py", "engine/snapshots.py", "core/dag.py", "systems/workflow/a.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("one = 1\n")

    def mark(system: str) -> str:
        meaning_of.cache_clear()
        return meaning_of(system, str(tmp_path))

    first, other = mark("workflow"), mark("swarm")
    assert mark("workflow") == first
    (tmp_path / "systems/workflow/a.py").write_text("one = 21\n")
    second = mark("workflow")
    assert second != first
    assert mark("swarm") == other, "what another system means is its own"
    (tmp_path / "core/dag.py").write_text("one = 2\n")
    os.utime(tmp_path / "core/dag.py", ns=(1, 1))
    assert mark("workflow") not in (first, second)
    assert mark("swarm") != other
    meaning_of.cache_clear()


def test_a_number_that_only_json_can_hold_is_no_mishap(tmp_path: Path) -> None:
    rig, run = driven(tmp_path)
    folded = fold(rig.store, WORKFLOW, run)
    folded.apply([ItemsListed(step="s1", items=(2**80,))], folded.at_us)
    with pytest.raises(OverflowError):
        pack(WORKFLOW, run, folded.state, folded.seq, folded.at_us)


def test_a_snapshot_that_cannot_be_written_holds_nothing_up(tmp_path: Path) -> None:
    tried: list[RunId] = []

    def full(run: RunId, content: bytes) -> None:
        tried.append(run)
        raise OSError(28, "No space left on device")

    rig, run = driven(tmp_path, write=full)
    assert len(tried) > 1
    assert rig.notes.notices == []
    assert fold(rig.store, WORKFLOW, run).since == 0


def test_files_are_read_through_no_link(tmp_path: Path) -> None:
    files = SnapshotFiles(tmp_path / "store")
    (tmp_path / "store").mkdir()
    files.write(RunId("one"), b"mine")
    (tmp_path / "planted").write_bytes(b"planted")
    (tmp_path / "store/snapshots/two").symlink_to(tmp_path / "planted")
    assert files.read(RunId("one")) == b"mine"
    assert files.read(RunId("two")) is None
    files.write(RunId("two"), b"ours")
    assert (tmp_path / "planted").read_bytes() == b"planted", "a link is replaced, not followed"
    files.drop(RunId("one"))
    files.drop(RunId("one"))
    assert files.read(RunId("one")) is None


def test_an_append_of_another_process_is_folded_after_the_snapshot(tmp_path: Path) -> None:
    rig, run = driven(tmp_path)
    snapshot = kept(rig, run)
    assert snapshot.seq < len(rig.store.rows(run.id)), "rows follow it"
    part = Append(run=run.id, expected_seq=len(rig.store.rows(run.id)), at_us=rig.clock.now_us(), body=b"[]")
    assert rig.store.append([part]) == [None]
    assert fold(rig.store, WORKFLOW, run).seq == part.expected_seq + 1
