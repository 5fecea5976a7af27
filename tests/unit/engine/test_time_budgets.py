"""Time as a budget, of a step, a day and a run, on whole engines whose time jumps."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from agent_orchestrator.core.budget import Amounts, Budget
from agent_orchestrator.core.effects import AgentChoice
from agent_orchestrator.core.events import BudgetWarned
from agent_orchestrator.core.inputs import Resume, SetLimits
from agent_orchestrator.testing.world import LaunchCourse
from tests.unit.engine.test_admission import DONE, calls, limited, make_rig, spec

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
