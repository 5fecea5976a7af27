"""The consumption of an agent is judged whenever it consumes something."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent_orchestrator.core.ids import EffectId, RunId
from agent_orchestrator.testing.world import LaunchCourse
from tests.unit.engine.rig import Recorder
from tests.unit.engine.test_admission import DONE, booked, call, limited, make_rig, spec


class Counting(Recorder):
    """A store that counts how often something is set aside."""

    marks = 0

    def reserve(
        self, run: str, effect: str, amount: tuple[float, int], limit: tuple[float, int], since_us: int, at_us: int
    ) -> bool:
        self.marks += 1
        return super().reserve(RunId(run), EffectId(effect), amount, limit, since_us, at_us)


def test_output_that_is_no_call_costs_no_commit(tmp_path: Path) -> None:
    says = tuple((number + 1.0, call(0.01) if number % 50 == 0 else '{"thinking": true}') for number in range(200))
    rig = make_rig(tmp_path, lambda effect: LaunchCourse(210.0, 0, DONE, says=says))
    rig.store = rig.machine.store = store = Counting()
    run = limited(rig, rig.create(spec("a")), cost_usd=1.0)
    assert rig.drive(run).status == "completed"
    assert store.marks == 1 + 4, "before the start, and after each call"
    assert booked(rig, run) == pytest.approx(0.04)
