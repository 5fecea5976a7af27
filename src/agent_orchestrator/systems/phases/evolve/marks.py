"""The few ways in which a phased run's marks change, shared by all facts."""

from __future__ import annotations

from agent_orchestrator.core.unit import Launch
from agent_orchestrator.systems.phases.events import AgentFinished, CheckFinished
from agent_orchestrator.systems.phases.spec import Criterion
from agent_orchestrator.systems.phases.state import LAUNCHES_KEPT, WARNINGS_KEPT, PhasesState
from agent_orchestrator.systems.phases.works import Work


def begin(state: PhasesState, work: Work, purpose: str) -> None:
    """Something of the unit begins: its number is taken, and nothing is due."""
    state.launches[work.unit] = state.launches.get(work.unit, 0) + 1
    work.purpose, work.due = purpose, None


def open_launch(state: PhasesState, unit: str, effect: str, at_us: int) -> None:
    """A program is to run."""
    history = state.history.setdefault(unit, [])
    history.append(Launch(effect, at_us))
    del history[:-LAUNCHES_KEPT]


def close_launch(state: PhasesState, event: AgentFinished | CheckFinished) -> None:
    """What became of a program."""
    history = state.history.get(event.step, [])
    for launch in reversed(history):
        if launch.effect == event.effect:
            launch.close(event)
            return


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
