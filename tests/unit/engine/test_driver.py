"""The driver's rules: durable before anything acts, one tick for all inputs, and a refused append changes nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest

from agent_orchestrator.core.effects import AgentChoice
from agent_orchestrator.core.events import CameLate, DirectiveRefused, Ended, Paused, StopReason, TakenUp
from agent_orchestrator.core.failure import FailureKind
from agent_orchestrator.core.ids import RunId
from agent_orchestrator.core.inputs import Abort, AgentEnded, Answer, Directive, Pause, Resume, Usage
from agent_orchestrator.core.who import Surface, Who
from agent_orchestrator.engine.engine import Engine
from agent_orchestrator.errors import Conflict, DiskFull, StoreCorrupt, StoreLocked
from agent_orchestrator.store.port import Append
from agent_orchestrator.systems.workflow.spec import StepSpec, WorkflowSpec
from agent_orchestrator.systems.workflow.system import WORKFLOW
from agent_orchestrator.testing.world import LaunchCourse
from tests.counting import count_calls
from tests.unit.engine.rig import Rig, agent, jump, named, until
from tests.unit.engine.toy import Did, Wanted

ANNA = Who(surface=Surface.CLI, user="anna", terminal="pts/3")
FULL = DiskFull(path="orc.db")
BUSY = StoreLocked(path="orc.db", seconds=10)


def post(rig: Rig, directive: Directive, run: str = "one") -> bool:
    signed = msgspec.structs.replace(directive, who=ANNA)
    return rig.store.post(RunId(run), directive.id, msgspec.json.encode(signed), rig.clock.now_us())


def test_nothing_starts_before_its_fact_is_durable(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    run = rig.toys(agent("a"))
    started: list[int] = []
    rig.store.on_append = lambda batch: started.append(len(rig.machine.starts))
    rig.store.refuse(FULL, BUSY, FULL)
    assert rig.drive(run).status == "completed"
    assert started[:4] == [0, 0, 0, 0], "the first tick was refused three times and nothing ran meanwhile"
    assert rig.machine.starts == [named("a")]


def test_a_refused_append_throws_the_state_away_keeps_the_inputs_and_goes_on(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    run = rig.toys(agent("a"), agent("b"))

    def refuse_outcomes(batch: Sequence[Append]) -> None:
        if any(b'"did"' in (part.body or b"") for part in batch) and not rig.notes.notices:
            rig.store.refuse(FULL, FULL)

    rig.store.on_append = refuse_outcomes
    assert rig.drive(run).status == "completed"
    assert sorted(rig.machine.starts) == [named("a"), named("b")], "the slots stay occupied until the outcomes are durable"
    assert sorted(event.outcome.effect for event in rig.of_kind(run, Did)) == [named("a"), named("b")]
    assert [notice for notice in rig.notes.notices if "is full" in notice], "it is said"


def test_what_broke_while_the_first_tick_was_refused_reaches_the_caller(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    run = rig.toys(agent("a"))
    rig.store.refuse(*[FULL] * 50)

    async def break_it(engine: Engine) -> None:
        await jump(engine, 3)
        engine.fail(RuntimeError("it broke"))

    with pytest.raises(RuntimeError, match="it broke"):
        rig.drive(run, break_it)
    assert rig.machine.starts == []


def test_a_store_that_goes_on_refusing_is_asked_less_and_less_often(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    run = rig.toys(agent("a"))
    rig.store.refuse(*[FULL] * 5)

    async def refuse_again(engine: Engine) -> None:
        await until(lambda: rig.machine.starts)
        rig.store.refuse(FULL, FULL)

    rig.drive(run, refuse_again)
    pauses = [float(notice.rsplit("Trying again in ")[1].split()[0]) for notice in rig.notes.notices]
    assert pauses == [0.5, 1.0, 2.0, 4.0, 8.0, 0.5, 1.0], "and from the beginning once it has accepted something"


def test_a_person_does_not_wait_for_a_store_that_is_left_alone(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    run = rig.toys(agent("a"))
    rig.store.refuse(*[FULL] * 20)

    async def speak(engine: Engine) -> None:
        await jump(engine, 200)
        rig.store.refusals.clear()
        engine.drivers["one"].deliver(Pause(id="d1"))
        await jump(engine, 1)
        assert rig.of_kind(run, Paused)

    assert rig.drive(run, speak).status == "paused"


def test_leaving_does_not_wait_for_it_either(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    run = rig.toys(agent("a"))
    rig.store.refuse(*[FULL] * 20)

    async def leave(engine: Engine) -> None:
        await jump(engine, 200)
        engine.leave()

    assert rig.drive(run, leave).status == "running"
    assert rig.clock.monotonic_s() < 201


def test_a_store_error_that_no_patience_mends_ends_the_drive(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    run = rig.toys(agent("a"))
    rig.store.refuse(StoreCorrupt(path="orc.db", detail="input/output error"))
    with pytest.raises(StoreCorrupt):
        rig.drive(run)
    assert rig.machine.starts == []


def test_a_conflict_answers_its_own_run_only(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    runs = [rig.toys(agent("a", run), run=run) for run in ("one", "two")]

    async def steal(engine: Engine) -> None:
        await jump(engine, 1)
        rig.journal(runs[0], Paused(reason="another process wrote"))

    first, second = rig.drive_each(runs, steal)
    assert isinstance(first, Conflict)
    assert getattr(second, "status", second) == "completed"
    assert rig.of_kind(runs[0], Did) == []


def test_an_outcome_that_nobody_wants_is_journaled_late_and_its_usage_counts(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    run = rig.toys(agent("a"))
    stale = AgentEnded(effect=named("a", launch=9), started_us=1, ended_us=2, usage=Usage(cost_usd=1.5))
    assert rig.drive(run, inputs=[stale]).status == "completed"
    assert rig.of_kind(run, CameLate) == [CameLate(effect=named("a", launch=9))]
    assert [event.outcome.effect for event in rig.of_kind(run, Did)] == [named("a")]
    assert [(row.effect, row.usage.cost_usd) for row in rig.store.usage(RunId("one"))] == [(named("a", launch=9), 1.5)]


def test_all_inputs_that_are_ready_share_one_tick(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    run = rig.toys(agent("a"))
    stale = [AgentEnded(effect=named("a", launch=number), started_us=1, ended_us=2) for number in (7, 8, 9)]
    rig.drive(run, inputs=stale)
    first = rig.store.rows(RunId("one"))[1][2]
    assert first.count(b"came_late") == 3
    assert b"taken_up" in first


def test_a_pause_drains_and_the_driver_leaves_when_nothing_runs(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    run = rig.toys(agent("a"))

    async def pause(engine: Engine) -> None:
        await jump(engine, 1)
        post(rig, Pause(id="d1", reason="lunch"))

    assert rig.drive(run, pause).status == "paused"
    (done,) = rig.of_kind(run, Did)
    assert done.outcome.failure is None
    assert rig.state(run).lifecycle.stop is StopReason.INTERRUPTED


def test_pause_now_stops_what_runs(tmp_path: Path) -> None:
    rig = Rig(tmp_path, lambda effect: LaunchCourse(500.0))
    run = rig.toys(agent("a"))

    async def pause(engine: Engine) -> None:
        await jump(engine, 1)
        post(rig, Pause(id="d1", now=True))

    assert rig.drive(run, pause).status == "paused"
    (done,) = rig.of_kind(run, Did)
    assert done.outcome.failure.kind is FailureKind.STOPPED
    assert rig.machine.processes[named("a")].exit_code == 143


def test_an_abort_ends_the_run_only_when_everything_is_stopped(tmp_path: Path) -> None:
    rig = Rig(tmp_path, lambda effect: LaunchCourse(500.0, ignores_term_s=8.0))
    run = rig.toys(agent("a"), agent("b"))

    async def abort(engine: Engine) -> None:
        await jump(engine, 1)
        post(rig, Abort(id="d1", reason="wrong branch"))
        await jump(engine, 3)
        assert not engine.drivers["one"].state.lifecycle.ended
        assert all(process.alive for process in rig.machine.processes.values())

    assert rig.drive(run, abort).status == "aborted"
    assert not any(process.alive for process in rig.machine.processes.values())
    assert rig.events(run)[-1] == Ended(stop=StopReason.ABORTED, detail="wrong branch")


def test_a_directive_is_taken_in_the_append_that_holds_its_fact(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    run = rig.toys(agent("a"))

    async def pause(engine: Engine) -> None:
        await jump(engine, 1)
        post(rig, Pause(id="d1"))

    rig.drive(run, pause)
    (part,) = [part for batch in rig.store.batches for part in batch if part.taken]
    assert part.taken == ("d1",)
    assert b'"paused"' in (part.body or b"")
    assert rig.store.inbox(RunId("one")) == []


def test_a_directive_sent_twice_or_read_twice_counts_once(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    run = rig.toys(agent("a"))

    async def pause(engine: Engine) -> None:
        await jump(engine, 1)
        assert post(rig, Pause(id="d1"))
        assert not post(rig, Pause(id="d1"))
        for _ in range(3):
            engine.drivers["one"].take_directive(Pause(id="d1", who=ANNA))

    rig.drive(run, pause)
    assert len(rig.of_kind(run, Paused)) == 1
    assert rig.of_kind(run, DirectiveRefused) == []


def test_a_refused_directive_is_taken_with_its_reason(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    run = rig.toys(agent("a"))
    post(rig, Answer(id="d1", approved=True))
    rig.drive(run)
    assert rig.of_kind(run, DirectiveRefused) == [DirectiveRefused(directive="d1", why="nobody asked", who=ANNA)]
    assert rig.store.inbox(RunId("one")) == []


def test_the_inbox_of_an_ended_run_is_emptied_with_reasons(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    run = rig.toys(agent("a"))
    rig.drive(run)
    post(rig, Pause(id="d1"))
    assert rig.drive(run).status == "completed"
    assert [event.directive for event in rig.of_kind(run, DirectiveRefused)] == ["d1"]


def test_event_times_never_go_back(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    run = rig.toys(agent("a"))

    async def set_clock_back(engine: Engine) -> None:
        await jump(engine, 1)
        rig.clock.set_wall(-86_400)

    rig.drive(run, set_clock_back)
    times = [at_us for _, at_us, _ in rig.store.rows(RunId("one"))]
    assert times == sorted(times)
    assert rig.clock.now_us() < times[0]


def test_a_run_that_runs_and_does_nothing_is_a_hang_and_raised(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    run = rig.toys(agent("a"))
    rig.system = msgspec.structs.replace(rig.system, advance=lambda state, now_us: ())
    with pytest.raises(AssertionError, match="run one is running but nothing is going on"):
        rig.drive(run)


def test_leaving_lets_agents_live_and_journals_nothing(tmp_path: Path) -> None:
    rig = Rig(tmp_path, lambda effect: LaunchCourse(500.0))
    run = rig.toys(agent("a"))

    async def leave(engine: Engine) -> None:
        await jump(engine, 1)
        engine.leave()

    assert rig.drive(run, leave).status == "running"
    assert rig.machine.processes[named("a")].alive
    assert [type(event).__name__ for event in rig.events(run)] == ["Began", "TakenUp", "Wanted"]


def test_a_resume_is_a_tick_without_inputs(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    run = rig.toys(agent("a"))
    rig.journal(run, Paused(reason="lunch"))
    assert rig.drive(run).status == "paused"
    assert rig.drive(run, inputs=[Resume(id="d1")]).status == "completed"


def test_a_played_agent_ends_with_its_process_and_is_lost_afterwards(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    effect = agent("a", agent=AgentChoice(name="scripted"))
    run = rig.toys(effect)
    rig.journal(run, TakenUp(boot="1", host="here", pid=1, version=""), Wanted(effect=effect))
    rig.drive(run)
    (done,) = rig.of_kind(run, Did)
    assert done.outcome.failure.kind is FailureKind.LOST


def count_more_steps(folder: Path) -> Counter[str]:
    """Count the calls that fifty more steps of a chain take, played in this process and not printed."""
    calls = []
    for length in (1, 10, 60):  # The first imports what all need.
        (folder / str(length)).mkdir()
        rig = Rig(folder / str(length), system=WORKFLOW)
        rig.more = {"prints": False}
        steps = [StepSpec(id=f"s{n}", agent="worker", prompt="p", needs=(f"s{n - 1}",) if n else ()) for n in range(length)]
        run = rig.create(WorkflowSpec(name="chain", steps=tuple(steps), agents={"": AgentChoice(name="scripted")}))
        calls.append(count_calls(lambda rig=rig, run=run: rig.drive(run)))  # type: ignore[misc]
    _, few, many = calls
    many.subtract(few)
    return many


def test_a_step_that_nothing_limits_looks_its_agent_up_once_and_at_no_budget(tmp_path: Path) -> None:
    more = count_more_steps(tmp_path)
    assert more["act"] == 50
    assert more["agent_effect"] == 50
    assert more["is_set"] == 0


def test_a_step_takes_one_tick_and_few_calls(tmp_path: Path) -> None:
    more = count_more_steps(tmp_path)
    assert (more["act"], more["_part"], more["append_at_once"]) == (50, 50, 50)
    assert more["advance"] == 100, "what follows, and that nothing else does"
    assert more.total() / 50 < 220, more.most_common(20)
