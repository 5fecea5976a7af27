"""The few ways in which a phased run's marks change, shared by all facts."""

from __future__ import annotations

from agent_orchestrator.core.limits import WARNINGS_KEPT
from agent_orchestrator.systems.phases.spec import Criterion
from agent_orchestrator.systems.phases.state import PhasesState
from agent_orchestrator.systems.phases.works import Work


def warn(state: PhasesState, *texts: str) -> None:
    """Something a person should know, once."""
    new = [text for text in dict.fromkeys(texts) if text and text not in state.warnings]
    state.warnings = [*state.warnings, *new][-WARNINGS_KEPT:]


def next_command(criteria: tuple[Criterion, ...], first: int) -> int | None:
    """The index of the next criterion that is run, from `first` on."""
    return next((at for at in range(first, len(criteria)) if criteria[at].command is not None), None)


def drop_work(state: PhasesState, unit: str) -> Work | None:
    """The unit is at work no longer."""
    state.doing.drop(unit)
    return state.works.pop(unit, None)
