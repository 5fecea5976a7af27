"""Budgets and rate limits on whole engines whose time jumps: who starts, who is held, who is stopped, what is spent."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from agent_orchestrator.core.budget import Amounts, Budget
from agent_orchestrator.core.effects import AgentChoice
from agent_orchestrator.core.events import BudgetWarned, HoldEnded, LimitsSet, Paused, UnitHeld
from agent_orchestrator.core.inputs import Pause, Resume, SetLimits
from agent_orchestrator.core.units import US
from agent_orchestrator.engine.driver import Driver
from agent_orchestrator.engine.engine import Engine
from agent_orchestrator.store.port import StoredRun
from agent_orchestrator.systems.workflow.spec import StepSpec, WorkflowSpec
from agent_orchestrator.systems.workflow.system import WORKFLOW
from agent_orchestrator.testing.world import LaunchCourse
from tests.unit.engine.rig import Rig, jump, until

METERED = AgentChoice(
    name="meter",
    adapter="command",
    options={
        "argv": ["agent"],
        "output": "json-lines",
        "usage": {"cost_usd": "cost", "input": "in", "output": "out"},
        "usage_counts": "sum",
    },
)
CLAUDE = AgentChoice(name="claude", options={"binary": "/bin/claude"})
DONE: dict[str, object] = {"status": "COMPLETED"}
RESET_S = 3_600


def call(cost: float, tokens: int = 10) -> str:
    return json.dumps({"cost": cost, "in": tokens, "out": 0})


def calls(cost: float, count: int, every_s: float = 1.0) -> LaunchCourse:
    says = tuple((every_s * (number + 1), call(cost)) for number in range(count))
    return LaunchCourse(every_s * (count + 1), 0, DONE, says=says)


def spec(*units: str, agent: AgentChoice = METERED, **more: Any) -> WorkflowSpec:
    prompt = str(Path(__file__).with_name("rig.py"))
    budgets = more.pop("step", {})
    steps = tuple(StepSpec(id=unit, agent="x", prompt=prompt, prompt_path=prompt, **budgets) for unit in units)
    return WorkflowSpec(name="w", steps=steps, agents={"": agent}, **more)


def limited(rig: Rig, run: StoredRun, budget: Budget | None = None, **amounts: Any) -> StoredRun:
    rig.journal(run, LimitsSet(limits=budget or Budget(run=Amounts(**amounts))))
    return run


def make_rig(folder: Path, cast: Callable[[str], LaunchCourse]) -> Rig:
    return Rig(folder, cast, WORKFLOW)


def spent(rig: Rig, *runs: StoredRun) -> float:
    """By the programs' own lines."""
    return sum(
        float(json.loads(line)["cost"])
        for run in runs
        for file in (rig.machine.folder / run.id).rglob("out")
        for line in file.read_text().splitlines()
    )


def booked(rig: Rig, *runs: StoredRun) -> float:
    """By the ledger."""
    return sum(row.usage.cost_usd or 0.0 for run in runs for row in rig.store.usage(run.id))


def raise_to(cost_usd: float) -> Sequence[Any]:
    budget = Budget(run=Amounts(cost_usd=cost_usd))
    return [SetLimits(id=f"limits-{cost_usd}", limits=budget), Resume(id=f"resume-{cost_usd}")]


@pytest.mark.parametrize("cost", [0.001, 0.03, 0.07, 0.3, 0.45, 0.8])
def test_four_agents_side_by_side_never_pass_a_dollar_by_more_than_one_call(cost: float, tmp_path: Path) -> None:
    rig = make_rig(tmp_path, lambda effect: calls(cost, 2_000))
    run = limited(rig, rig.create(spec("a", "b", "c", "d")), cost_usd=1.0)
    summary = rig.drive(run)
    assert (summary.status, summary.stop) == ("paused", "budget_exhausted")
    assert 1.0 - 8 * cost <= spent(rig, run) <= 1.0 + cost
    assert booked(rig, run) == pytest.approx(spent(rig, run)), "what a stopped launch used counts"
    assert all(step.attempts <= 1 for step in rig.state(run).steps.values())


def test_calls_that_grow_are_foreseen(tmp_path: Path) -> None:
    growing = tuple((number + 1.0, call(0.02 * 1.3**number)) for number in range(30))
    rig = make_rig(tmp_path, lambda effect: LaunchCourse(40.0, 0, DONE, says=growing))
    run = limited(rig, rig.create(spec("a", "b", "c", "d")), cost_usd=1.0)
    rig.drive(run)
    largest = max(json.loads(line)["cost"] for file in rig.machine.folder.rglob("out") for line in file.read_text().splitlines())
    assert spent(rig, run) <= 1.0 + largest


def test_a_higher_budget_goes_on_with_the_same_attempt(tmp_path: Path) -> None:
    rig = make_rig(tmp_path, lambda effect: calls(0.1, 15 if ".l1." in effect else 2))
    run = limited(rig, rig.create(spec("a")), cost_usd=1.0)
    paused = rig.drive(run)
    assert paused.stop == "budget_exhausted"
    assert f"orc resume {run.id} --budget-usd N" in paused.detail
    step = rig.state(run).steps["a"]
    assert (step.status, step.attempts) == ("PENDING", 1)
    assert "of the run's budget of $1.00 is spent" in step.last_error
    assert rig.drive(run, inputs=raise_to(2.0)).status == "completed"
    assert rig.state(run).steps["a"].attempts == 1
    assert len(rig.machine.starts) == 2


def test_going_on_without_a_higher_budget_pauses_again_and_spends_nothing(tmp_path: Path) -> None:
    rig = make_rig(tmp_path, lambda effect: calls(0.3, 9))
    run = limited(rig, rig.create(spec("a")), cost_usd=1.0)
    rig.drive(run)
    before = spent(rig, run)
    assert rig.drive(run, inputs=[Resume(id="again")]).stop == "budget_exhausted"
    assert spent(rig, run) == before


def test_a_budget_can_be_set_while_the_agents_work(tmp_path: Path) -> None:
    rig = make_rig(tmp_path, lambda effect: calls(0.1, 100))
    run = rig.create(spec("a"))

    async def during(engine: Engine) -> None:
        await until(lambda: spent(rig, run) > 0.3)
        engine.drivers[run.id].deliver(SetLimits(id="later", limits=Budget(run=Amounts(cost_usd=1.0))))

    assert rig.drive(run, during).stop == "budget_exhausted"
    assert spent(rig, run) <= 1.1


def test_three_quarters_and_nine_tenths_are_warned_of_once_each(tmp_path: Path) -> None:
    rig = make_rig(tmp_path, lambda effect: calls(0.1, 20))
    run = limited(rig, rig.create(spec("a")), cost_usd=1.0)
    rig.drive(run)
    assert [(warned.what, warned.percent) for warned in rig.of_kind(run, BudgetWarned)] == [
        ("run.cost_usd", 75),
        ("run.cost_usd", 90),
    ]


def test_tokens_are_a_budget_too(tmp_path: Path) -> None:
    rig = make_rig(tmp_path, lambda effect: calls(0.0, 500))
    run = limited(rig, rig.create(spec("a", "b")), tokens=200)
    assert rig.drive(run).stop == "budget_exhausted"
    assert 150 <= 10 * sum(len(file.read_text().splitlines()) for file in rig.machine.folder.rglob("out")) <= 210


def test_a_steps_budget_stops_the_step_and_lets_the_others_finish(tmp_path: Path) -> None:
    rig = make_rig(tmp_path, lambda effect: calls(0.1, 50 if "/a/" in effect else 3))
    made = spec("a", "b", step={"budget": Amounts(cost_usd=0.5)})
    run = rig.create(made)
    summary = rig.drive(run)
    assert summary.stop == "budget_exhausted"
    assert "of the step's budget of $0.50 is spent" in summary.detail
    state = rig.state(run)
    assert (state.steps["a"].status, state.steps["b"].status) == ("PENDING", "COMPLETED")
    assert spent(rig, run) <= 0.8 + 0.1


def test_an_attempt_that_spends_too_much_has_failed_and_the_next_one_gets_its_own(tmp_path: Path) -> None:
    rig = make_rig(tmp_path, lambda effect: calls(0.1, 50 if ".a1." in effect else 2))
    run = rig.create(spec("a", step={"attempt_budget": Amounts(cost_usd=0.5)}, max_attempts=2))
    assert rig.drive(run).status == "completed"
    step = rig.state(run).steps["a"]
    assert step.attempts == 2
    assert spent(rig, run) == pytest.approx(0.7)


def test_the_working_time_ends_what_works_and_waiting_is_left_out(tmp_path: Path) -> None:
    rig = make_rig(tmp_path, lambda effect: LaunchCourse(1_000.0, 0, DONE) if ".l1." in effect else LaunchCourse(10.0, 0, DONE))
    run = limited(rig, rig.create(spec("a", agent=METERED)), wall_s=600.0)

    async def during(engine: Engine) -> None:
        await jump(engine, 300)
        engine.drivers[run.id].deliver(Pause(id="p", now=True))

    begun_s = rig.clock.monotonic_s()
    rig.drive(run, during)
    rig.clock.advance(5_000)
    summary = rig.drive(run, inputs=[Resume(id="r")])
    assert summary.status == "completed", "the second launch took ten seconds of the 300 that were left"
    assert rig.clock.monotonic_s() - begun_s > 5_000


def test_when_the_working_time_is_over_the_run_pauses_and_more_time_lets_it_go_on(tmp_path: Path) -> None:
    rig = make_rig(tmp_path, lambda effect: LaunchCourse(1_000.0, 0, DONE) if ".l1." in effect else LaunchCourse(10.0, 0, DONE))
    run = limited(rig, rig.create(spec("a")), wall_s=600.0)
    summary = rig.drive(run)
    assert (summary.status, summary.stop) == ("paused", "budget_exhausted")
    assert summary.detail.startswith("the run's time of 10m 00s is used up; raise it with: orc resume")
    more = SetLimits(id="more", limits=Budget(run=Amounts(wall_s=700.0)))
    assert rig.drive(run, inputs=[more, Resume(id="r")]).status == "completed"
    assert rig.state(run).steps["a"].attempts == 1


def test_a_day_is_shared_by_all_runs_of_the_repository(tmp_path: Path) -> None:
    rig = make_rig(tmp_path, lambda effect: calls(0.1, 200))
    day = Budget(day=Amounts(cost_usd=1.0))
    runs = [limited(rig, rig.create(spec("a", "b"), name), day) for name in ("one", "two")]
    summaries = rig.drive_all(runs)
    assert [summary.stop for summary in summaries] == ["budget_exhausted", "budget_exhausted"]
    assert 0.6 <= spent(rig, *runs) <= 1.0 + 0.1
    assert "of the day's budget of $1.00 is spent" in summaries[0].detail
    third = limited(rig, rig.create(spec("a"), "three"), day)
    assert rig.drive(third).stop == "budget_exhausted"
    assert spent(rig, *runs, third) <= 1.0 + 0.1
    rig.clock.advance(86_400)
    tomorrow = rig.drive(third, inputs=[Resume(id="tomorrow")])
    assert tomorrow.stop == "budget_exhausted"
    assert spent(rig, third) > 0.5


def test_a_held_agent_is_stopped_with_the_run_without_ever_having_started(tmp_path: Path) -> None:
    rig = make_rig(tmp_path, lambda effect: calls(0.3, 9))
    run = limited(rig, rig.create(spec("a", "b")), cost_usd=0.5)

    async def during(engine: Engine) -> None:
        await until(lambda: engine.drivers[run.id].state.doing.holds)
        engine.drivers[run.id].deliver(Pause(id="p", now=True))

    assert rig.drive(run, during).status == "paused"
    assert not rig.state(run).doing.holds
    assert len(rig.machine.starts) == 1


# Rate limits


def refused(at_us: int | None, window: str = "five_hour") -> LaunchCourse:
    told: dict[str, Any] = {"status": "rejected", "rateLimitType": window}
    if at_us is not None:
        told["resetsAt"] = at_us // US
    lines: list[dict[str, Any]] = [
        {"type": "system", "subtype": "init", "session_id": "s1", "model": "m"},
        {"type": "rate_limit_event", "rate_limit_info": told},
        {"type": "result", "subtype": "success", "is_error": True, "result": "API Error (429)", "api_error_status": 429},
    ]
    return LaunchCourse(2.0, 1, None, says=tuple((1.0, json.dumps(line)) for line in lines))


def worked() -> LaunchCourse:
    report = {"status": "COMPLETED"}
    result = {"type": "result", "subtype": "success", "is_error": False, "result": "ok", "structured_output": report}
    begun = {"type": "system", "subtype": "init", "session_id": "s1", "model": "m"}
    return LaunchCourse(2.0, 0, None, says=tuple((1.0, json.dumps(line)) for line in (begun, result)))


def impatient(driver: Driver) -> bool:
    return not driver.is_parked()


def parking(folder: Path, units: Sequence[str] = ("a", "b", "c"), *, window: str = "five_hour", known: bool = True) -> Rig:
    """The first launch is refused for an hour, and all others that start within it."""
    rig: Rig | None = None
    until_us = 0

    def cast(effect: str) -> LaunchCourse:
        nonlocal until_us
        assert rig is not None
        now_us = rig.clock.now_us()
        until_us = until_us or now_us + RESET_S * US
        return refused(until_us if known else None, window) if now_us < until_us else worked()

    rig = make_rig(folder, cast)
    return rig


def test_a_rate_limit_parks_every_agent_of_the_account_and_costs_no_attempt(tmp_path: Path) -> None:
    rig = parking(tmp_path)
    run = rig.create(spec("a", "b", "c", agent=CLAUDE, max_attempts=1))
    begun_us = rig.clock.now_us()
    assert rig.drive(run).status == "completed"
    state = rig.state(run)
    assert {step.attempts for step in state.steps.values()} == {1}
    assert rig.clock.now_us() - begun_us >= RESET_S * US
    held = rig.of_kind(run, UnitHeld)
    assert {event.unit for event in held} == {"a", "b", "c"}
    assert {(event.hold.account, event.hold.window) for event in held} == {("claude", "5-hour")}
    assert len(rig.machine.starts) == 6, "three were refused, three worked"
    assert len(rig.of_kind(run, HoldEnded)) == 3
    resets_us = rig.store.windows()[0].resets_us
    untils = {event.hold.until_us - resets_us for event in held}
    assert len(untils) == 3, "they do not start all at once"
    assert all(0 <= later_us <= 30 * US for later_us in untils)


def test_the_session_goes_on_after_the_limit(tmp_path: Path) -> None:
    rig = parking(tmp_path)
    run = rig.create(spec("a", agent=CLAUDE))
    rig.drive(run, stays=impatient)
    effect = rig.state(run).doing.of("a")
    assert effect.session == "s1"


def test_a_second_run_is_parked_at_once_without_a_call(tmp_path: Path) -> None:
    rig = parking(tmp_path)
    first = rig.create(spec("a", agent=CLAUDE), "one")
    parked = rig.drive(first, stays=impatient)
    assert (parked.status, parked.stop) == ("waiting", "rate_limited")
    assert parked.detail.startswith("parked until ")
    assert parked.detail.endswith("(claude, 5-hour window)")
    second = rig.create(spec("a", agent=CLAUDE), "two")
    assert rig.drive(second, stays=impatient).stop == "rate_limited"
    assert [effect.split("/")[0] for effect in rig.machine.starts] == ["one"]
    assert "parked until" in rig.state(second).steps["a"].last_error
    assert [summary.status for summary in rig.drive_all([first, second])] == ["completed", "completed"]
    assert rig.state(second).steps["a"].attempts == 1


def test_another_account_is_not_parked(tmp_path: Path) -> None:
    rig = parking(tmp_path)
    run = rig.create(spec("a", agent=CLAUDE), "one")
    rig.drive(run, stays=impatient)
    other = AgentChoice(name="claude", options={"binary": "/bin/claude", "account": "the other one"})
    second = rig.create(spec("a", agent=other), "two")
    rig.drive(second, stays=impatient)
    assert len(rig.machine.starts) == 2


def test_a_limit_without_a_time_is_waited_for_longer_each_time(tmp_path: Path) -> None:
    rig = parking(tmp_path, known=False)
    run = rig.create(spec("a", agent=CLAUDE))
    assert rig.drive(run).status == "completed"
    untils = [event.hold.until_us for event in rig.of_kind(run, UnitHeld)]
    pauses = [round((later - sooner) / US / 60) for sooner, later in itertools.pairwise(untils)]
    assert pauses[:4] == [2, 4, 8, 16], "minutes, doubling, with a little jitter"
    assert rig.state(run).steps["a"].attempts == 1


def test_a_parked_run_survives_the_process_and_the_machine(tmp_path: Path) -> None:
    rig = parking(tmp_path)
    run = rig.create(spec("a", "b", agent=CLAUDE))
    rig.drive(run, stays=impatient)
    rig.machine.reboot()
    starts = len(rig.machine.starts)
    assert rig.drive(run, stays=impatient).stop == "rate_limited"
    assert len(rig.machine.starts) == starts, "what is parked is not started again"
    assert rig.drive(run).status == "completed"
    assert {step.attempts for step in rig.state(run).steps.values()} == {1}


def test_time_in_the_park_is_outside_time_limits(tmp_path: Path) -> None:
    rig = parking(tmp_path)
    run = limited(rig, rig.create(spec("a", agent=CLAUDE, timeout_s=60.0)), wall_s=120.0)
    assert rig.drive(run).status == "completed"


def test_a_run_that_is_paused_stays_parked_when_the_window_opens(tmp_path: Path) -> None:
    rig = parking(tmp_path)
    run = rig.create(spec("a", agent=CLAUDE))

    async def during(engine: Engine) -> None:
        driver = engine.drivers[run.id]
        await until(driver.is_parked)
        driver.deliver(Pause(id="p"))

    assert rig.drive(run, during).status == "paused"
    starts = len(rig.machine.starts)
    rig.clock.advance(2 * RESET_S)
    assert rig.drive(run, stays=lambda driver: False).status == "paused"
    assert len(rig.machine.starts) == starts
    assert rig.drive(run, inputs=[Resume(id="r")]).status == "completed"


def test_without_limits_and_without_refusals_nothing_is_written_down(tmp_path: Path) -> None:
    rig = make_rig(tmp_path, lambda effect: calls(0.1, 3))
    run = rig.create(spec("a", "b"))
    assert rig.drive(run).status == "completed"
    assert rig.of_kind(run, UnitHeld, HoldEnded, BudgetWarned, LimitsSet, Paused) == []
