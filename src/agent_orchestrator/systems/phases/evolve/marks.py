"""The few ways in which a phased run's marks change, shared by all facts."""

from __future__ import annotations

from agent_orchestrator.core.limits import WARNINGS_KEPT
from agent_orchestrator.core.units import say_count
from agent_orchestrator.systems.phases.spec import Criterion
from agent_orchestrator.systems.phases.state import PhasesState
from agent_orchestrator.systems.phases.works import PhasesWork, ReviewWork


def warn(state: PhasesState, *texts: str) -> None:
    """Keep something that a person should know, once."""
    new = [text for text in dict.fromkeys(texts) if text and text not in state.warnings]
    state.warnings = [*state.warnings, *new][-WARNINGS_KEPT:]


def next_command(criteria: tuple[Criterion, ...], first: int) -> int | None:
    """Give the index of the next criterion that is run, from `first` on."""
    return next((at for at in range(first, len(criteria)) if criteria[at].command is not None), None)


def drop_work(state: PhasesState, unit: str) -> PhasesWork | None:
    """Let the unit be at work no longer."""
    state.doing.drop(unit)
    return state.works.pop(unit, None)


def check_globals(state: PhasesState, work: ReviewWork) -> None:
    """Run the criteria of the whole, one after the other."""
    work.looping, work.failing = False, []
    at = next_command(state.spec.plan.criteria, 0)
    work.at, work.due = at or 0, "criteria" if at is not None else "reviewed"


def go_on_reviewing(state: PhasesState, work: ReviewWork, then: str) -> None:
    """Go on with the next finding, the next scan, or, when the outer loop has made its iterations, the criteria of the whole."""
    match then or _then_in_0_1_0(state, work):
        case "repair":
            work.due = "repair"
        case "scan":
            work.iteration += 1
            work.due = "scan"
        case _:
            work.left.append(f"the outer loop ended after {say_count(work.iteration, 'iteration')} without a clean scan")
            check_globals(state, work)


def _then_in_0_1_0(state: PhasesState, work: ReviewWork) -> str:
    """Say what followed, for journals that do not say it: never changed."""
    if work.findings:
        return "repair"
    return "scan" if work.iteration < state.spec.plan.outer_max else "criteria"
