"""Says what an input means for a workflow run: all judging lives here, a file per kind of input."""

from __future__ import annotations

from collections.abc import Sequence

from agent_orchestrator.core import inputs as i
from agent_orchestrator.core.events import BackoffEnded
from agent_orchestrator.core.ids import unit_of
from agent_orchestrator.core.lifecycle import refuse
from agent_orchestrator.systems.workflow.decide.directives import answer_step, resume_run
from agent_orchestrator.systems.workflow.decide.edits import adopt_edit
from agent_orchestrator.systems.workflow.decide.outcomes import agent_ended, check_ended, file_read, human_answered
from agent_orchestrator.systems.workflow.events import GatesPassed, WorkflowEvent
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
            return answer_step(state, what)
        case i.Resume():
            return resume_run(state, what)
        case i.Pause() | i.Abort():
            return state.lifecycle.decide(what)
        case i.Edited():
            return adopt_edit(state, what)
        case i.Instruct():
            return refuse(what, f"a workflow knows no {what.what!r}")
        case i.CheckpointEnded() | i.MergeEnded():
            raise AssertionError("a workflow saves no trees and merges nothing")
