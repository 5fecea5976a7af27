"""Time as a budget, of a step, a day and a run, on whole engines whose time jumps."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agent_orchestrator.agents.adapter import Ending
from agent_orchestrator.core.budget import Amounts, Budget
from agent_orchestrator.core.effects import AgentChoice
from agent_orchestrator.core.events import BudgetWarned
from agent_orchestrator.core.ids import EffectId
from agent_orchestrator.core.inputs import Resume, SetLimits
from agent_orchestrator.core.limits import CLI_IDLE_S, PROGRAM_IDLE_S
from agent_orchestrator.engine.launches import Watch
from agent_orchestrator.testing.world import LaunchCourse, SimulatedLaunches
from tests.unit.engine.test_admission import CLAUDE, DONE, calls, limited, make_rig, spec

PLAIN = AgentChoice(name="command", options={"argv": ["agent"]})


def test_a_step_that_has_used_its_time_is_stopped_and_goes_on_with_more(tmp_path: Path) -> None:
    rig = make_rig(tmp_path, lambda effect: LaunchCourse(5.0, 1) if ".a1." in effect else LaunchCourse(20.0, 0, DONE))
    run = rig.create(spec("a", agent=PLAIN, max_attempts=2))
    paused = rig.drive(limited(rig, run, Budget(step=Amounts(wall_s=12.0))))
    assert (paused.stop, paused.status) == ("budget_exhausted", "paused")
    assert "of the step's time of 12s is spent" in paused.detail
    ran = [row.usage.wall_s for row in rig.store.usage(run.id)]
    assert [round(wall_s or 0.0) for wall_s in ran] == [5, 7]
    assert rig.state(run).steps["a"].attempts == 2
    more: list[Any] = [SetLimits(id="more", limits=Budget(step=Amounts(wall_s=60.0))), Resume(id="again")]
    assert rig.drive(run, inputs=more).status == "completed"
    assert rig.state(run).steps["a"].attempts == 2


def test_the_time_of_a_day_is_shared_by_all_runs_and_survives_the_process(tmp_path: Path) -> None:
    rig = make_rig(tmp_path, lambda effect: LaunchCourse(30.0, 0, DONE))
    day = Budget(day=Amounts(wall_s=50.0))
    first, second = (limited(rig, rig.create(spec("a", agent=PLAIN), name), day) for name in ("one", "two"))
    assert rig.drive(first).status == "completed"
    assert rig.drive(second).stop == "budget_exhausted"
    assert sum(row.usage.wall_s or 0.0 for row in rig.store.usage()) == pytest.approx(50, abs=1)


def test_a_played_agent_has_no_more_time_than_its_step(tmp_path: Path) -> None:
    rig = make_rig(tmp_path, lambda effect: LaunchCourse(1.0))
    script = tmp_path / "script.yaml"
    script.write_text("- step: a\n  takes: 60s\n")
    agent = AgentChoice(name="scripted", options={"script": str(script)})
    run = limited(rig, rig.create(spec("a", agent=agent, step={"budget": Amounts(wall_s=10.0)})), Budget())
    assert rig.drive(run).stop == "budget_exhausted"


def test_a_run_is_warned_of_its_time(tmp_path: Path) -> None:
    rig = make_rig(tmp_path, lambda effect: calls(0.001, 18))
    run = limited(rig, rig.create(spec("a")), Budget(run=Amounts(wall_s=22.0, cost_usd=5.0)))
    assert rig.drive(run).status == "completed"
    assert [(event.what, event.percent) for event in rig.of_kind(run, BudgetWarned)] == [("run.wall_s", 75)]


def test_an_agent_is_watched_for_its_silence_unless_it_may_be_silent_for_ever(tmp_path: Path) -> None:
    rig = make_rig(tmp_path, lambda effect: LaunchCourse(1.0, 1))
    seen: list[Watch] = []

    class Recording(SimulatedLaunches):
        def watch(self, effect: EffectId, limits: Watch, done: Callable[[Ending], None]) -> None:
            seen.append(limits)
            super().watch(effect, limits, done)

    rig.launches = lambda: Recording(rig.machine)
    program = AgentChoice(name="command", options={"argv": ["sh"]})
    rig.drive(rig.create(spec("a", agent=CLAUDE, max_attempts=1, idle_timeout_s=60.0), "two"))
    rig.drive(rig.create(spec("a", agent=CLAUDE, max_attempts=1), "three"))
    rig.drive(rig.create(spec("a", agent=CLAUDE, max_attempts=1, idle_timeout_s=0.0), "four"))
    rig.drive(rig.create(spec("a", agent=program, max_attempts=1), "five"))
    assert [limits.idle_timeout_s for limits in seen] == [60.0, CLI_IDLE_S, None, PROGRAM_IDLE_S]
