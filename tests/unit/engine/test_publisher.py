"""Print-outs: whole, recognised by identity, coalesced while a run is busy, and never ahead of the journal."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from agent_orchestrator.core.effects import Wait
from agent_orchestrator.core.events import Ended
from agent_orchestrator.core.ids import RunId
from agent_orchestrator.core.inputs import AgentEnded, Pause
from agent_orchestrator.core.system import Document
from agent_orchestrator.engine.driver import Driver
from agent_orchestrator.engine.engine import Engine
from agent_orchestrator.engine.publisher import DUTY
from agent_orchestrator.errors import DiskFull
from agent_orchestrator.projections.inspection import find_known
from agent_orchestrator.store.port import Append
from agent_orchestrator.testing.world import LaunchCourse
from tests.counting import count_calls
from tests.unit.engine.rig import Notes, Rig, agent, asides, jump, named, printed, until

PRINT_S = 0.15
AGENTS = 200


def when_printed(rig: Rig, act: Any) -> Any:
    """Acts on the file while the run is driven."""

    async def during(engine: Engine) -> None:
        await until((rig.home / "toy.json").exists)
        act(rig.home / "toy.json")

    return during


def test_a_busy_run_is_printed_for_a_small_share_of_the_time_and_at_its_end(tmp_path: Path) -> None:
    rig = Rig(tmp_path, lambda effect: LaunchCourse(0.1 * (1 + int(effect.split("/")[1][1:]))))
    rig.toy.on_print = lambda: rig.clock.advance(PRINT_S)
    run = rig.toys(*(agent(f"s{number}") for number in range(AGENTS)))
    rig.drive(run)
    rows = len(rig.store.rows(RunId("one")))
    prints = sum(bool(part.printed) for batch in rig.store.batches for part in batch)
    allowed = rig.clock.monotonic_s() / (PRINT_S / DUTY)
    assert rows > 4 * prints
    assert 3 <= prints <= allowed + 4, "besides its share: the first, the one when it is idle, the last"
    assert printed(rig)["phase"] == "ended"
    assert len(printed(rig)["done"]) == AGENTS


def test_a_run_that_waits_or_pauses_is_printed_at_once(tmp_path: Path) -> None:
    rig = Rig(tmp_path, lambda effect: LaunchCourse(1.0))
    rig.toy.on_print = lambda: rig.clock.advance(PRINT_S)
    waiting = Wait(id=named("b", "wait"), unit="b", until_us=rig.clock.now_us() + 3600 * 1_000_000, reason="backing off")
    run = rig.toys(agent("a"), waiting)

    async def look(engine: Engine) -> None:
        driver = engine.drivers["one"]
        await until(lambda: driver.state.outcomes)
        await jump(engine, 0.2)
        assert printed(rig) == {"phase": "running", "done": ["a"]}
        driver.deliver(Pause(id="d1"))

    rig.drive(run, look)
    assert printed(rig) == {"phase": "paused", "done": ["a"]}


def test_the_identity_is_committed_before_the_file_is_renamed(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    run = rig.toys(agent("a"))
    committed: list[int] = []

    def look(batch: Sequence[Append]) -> None:
        for part in batch:
            for one in part.printed:
                file = rig.home / one.path
                assert not file.exists() or file.stat().st_ino != one.identity.inode
                committed.append(one.identity.inode)

    rig.store.on_append = look
    rig.drive(run)
    assert (rig.home / "toy.json").stat().st_ino == committed[-1]
    assert rig.store.printed(RunId("one"))["toy.json"][-1].inode == committed[-1]


def test_nothing_is_shown_that_is_not_durable(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    run = rig.toys(agent("a"))
    shown: list[Any] = []
    engines: list[Engine] = []

    def refuse(batch: Sequence[Append]) -> None:
        if any(b'"did"' in (part.body or b"") for part in batch) and len(shown) < 3:
            shown.append(printed(rig))
            engines[0].publisher.offer(engines[0].drivers["one"], idle=True)  # as its timer may, at any moment
            rig.store.refuse(DiskFull(path="orc.db"))

    async def remember(engine: Engine) -> None:
        engines.append(engine)

    rig.store.on_append = refuse
    rig.drive(run, remember)
    assert shown == [{"phase": "running", "done": []}] * 3
    assert printed(rig) == {"phase": "ended", "done": ["a"]}


def test_an_edit_under_a_live_engine_is_kept_aside_and_announced(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    run = rig.toys(agent("a"))
    rig.drive(run, when_printed(rig, lambda file: file.write_text('{"phase": "mine"}')))
    (aside,) = asides(rig)
    assert aside.name.startswith("toy.json.edited-")
    assert json.loads(aside.read_text()) == {"phase": "mine"}
    assert printed(rig) == {"phase": "ended", "done": ["a"]}
    assert [notice for notice in rig.notes.notices if "was changed while the run was running" in notice]


class Deaf(Notes):
    """An observer that breaks when it is told something."""

    def noticed(self, driver: Driver, text: str) -> None:
        raise BrokenPipeError(text)


def test_an_observer_that_breaks_while_files_are_placed_ends_the_run_and_hangs_nobody(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    rig.notes = Deaf()
    run = rig.toys(agent("a"))

    with pytest.raises(BrokenPipeError, match="was changed while the run was running"):
        rig.drive(run, when_printed(rig, lambda file: file.write_text('{"phase": "mine"}')))


def test_a_torn_file_is_written_again_and_not_kept(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    run = rig.toys(agent("a"))
    rig.drive(run, when_printed(rig, lambda file: file.write_bytes(b"\0" * 4096)))
    assert asides(rig) == []
    assert printed(rig) == {"phase": "ended", "done": ["a"]}


def test_a_deleted_file_is_written_again(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    run = rig.toys(agent("a"))
    rig.drive(run, when_printed(rig, lambda file: file.unlink()))
    assert printed(rig) == {"phase": "ended", "done": ["a"]}


def test_a_deleted_file_is_written_again_also_when_nothing_in_it_changed(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    waiting = Wait(id=named("b", "wait"), unit="b", until_us=rig.clock.now_us() + 60 * 1_000_000, reason="backing off")
    run = rig.toys(waiting)

    async def delete(engine: Engine) -> None:
        file = rig.home / "toy.json"
        await until(file.exists)
        file.unlink()
        engine.drivers["one"].deliver(AgentEnded(effect=named("a", launch=9), started_us=1, ended_us=2))
        await jump(engine, 1)
        assert printed(rig) == {"phase": "running", "done": []}

    assert rig.drive(run, delete).status == "completed"


def test_a_print_out_of_an_earlier_process_find_known_however_old(tmp_path: Path) -> None:
    rig = Rig(tmp_path, lambda effect: LaunchCourse(60.0))
    run = rig.toys(agent("a"))

    async def leave(engine: Engine) -> None:
        await jump(engine, 1)
        engine.leave()

    for _ in range(3):
        rig.drive(run, leave)
    rig.drive(run)
    assert asides(rig) == []


def test_drafts_that_a_dead_process_left_are_swept(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    run = rig.toys(agent("a"))
    (rig.home / ".toy.json.999-1.orc-tmp").write_text("half")
    rig.drive(run)
    assert [file.name for file in rig.home.iterdir() if file.name.startswith(".")] == []


def test_an_unwritable_place_is_said_and_the_run_goes_on(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    run = rig.toys(agent("a"))
    (rig.home / "toy.json").mkdir()
    assert rig.drive(run).status == "completed"
    assert rig.notes.notices
    assert list(rig.home.glob(".*")) == [], "no draft is left behind"


def test_a_file_of_ours_stays_ours_however_many_print_outs_cannot_replace_it(tmp_path: Path) -> None:
    rig = Rig(tmp_path, lambda effect: LaunchCourse(float(effect.split("/")[1][1:])))
    run = rig.toys(*(agent(f"s{number}") for number in range(40)))

    def clean_away(batch: Sequence[Append]) -> None:
        if (rig.home / "toy.json").exists():
            for draft in rig.home.glob(".*"):
                draft.unlink()

    rig.store.on_append = clean_away
    rig.drive(run)
    assert printed(rig)["phase"] == "running", "nothing replaced the first"
    assert any("The state files are behind" in note for note in rig.notes.notices)
    assert find_known(rig.home, rig.home / "toy.json", rig.store.printed(RunId("one"))["toy.json"])
    rig.store.on_append = lambda batch: None
    rig.drive(run)
    assert printed(rig)["phase"] == "ended"
    assert asides(rig) == []


def test_the_last_print_out_is_tried_again_when_the_disk_is_full(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    run = rig.toys(agent("a"))
    failures = [OSError(28, "No space left on device") for _ in range(3)]

    def fail_at_the_end() -> None:
        if rig.of_kind(run, Ended) and failures:
            raise failures.pop()

    rig.toy.on_print = fail_at_the_end
    rig.drive(run)
    assert failures == []
    assert printed(rig) == {"phase": "ended", "done": ["a"]}


def test_a_report_that_cannot_be_copied_holds_no_state_file_up(tmp_path: Path) -> None:
    rig = Rig(tmp_path, lambda effect: LaunchCourse(1.0, 0, {"status": "COMPLETED"}))
    (rig.home / "report.json").mkdir()
    rig.drive(rig.toys(agent("a", report_copy="report.json")))
    assert printed(rig) == {"phase": "ended", "done": ["a"]}
    assert [notice for notice in rig.notes.notices if "report of a could not be copied" in notice]


def test_a_store_that_refuses_identities_leaves_the_old_file_and_is_asked_again(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    run = rig.toys(agent("a"))
    refused: list[int] = []

    def refuse(batch: Sequence[Append]) -> None:
        if any(part.printed for part in batch) and not any(part.body for part in batch) and len(refused) < 3:
            refused.append(1)
            rig.store.refuse(DiskFull(path="orc.db"))

    rig.store.on_append = refuse
    assert rig.drive(run).status == "completed"
    assert len(refused) == 3
    assert printed(rig) == {"phase": "ended", "done": ["a"]}


class Record(msgspec.Struct, frozen=True):
    """A print-out that does not change."""

    number: int


@pytest.mark.parametrize("once", [True, False])
def test_a_print_out_that_did_not_change_is_neither_encoded_nor_looked_at_again(once: bool, tmp_path: Path) -> None:
    calls = []
    for records in (0, 30):
        (tmp_path / str(records)).mkdir()
        rig = Rig(tmp_path / str(records), lambda effect: LaunchCourse(0.1 * (1 + int(effect.split("/")[1][1:]))))
        rig.toy.on_print = lambda advance=rig.clock.advance: advance(0.001)  # type: ignore[misc]
        rig.toy.records = [Document(path=f"records/{n}.json", body=Record(n), once=once) for n in range(records)]
        run = rig.toys(*(agent(f"s{number}") for number in range(15)))
        calls.append(count_calls(lambda rig=rig, run=run: rig.drive(run)))  # type: ignore[misc]
        assert len(list((tmp_path / str(records)).rglob("records/*.json"))) == records
    none, many = calls
    assert none["_drafts"] == many["_drafts"] > 5
    assert many["encode_document"] <= none["encode_document"] + 30
    assert many["stat"] <= none["stat"] + 10 * 30, "each is looked at when it is first written, and no more"
