"""What an input means for a phased run: a file per kind of input."""

from __future__ import annotations

from collections.abc import Sequence

from agent_orchestrator.core.inputs import (
    Abort,
    AgentEnded,
    Answer,
    CheckEnded,
    CheckpointEnded,
    Edited,
    HumanAnswered,
    Input,
    Instruct,
    MergeEnded,
    Pause,
    Resume,
    TimerFired,
)
from agent_orchestrator.systems.phases.decide.answers import human_answered
from agent_orchestrator.systems.phases.decide.directives import answered, instructed, resumed
from agent_orchestrator.systems.phases.decide.edits import edited
from agent_orchestrator.systems.phases.decide.outcomes import agent_ended
from agent_orchestrator.systems.phases.decide.programs import check_ended, merge_ended, tree_saved
from agent_orchestrator.systems.phases.events import BackoffEnded, PhasesEvent
from agent_orchestrator.systems.phases.state import PhasesState


def decide(state: PhasesState, what: Input, now_us: int) -> Sequence[PhasesEvent]:
    """The events that follow from the input; outcomes that come here are wanted ones."""
    match what:
        case AgentEnded():
            return agent_ended(state, what, now_us)
        case CheckEnded():
            return check_ended(state, what)
        case CheckpointEnded():
            return tree_saved(state, what)
        case MergeEnded():
            return merge_ended(state, what)
        case TimerFired():
            return [BackoffEnded(step=what.effect.split("/")[1])]
        case HumanAnswered():
            return human_answered(state, what.effect.split("/")[1], approved=what.approved, comments=what.comments)
        case Answer():
            return answered(state, what)
        case Pause() | Abort():
            return list(state.lifecycle.decide(what))
        case Resume():
            return resumed(state, what)
        case Instruct():
            return instructed(state, what)
        case Edited():
            return edited(state, what)
        case _:
            raise AssertionError(f"a phased run asks for nothing that ends so: {what}")
