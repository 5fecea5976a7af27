"""After a crash the same code runs over everything that was wanted: adopt, collect, give up as lost, or start."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import pytest

from agent_orchestrator.agents.adapter import Ending
from agent_orchestrator.core.effects import AgentChoice
from agent_orchestrator.core.events import CameLate, Paused, TakenUp
from agent_orchestrator.core.failure import FailureKind
from agent_orchestrator.core.ids import EffectId, RunId
from agent_orchestrator.core.inputs import AgentEnded, Resume
from agent_orchestrator.engine.engine import Engine
from agent_orchestrator.engine.launches import Order, Watch
from agent_orchestrator.engine.redact import Redactor
from agent_orchestrator.store.port import Append, StoredRun
from agent_orchestrator.testing.world import LaunchCourse, SimulatedLaunches
from tests.unit.engine.rig import Rig, agent, jump, named, until
from tests.unit.engine.toy import Did, Wanted

SECRET = "hunter2-hunter2"
TAKEN = TakenUp(boot="1", host="here", pid=1, version="")


async def leave_soon(engine: Engine) -> None:
    await jump(engine, 1)
    engine.leave()


def outcome(rig: Rig, run: StoredRun) -> FailureKind | None:
    (done,) = rig.of_kind(run, Did)
    return done.outcome.failure.kind if done.outcome.failure else None


def intended(rig: Rig, run: StoredRun, *units: str) -> None:
    """An earlier process journaled what it was about to start, and died."""
    rig.journal(run, TAKEN, *(Wanted(effect=agent(unit)) for unit in units))


def test_an_agent_that_lives_is_adopted(tmp_path: Path) -> None:
    rig = Rig(tmp_path, lambda effect: LaunchCourse(60.0))
    run = rig.toys(agent("a"))
    rig.drive(run, leave_soon)
    assert rig.drive(run).status == "completed"
    assert rig.machine.starts == [named("a")]
    assert outcome(rig, run) is None


def test_an_agent_that_ended_meanwhile_is_collected_with_its_report(tmp_path: Path) -> None:
    rig = Rig(tmp_path, lambda effect: LaunchCourse(60.0, 0, {"status": "COMPLETED", "summary": "while you were away"}))
    run = rig.toys(agent("a"))
    rig.drive(run, leave_soon)
    rig.clock.advance(100)
    rig.machine.pass_time()
    assert rig.drive(run).status == "completed"
    assert rig.machine.starts == [named("a")]
    (done,) = rig.of_kind(run, Did)
    assert done.outcome.report.summary == "while you were away"
    assert done.outcome.ended_us == rig.machine.processes[named("a")].ended_us


class Told(SimulatedLaunches):
    """Ends are announced when the test says so."""

    def __init__(self, rig: Rig) -> None:
        super().__init__(rig.machine)
        self.done: dict[str, Callable[[], None]] = {}
        self.orders: list[str] = []

    def start(self, order: Order) -> None:
        self.orders.append(order.effect)
        super().start(order)

    def watch(self, effect: EffectId, limits: Watch, done: Callable[[Ending], None]) -> None:
        out = self.directory(effect) / "out"
        ending = Ending(exit_code=0, cause=None, started_us=1, ended_us=2, out=out, err=out)
        self.done[effect] = partial(done, ending)


def test_a_unit_stays_occupied_until_its_outcome_is_durable(tmp_path: Path) -> None:
    rig = Rig(tmp_path, lambda effect: LaunchCourse(0.0))
    told = Told(rig)
    rig.launches = lambda: told
    run = rig.toys(agent("a"), agent("b"))

    def end_a_while_b_is_written(batch: Sequence[Append]) -> None:
        if any(b'"did"' in (part.body or b"") for part in batch) and named("a") in told.done:
            told.done.pop(named("a"))()

    async def end_b(engine: Engine) -> None:
        await until(lambda: len(told.done) == 2)
        rig.store.on_append = end_a_while_b_is_written
        await jump(engine, 1)
        told.done[named("b")]()

    assert rig.drive(run, end_b).status == "completed"
    assert sorted(told.orders) == [named("a"), named("b")], "a was over, and not yet by the journal"


def test_an_agent_that_vanished_is_lost(tmp_path: Path) -> None:
    rig = Rig(tmp_path, lambda effect: LaunchCourse(60.0))
    run = rig.toys(agent("a"))
    rig.drive(run, leave_soon)
    rig.machine.processes[named("a")].alive = False
    rig.drive(run)
    assert outcome(rig, run) is FailureKind.LOST


def test_an_intent_without_marks_is_started_in_the_same_boot(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    run = rig.toys(agent("a"))
    intended(rig, run, "a")
    rig.drive(run)
    assert rig.machine.starts == [named("a")]
    assert outcome(rig, run) is None


def test_an_intent_without_marks_from_an_earlier_boot_is_lost_and_never_started(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    run = rig.toys(agent("a"))
    intended(rig, run, "a")
    rig.machine.boot = 2
    rig.drive(run)
    assert rig.machine.starts == []
    assert outcome(rig, run) is FailureKind.LOST


def test_an_intent_that_a_halted_run_never_started_is_voided(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    run = rig.toys(agent("a"))
    intended(rig, run, "a")
    rig.journal(run, Paused(reason="stop", now=True))
    assert rig.drive(run).status == "paused"
    assert rig.machine.starts == []
    assert named("a") in rig.machine.processes, "nobody who still means to start it can"
    assert outcome(rig, run) is FailureKind.STOPPED


def test_an_agent_that_lives_when_a_halted_run_is_taken_up_is_stopped(tmp_path: Path) -> None:
    rig = Rig(tmp_path, lambda effect: LaunchCourse(500.0))
    run = rig.toys(agent("a"))
    rig.drive(run, leave_soon)
    rig.journal(run, Paused(reason="stop", now=True))
    assert rig.drive(run).status == "paused"
    assert not rig.machine.processes[named("a")].alive
    assert outcome(rig, run) is FailureKind.STOPPED


def test_what_lives_though_nobody_wants_it_is_stopped_and_its_unit_waits_until_it_is_gone(tmp_path: Path) -> None:
    rig = Rig(tmp_path, lambda effect: LaunchCourse(500.0 if ".l7." in effect else 5.0, ignores_term_s=9.0))
    run = rig.toys(agent("a"))
    leftover = named("a", launch=7)
    rig.machine.mark(leftover)
    rig.machine.processes[leftover].alive = True
    rig.machine.processes[leftover].ends_s = 500.0
    assert rig.drive(run).status == "completed", "the machine refuses two programs of one unit beside each other"
    assert not rig.machine.processes[leftover].alive
    assert rig.of_kind(run, CameLate) == [CameLate(effect=leftover, failure=FailureKind.STOPPED)]
    assert rig.machine.processes[named("a")].started_us >= rig.machine.processes[leftover].ended_us


@pytest.mark.parametrize("lives", [True, False], ids=["alive", "ended meanwhile"])
def test_what_a_leftover_consumed_counts_and_its_output_keeps_no_secret(tmp_path: Path, lives: bool) -> None:
    said = ((0.2, '{"cost": 0.25}'), (0.4, f'{{"token": "{SECRET}"}}'))
    rig = Rig(tmp_path, lambda effect: LaunchCourse(500.0, says=said))
    rig.redactor = Redactor([SECRET])
    argv = {"argv": ["agent"], "output": "json-lines", "usage": {"cost_usd": "cost"}}
    run = rig.toys(agent("a", agent=AgentChoice(name="command", options=argv)))
    rig.drive(run, leave_soon)
    process = rig.machine.processes[named("a")]
    rig.machine.pass_time()
    rig.journal(run, Did(outcome=AgentEnded(effect=named("a"), started_us=1, ended_us=2)))
    if not lives:
        process.stopped = True
        rig.machine.end(process, 143)
    assert rig.drive(run).status == "completed"
    assert not process.alive
    assert [event.effect for event in rig.of_kind(run, CameLate)] == [named("a")]
    assert [row.usage.cost_usd for row in rig.store.usage(RunId("one"))] == [0.25]
    assert SECRET not in (rig.machine.directory(named("a")) / "out").read_text()
    rig.drive(run)
    assert len(rig.of_kind(run, CameLate)) == 1, "it is settled"


def test_a_leftover_of_an_ended_run_is_stopped_too(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    run = rig.toys(agent("a"))
    rig.drive(run)
    leftover = named("a", launch=7)
    rig.machine.mark(leftover)
    rig.machine.processes[leftover].alive = True
    rig.machine.processes[leftover].ends_s = 1e9
    assert rig.drive(run).status == "completed"
    assert not rig.machine.processes[leftover].alive


def test_an_ended_run_is_printed_again_and_not_taken_up(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    run = rig.toys(agent("a"))
    rig.drive(run)
    printed, rows = (rig.home / "toy.json").read_bytes(), len(rig.store.rows(RunId("one")))
    (rig.home / "toy.json").unlink()
    assert rig.drive(run).status == "completed"
    assert (rig.home / "toy.json").read_bytes() == printed
    assert len(rig.store.rows(RunId("one"))) == rows


def test_taking_up_remembers_the_boot_of_each_intent(tmp_path: Path) -> None:
    rig = Rig(tmp_path, lambda effect: LaunchCourse(5.0))
    run = rig.toys(agent("a"), agent("b"))
    rig.journal(run, TAKEN, Wanted(effect=agent("a")), Paused(reason="the machine goes down"))
    rig.machine.boot = 2
    assert rig.drive(run, inputs=[Resume(id="d1")]).status == "completed"
    assert rig.machine.starts == [named("b")], "what was wanted before the reboot may have run; what came after may start"


def test_what_the_first_tick_drops_is_stopped_though_nobody_had_adopted_it(tmp_path: Path) -> None:
    rig = Rig(tmp_path, lambda effect: LaunchCourse(500.0))
    run = rig.toys(agent("a"))
    rig.drive(run, leave_soon)
    assert rig.machine.processes[named("a")].alive
    rig.drive(run, inputs=[AgentEnded(effect=named("a"), started_us=0, ended_us=0)])
    assert not rig.machine.processes[named("a")].alive
    assert rig.clock.monotonic_s() < 100
