"""Runs of 0.1.0 published whenever there was a remote: taken up now, they do so only when a person says so."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from agent_orchestrator.core.effects import RunCheck
from agent_orchestrator.core.inputs import Resume
from agent_orchestrator.core.system import Context
from agent_orchestrator.engine.journal import Folded, decode_events
from agent_orchestrator.systems.phases.spec import PhasesSpec
from agent_orchestrator.systems.phases.system import PHASES
from tests.journals.record import Recorded

JOURNAL = Path(__file__).parents[2] / "journals" / "0.1.0" / "phases_remote.json"
RECORDED = msgspec.json.decode(JOURNAL.read_bytes(), type=Recorded)
ROWS = RECORDED.rows[: next(n for n, (_, events) in enumerate(RECORDED.rows) if events[-1]["event"] == "ended")]


def taken_up(rows: int, changes: dict[str, object]) -> list[RunCheck]:
    """The tools that a run whose journal ends here wants to start."""
    spec, context = msgspec.convert(RECORDED.spec, PhasesSpec), msgspec.convert(RECORDED.context, Context)
    folded = Folded(PHASES, PHASES.fresh(spec, context), 0, 0)
    for seq, (at_us, events) in enumerate(ROWS[:rows]):
        folded.add(seq, at_us, decode_events(PHASES, msgspec.json.encode(events)))
    if changes:
        folded.apply(folded.decide(Resume(id="again", changes=changes), folded.at_us), folded.at_us)
    while more := PHASES.advance(folded.state, folded.at_us):
        folded.apply(more, folded.at_us)
    return [effect for effect in folded.state.doing if isinstance(effect, RunCheck) and effect.argv]


@pytest.mark.parametrize("rows", range(1, len(ROWS) + 1))
def test_an_old_run_publishes_nothing_wherever_it_was_cut_off(rows: int) -> None:
    assert taken_up(rows, {}) == []
    assert taken_up(rows, {"publish": {"publish": False}}) == []


def test_an_old_run_publishes_when_it_is_told_to() -> None:
    asked: dict[str, object] = {"publish": {"publish": True, "remote": "origin", "repository": "github.com/o/r"}}
    started = [tool.argv for rows in range(1, len(ROWS) + 1) for tool in taken_up(rows, asked)]
    assert {argv[:2] for argv in started} == {("gh", "issue"), ("git", "push")}
    assert all("github.com/o/r" in argv for argv in started if argv[0] == "gh")
