"""States in the middle of a tick that readers are promised: each is written, with the commit of the tick and in order."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from agent_orchestrator.core.effects import AgentChoice
from agent_orchestrator.core.ids import EffectId, unit_of
from agent_orchestrator.engine.allowance import BURST_BYTES, FILE_BYTES, RATE_BYTES_S
from agent_orchestrator.errors import DiskFull
from agent_orchestrator.store.port import Append
from agent_orchestrator.systems.workflow.spec import StepSpec, WorkflowSpec
from agent_orchestrator.systems.workflow.system import WORKFLOW
from agent_orchestrator.testing.world import LaunchCourse
from tests.unit.engine.rig import Rig, agent, asides, printed
from tests.unit.engine.toy import Did, as_system

AGENTS = 200


def promising(rig: Rig, always: bool) -> Rig:
    """The toy promises its readers every state in which one more is done."""
    rig.toy.moments = {Did: always}
    rig.system = as_system(rig.toy)
    return rig


def drafts(rig: Rig) -> list[int]:
    """Count what is done in the drafts that lie there, in the order in which they were written."""
    found = sorted(rig.home.glob(".toy.json.*"), key=lambda file: int(file.name.split("-")[1].split(".")[0]))
    return [len(json.loads(file.read_text())["done"]) for file in found]


def test_each_state_of_a_tick_that_is_promised_is_written_with_the_commit_of_the_tick(tmp_path: Path) -> None:
    rig = promising(Rig(tmp_path, lambda effect: LaunchCourse(1.0)), always=True)
    run = rig.toys(agent("a"), agent("b"), agent("c"))
    seen: list[tuple[list[int], bool]] = []

    def look(batch: Sequence[Append]) -> None:
        seen.extend((drafts(rig), part.body is not None) for part in batch if part.printed)

    rig.store.on_append = look
    rig.drive(run)
    assert ([1, 2, 3], True) in seen
    assert [file.name for file in rig.home.iterdir() if file.name.startswith(".")] == []
    assert sorted(printed(rig)["done"]) == ["a", "b", "c"]


def test_an_agent_that_starts_finds_its_step_at_work_in_the_state_file(tmp_path: Path) -> None:
    found: list[str] = []

    def look(effect: EffectId) -> LaunchCourse:
        state = json.loads((rig.home / ".agents/runs/one/run_state.json").read_bytes())
        found.append(state["steps"][unit_of(effect)]["status"])
        return LaunchCourse(1.0)

    rig = Rig(tmp_path, look, WORKFLOW)
    (tmp_path / "p").write_text("Do it.")
    steps = tuple(
        StepSpec(id=f"s{n}", agent="worker", prompt="p", prompt_path=str(tmp_path / "p"), needs=(f"s{n - 1}",) if n else ())
        for n in range(3)
    )
    choice = AgentChoice(name="command", options={"argv": ["true"]})
    assert rig.drive(rig.create(WorkflowSpec(name="chain", steps=steps, agents={"": choice}))).status == "completed"
    assert found == ["RUNNING"] * 3


def test_a_new_run_is_shown_as_it_begins(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    rig.toy.shows_wanted = True
    seen: list[Any] = []
    rig.store.on_append = lambda batch: seen.extend(
        json.loads(file.read_text())["wanted"] for file in rig.home.glob(".toy.json.*")
    )
    rig.drive(rig.toys(agent("a")))
    assert seen[0] == 0


def test_states_of_a_tick_that_was_refused_leave_nothing_behind(tmp_path: Path) -> None:
    rig = promising(Rig(tmp_path, lambda effect: LaunchCourse(1.0)), always=True)
    run = rig.toys(agent("a"), agent("b"))
    left: list[list[int]] = []

    def refuse(batch: Sequence[Append]) -> None:
        if any(b'"did"' in (part.body or b"") for part in batch):
            left.append(drafts(rig))
            if len(left) < 3:
                rig.store.refuse(DiskFull(path="orc.db"))

    rig.store.on_append = refuse
    rig.drive(run)
    assert left == [[1, 2]] * 3
    assert asides(rig) == []
    assert sorted(printed(rig)["done"]) == ["a", "b"]


def test_more_states_than_the_store_remembers_are_promised_over_several_ticks(tmp_path: Path) -> None:
    rig = promising(Rig(tmp_path, lambda effect: LaunchCourse(1.0)), always=True)
    count = 50
    run = rig.toys(*(agent(f"s{number}") for number in range(count)))
    seen: list[int] = []

    def look(batch: Sequence[Append]) -> None:
        for part in batch:
            assert len(part.printed) <= 8
        seen.extend(drafts(rig))

    rig.store.on_append = look
    rig.drive(run)
    assert sorted(set(seen)) == list(range(count + 1)), "none is left out"


@pytest.mark.parametrize(("padding", "most"), [(10_000, 4), (200_000, 1)])
def test_of_large_states_fewer_are_shown_in_a_tick_so_that_it_stays_short(tmp_path: Path, padding: int, most: int) -> None:
    rig = promising(Rig(tmp_path, lambda effect: LaunchCourse(1.0)), always=False)
    rig.toy.padding = padding
    seen: list[int] = []
    rig.store.on_append = lambda batch: seen.append(len(drafts(rig)))
    run = rig.toys(*(agent(f"s{number}") for number in range(AGENTS)))
    rig.drive(run)
    assert max(seen) == most


@pytest.mark.parametrize("always", [True, False])
def test_a_burst_writes_no_more_than_its_allowance_unless_it_must(tmp_path: Path, always: bool) -> None:
    rig = promising(Rig(tmp_path, lambda effect: LaunchCourse(0.01 * (1 + int(effect.split("/")[1][1:])))), always=always)
    size = rig.toy.padding = 100_000
    rig.toy.on_print = lambda: rig.clock.advance(0.001)
    run = rig.toys(*(agent(f"s{number}") for number in range(AGENTS)))
    begun_s = rig.clock.monotonic_s()
    rig.drive(run)
    elapsed_s = rig.clock.monotonic_s() - begun_s
    parts = [part for batch in rig.store.batches for part in batch if part.printed]
    passing = sum(len(part.printed) for part in parts if part.body is not None)
    allowed = (BURST_BYTES + elapsed_s * RATE_BYTES_S) / (size + FILE_BYTES) + 1
    if always:
        assert passing == AGENTS
    else:
        assert BURST_BYTES // (size + FILE_BYTES) <= passing <= allowed
        assert passing < AGENTS / 2
    assert len(printed(rig)["done"]) == AGENTS
