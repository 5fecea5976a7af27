"""A person has the session of one unit's agent: whole engines whose time jumps show who starts, who is held and what is said."""

from __future__ import annotations

from pathlib import Path

from agent_orchestrator.core.events import Forked, HoldEnded, StopReason, UnitHandedBack, UnitHeld, UnitTakenOver
from agent_orchestrator.core.hold import HoldReason
from agent_orchestrator.core.inputs import Abort, HandBack, Pause, Resume, TakeOver
from agent_orchestrator.core.summary import Summary
from agent_orchestrator.engine.driver import Driver
from agent_orchestrator.engine.engine import Engine
from agent_orchestrator.testing.world import LaunchCourse
from tests.unit.engine.rig import Rig, until
from tests.unit.engine.test_admission import DONE, make_rig, spec

FACTS = (UnitTakenOver, UnitHeld, UnitHandedBack, HoldEnded)


def make_two(folder: Path) -> Rig:
    """The first launch of `a` takes for ever, every other one ten seconds."""
    return make_rig(folder, lambda effect: LaunchCourse(1e6 if "/a/" in effect and ".l1." in effect else 10.0, 0, DONE))


def unless_people(driver: Driver) -> bool:
    return not driver.waits_only_for_people()


def test_one_unit_is_held_and_the_others_go_on_until_it_is_handed_back(tmp_path: Path) -> None:
    rig = make_two(tmp_path)
    run = rig.create(spec("a", "b"))
    seen: list[Summary] = []

    async def during(engine: Engine) -> None:
        await until(lambda: len(rig.machine.starts) == 2)
        driver = engine.drivers[run.id]
        driver.deliver(TakeOver(id="take", unit="a"))
        await until(driver.waits_only_for_people)
        seen.append(driver.summary())
        driver.deliver(HandBack(id="back", unit="a"))

    assert rig.drive(run, during).status == "completed"
    (held,) = seen
    assert (held.status, held.stop, held.taken_over, held.done) == ("waiting", StopReason.WAITING_ON_HUMAN, ("a",), 1)
    assert [type(event) for event in rig.of_kind(run, *FACTS)] == list(FACTS)
    (hold,) = [event.hold for event in rig.of_kind(run, UnitHeld)]
    assert hold.why is HoldReason.PERSON
    assert "orc attach one a" in hold.reason
    assert len(rig.machine.starts) == 3, "the agent of a went on in a second launch"
    assert rig.state(run).steps["a"].attempts == 1


def test_what_was_taken_over_stays_held_for_every_later_process(tmp_path: Path) -> None:
    rig = make_two(tmp_path)
    run = rig.create(spec("a", "b"))

    async def during(engine: Engine) -> None:
        await until(lambda: len(rig.machine.starts) == 2)
        engine.drivers[run.id].deliver(TakeOver(id="take", unit="a"))

    assert rig.drive(run, during, stays=unless_people).taken_over == ("a",)
    assert rig.drive(run, stays=unless_people).taken_over == ("a",)
    assert rig.drive(run, inputs=[Pause(id="pause", now=True)]).status == "paused"
    assert rig.drive(run, inputs=[Resume(id="resume")], stays=unless_people).taken_over == ("a",)
    assert len(rig.machine.starts) == 2
    assert rig.drive(run, inputs=[HandBack(id="back", unit="a")]).status == "completed"
    assert len(rig.machine.starts) == 3


def test_a_process_that_dies_before_it_stops_the_agent_leaves_that_to_the_next(tmp_path: Path) -> None:
    rig = make_two(tmp_path)
    run = rig.create(spec("a", "b"))

    async def during(engine: Engine) -> None:
        await until(lambda: len(rig.machine.starts) == 2)
        engine.drivers[run.id].leave()

    rig.drive(run, during)
    rig.journal(run, UnitTakenOver(unit="a"))
    assert rig.drive(run, stays=unless_people).taken_over == ("a",)
    assert len(rig.machine.starts) == 2


def test_a_run_is_aborted_while_a_person_has_a_session(tmp_path: Path) -> None:
    rig = make_two(tmp_path)
    run = rig.create(spec("a"))
    rig.journal(run, UnitTakenOver(unit="a"))
    assert rig.drive(run, stays=unless_people).status == "waiting"
    summary = rig.drive(run, inputs=[Abort(id="abort")])
    assert (summary.status, summary.taken_over) == ("aborted", ())
    assert rig.machine.starts == []


def test_a_fork_has_an_agent_of_its_own(tmp_path: Path) -> None:
    rig = make_rig(tmp_path, lambda effect: LaunchCourse(10.0, 0, DONE))
    run = rig.create(spec("a"))
    rig.journal(run, UnitTakenOver(unit="a"), Forked(of="earlier", at=1, point="start"))
    assert rig.state(run).doing.taken == set()
