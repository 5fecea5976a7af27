"""What an input means for a workflow run: all judging lives here, a file per kind of input."""

from __future__ import annotations

from collections.abc import Sequence

from agent_orchestrator.core import inputs as i
from agent_orchestrator.core.events import DirectiveRefused
from agent_orchestrator.core.ids import unit_of
from agent_orchestrator.systems.workflow.decide.directives import answered, resumed
from agent_orchestrator.systems.workflow.decide.edits import edited
from agent_orchestrator.systems.workflow.decide.outcomes import agent_ended, check_ended, file_read, human_answered
from agent_orchestrator.systems.workflow.events import BackoffEnded, GatesPassed, WorkflowEvent
from agent_orchestrator.systems.workflow.state import WorkflowState


def decide(state: WorkflowState, what: i.Input, now_us: int) -> Sequence[WorkflowEvent]:
    """The events that follow from the input; outcomes that come here are wanted ones."""
    match what:
        case i.AgentEnded():
            return agent_ended(state, what, now_us)
        case i.CheckEnded():
            return check_ended(state, what)
        case i.TimerFired():
            return [BackoffEnded(step=unit_of(what.effect))]
        case i.GatesOpened():
            return [GatesPassed(step=unit_of(what.effect))]
        case i.HumanAnswered():
            return human_answered(state, unit_of(what.effect), what.approved, what.comments)
        case i.FileRead():
            return file_read(state, what)
        case i.Answer():
            return answered(state, what)
        case i.Resume():
            return resumed(state, what)
        case i.Pause() | i.Abort():
            return state.lifecycle.decide(what)
        case i.Edited():
            return edited(state, what)
        case i.Instruct():
            return [DirectiveRefused(directive=what.id, why=f"a workflow knows no {what.what!r}")]
        case i.CheckpointEnded() | i.MergeEnded():
            raise AssertionError("a workflow saves no trees and merges nothing")
