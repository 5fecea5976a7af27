"""What an input means for a workflow run: all judging lives here, a file per kind of input."""

from __future__ import annotations

from collections.abc import Sequence

from agent_orchestrator.core.events import DirectiveRefused
from agent_orchestrator.core.inputs import (
    Abort,
    AgentEnded,
    Answer,
    CheckEnded,
    CheckpointEnded,
    Edited,
    FileRead,
    GatesOpened,
    HumanAnswered,
    Input,
    Instruct,
    MergeEnded,
    Pause,
    Resume,
    TimerFired,
)
from agent_orchestrator.systems.workflow.decide.directives import answered, resumed
from agent_orchestrator.systems.workflow.decide.edits import edited
from agent_orchestrator.systems.workflow.decide.outcomes import agent_ended, check_ended, file_read, human_answered, unit_of
from agent_orchestrator.systems.workflow.events import BackoffEnded, GatesPassed, WorkflowEvent
from agent_orchestrator.systems.workflow.state import WorkflowState


def decide(state: WorkflowState, what: Input, now_us: int) -> Sequence[WorkflowEvent]:
    """The events that follow from the input; outcomes that come here are wanted ones."""
    match what:
        case AgentEnded():
            return agent_ended(state, what, now_us)
        case CheckEnded():
            return check_ended(state, what)
        case TimerFired():
            return [BackoffEnded(step=unit_of(what.effect))]
        case GatesOpened():
            return [GatesPassed(step=unit_of(what.effect))]
        case HumanAnswered():
            return human_answered(state, unit_of(what.effect), what.approved, what.comments)
        case FileRead():
            return file_read(state, what)
        case Answer():
            return answered(state, what)
        case Resume():
            return resumed(state, what)
        case Pause() | Abort():
            return state.lifecycle.decide(what)
        case Edited():
            return edited(state, what)
        case Instruct():
            return [DirectiveRefused(directive=what.id, why=f"a workflow knows no {what.what!r}")]
        case CheckpointEnded() | MergeEnded():
            raise AssertionError("a workflow saves no trees and merges nothing")
