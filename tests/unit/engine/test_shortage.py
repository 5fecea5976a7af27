"""A machine that is short of something: what waits, what is said, and that nothing of it is an attempt."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from agent_orchestrator.agents.adapter import Ending
from agent_orchestrator.core.effects import Checkpoint, Merge, RunCheck, Tree
from agent_orchestrator.core.events import HoldEnded, UnitHeld
from agent_orchestrator.core.failure import FailureKind
from agent_orchestrator.core.hold import HoldReason
from agent_orchestrator.core.ids import EffectId, RunId
from agent_orchestrator.core.inputs import CheckpointEnded, MergeEnded, MergeVerdict, Pause
from agent_orchestrator.engine.engine import Engine
from agent_orchestrator.engine.launches import CannotStart, Order, Watch
from agent_orchestrator.engine.perform.merge import NoMerges
from agent_orchestrator.errors import Shortage, StoreAway
from agent_orchestrator.store.port import RateWindow
from agent_orchestrator.testing.world import SimulatedLaunches
from tests.unit.engine.rig import Recorder, Rig, agent, jump, named
from tests.unit.engine.toy import Did


def outcome(rig: Rig, run: Any) -> Any:
    (done,) = rig.of_kind(run, Did)
    return done.outcome


class Short(SimulatedLaunches):
    """Refuses the first starts."""

    refusals: list[Exception] = []  # noqa: RUF012 - shared on purpose: what is left of it is the test's business

    def start(self, order: Order) -> None:
        if Short.refusals:
            raise Short.refusals.pop(0)
        super().start(order)


def test_a_shortage_of_the_machine_is_waited_out_and_is_no_attempt(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    Short.refusals = [Shortage(detail="no processes left"), OSError(28, "No space left on device")]
    rig.launches = lambda: Short(rig.machine)
    run = rig.toys(agent("a"))
    rig.drive(run)
    assert outcome(rig, run).failure is None
    assert rig.machine.starts == [named("a")]
    assert ["has to wait" in notice for notice in rig.notes.notices] == [True, True]
    assert "no processes left" in rig.notes.notices[0]


def test_a_shortage_that_lasts_is_the_reason_that_the_unit_waits_for(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    Short.refusals = [Shortage(detail="no processes left") for _ in range(5)]
    rig.launches = lambda: Short(rig.machine)
    run = rig.toys(agent("a"))
    rig.drive(run)
    assert outcome(rig, run).failure is None
    (held,), (ended,) = rig.of_kind(run, UnitHeld), rig.of_kind(run, HoldEnded)
    assert (held.hold.why, held.hold.reason) == (HoldReason.SHORTAGE, "the machine is short of something: no processes left")
    assert ended.effect == named("a")
    assert rig.machine.starts == [named("a")]


class Killed(Exception):
    """The process is gone."""


class Dying(Short):
    """Dies right after it has started something, before that is a fact."""

    def start(self, order: Order) -> None:
        super().start(order)
        raise Killed


def die_after_a_held_start(rig: Rig) -> Any:
    Short.refusals = [Shortage(detail="no processes left") for _ in range(5)]
    rig.launches = lambda: Dying(rig.machine)
    run = rig.toys(agent("a"))
    with pytest.raises(Killed):
        rig.drive(run)
    assert rig.of_kind(run, HoldEnded) == []
    rig.launches = lambda: Adopting(rig.machine)
    return run


class Adopting(SimulatedLaunches):
    """Knows of nothing that is new."""

    def claim(self, effect: EffectId) -> Path | None:
        raise AssertionError(f"{effect} may have been started: what lies in its folder is its own")


def test_what_was_started_after_a_long_shortage_is_adopted_though_that_is_no_fact_yet(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    run = die_after_a_held_start(rig)
    rig.drive(run)
    assert outcome(rig, run).failure is None
    assert rig.machine.starts == [named("a")]
    assert [ended.effect for ended in rig.of_kind(run, HoldEnded)] == [named("a")], "nobody waits for the machine any more"


def test_what_may_have_been_started_after_a_long_shortage_is_not_started_again_after_a_reboot(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    run = die_after_a_held_start(rig)
    rig.machine.boot += 1
    del rig.machine.processes[named("a")]
    rig.drive(run)
    assert outcome(rig, run).failure.kind is FailureKind.LOST
    assert rig.machine.starts == [named("a")]


class Away(Recorder):
    """A store that does not say, for the first nine times, which rate limits there are."""

    left = 9

    def windows(self) -> list[RateWindow]:
        if self.left:
            self.left -= 1
            raise StoreAway(place="db", detail="gone")
        return super().windows()


def test_a_store_that_cannot_be_asked_for_long_is_one_fact_and_no_attempt(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    store = Away()
    rig.store = rig.machine.store = store
    run = rig.toys(agent("a"))
    rig.drive(run)
    assert outcome(rig, run).failure is None
    assert not store.left
    (held,) = rig.of_kind(run, UnitHeld)
    assert (held.hold.why, held.hold.until_us) == (HoldReason.SHORTAGE, None)
    assert "The store at db is away" in held.hold.told
    assert rig.machine.starts == [named("a")]


def test_a_program_that_never_started_for_a_shortage_is_started_again(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    left = ["the machine is short of processes", "orc: 5: exec: agent: Cannot allocate memory"]

    class Unstarted(SimulatedLaunches):
        def watch(self, effect: EffectId, limits: Watch, done: Callable[[Ending], None]) -> None:
            def ended(ending: Ending) -> None:
                if left:
                    del rig.machine.processes[effect]
                    rig.machine.starts.remove(effect)
                    ending = msgspec.structs.replace(ending, unstarted=left.pop(0))
                done(ending)

            super().watch(effect, limits, ended)

    rig.launches = lambda: Unstarted(rig.machine)
    run = rig.toys(agent("a"))
    rig.drive(run)
    assert outcome(rig, run).failure is None
    assert (rig.machine.starts, left) == ([named("a")], [])
    assert sum("has to wait" in notice for notice in rig.notes.notices) == 2


@pytest.mark.parametrize(
    "problem", [OSError(24, "Too many open files"), BlockingIOError(11, "again"), Shortage(detail="`git add`: no space")]
)
def test_git_that_runs_short_while_a_tree_is_opened_saved_or_merged_is_waited_for(problem: Exception, tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    left = {"open": 2, "save": 2, "plan": 2, "tree": 2, "keep": 2}

    def short(what: str) -> None:
        if left[what]:
            left[what] -= 1
            raise problem

    class Merging(NoMerges):
        def plan(self, repo: Path, effect: Merge) -> MergeEnded:
            short("plan")
            return MergeEnded(effect=effect.id, verdict=MergeVerdict.LANDED)

    def save(workdir: Path, scratch: Path, effect: Checkpoint) -> CheckpointEnded:
        short("save")
        return CheckpointEnded(effect=effect.id, commit="c")

    def tree_of(workdir: Path, scratch: Path) -> str:
        short("tree")
        return "t"

    def keep(folder: Path, scratch: Path, run: RunId, tree: Tree | None) -> None:
        short("keep")

    def open_tree(home: Path, run: RunId, tree: Tree) -> None:
        short("open")

    rig.more = {"merges": Merging(), "save_tree": save, "keep_tree": keep, "open_tree": open_tree}
    rig.tree_of = tree_of
    tree = Tree(branch="b")
    run = rig.toys(
        agent("a", tree=tree),
        RunCheck(id=named("c", "check"), unit="c", command="true"),
        Checkpoint(id=named("s", "checkpoint"), unit="s", ref="refs/orc/x", message="m", at_us=1),
        Merge(id=named("m", "merge"), unit="m", branch="b", into="main", message="t", at_us=1),
    )
    rig.drive(run)
    ended = {done.outcome.effect: done.outcome for done in rig.of_kind(run, Did)}
    assert ended[named("a")].failure is None
    assert ended[named("c", "check")].failure is None
    assert ended[named("s", "checkpoint")].commit == "c"
    assert ended[named("m", "merge")].verdict is MergeVerdict.LANDED
    assert set(left.values()) == {0}


def test_a_program_that_can_never_start_fails_at_once(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    Short.refusals = [CannotStart("agent cannot be started: there is no such file.")]
    rig.launches = lambda: Short(rig.machine)
    run = rig.toys(agent("a"))
    rig.drive(run)
    assert outcome(rig, run).failure.kind is FailureKind.LAUNCH
    assert rig.machine.starts == []


def test_an_error_that_waiting_does_not_mend_fails_the_launch(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    Short.refusals = [NotADirectoryError(20, "Not a directory", "artifacts")]
    rig.launches = lambda: Short(rig.machine)
    run = rig.toys(agent("a"))
    rig.drive(run)
    assert outcome(rig, run).failure.kind is FailureKind.LAUNCH
    assert "Not a directory: 'artifacts'" in outcome(rig, run).failure.message
    assert rig.notes.notices == []


def test_a_stop_while_the_machine_is_short_ends_the_wait(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    Short.refusals = [Shortage(detail="no processes left")] * 100
    rig.launches = lambda: Short(rig.machine)
    run = rig.toys(agent("a"))

    async def stop(engine: Engine) -> None:
        await jump(engine, 20)
        engine.drivers["one"].deliver(Pause(id="d1", now=True))

    assert rig.drive(run, stop).status == "paused"
    assert outcome(rig, run).failure.kind is FailureKind.STOPPED
    assert rig.clock.monotonic_s() < 25, "it does not wait for the next try"
    Short.refusals = []


def test_a_pause_does_not_wait_for_room_for_the_tree_that_an_agent_left(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    left = [OSError(28, "No space left on device") for _ in range(20)]

    def keep(folder: Path, scratch: Path, run: RunId, tree: Tree | None) -> None:
        if left:
            raise left.pop()

    rig.more = {"keep_tree": keep}
    run = rig.toys(agent("a"))

    async def pause(engine: Engine) -> None:
        await jump(engine, 20)
        engine.drivers["one"].deliver(Pause(id="d1"))

    assert rig.drive(run, pause).status == "paused"
    assert outcome(rig, run).failure is None
    assert left, "it was not tried until there was room"
    assert "No space left" in outcome(rig, run).kept.problem
    assert rig.machine.starts == [named("a")]
