"""Says what an input means for a loop: a file per kind of input."""

from __future__ import annotations

from collections.abc import Sequence

from agent_orchestrator.core import inputs as i
from agent_orchestrator.systems.loop.decide.directives import abort_loop, answer_question, instruct_loop, pause_loop, resume_loop
from agent_orchestrator.systems.loop.decide.edits import adopt_edit
from agent_orchestrator.systems.loop.decide.outcomes import agent_ended, check_ended, human_answered, tree_saved
from agent_orchestrator.systems.loop.events import BackoffEnded, LoopEvent
from agent_orchestrator.systems.loop.state import LoopState


def decide(state: LoopState, what: i.Input, now_us: int) -> Sequence[LoopEvent]:
    """The events that follow from the input; outcomes that come here are wanted ones."""
    match what:
        case i.AgentEnded():
            return agent_ended(state, what)
        case i.CheckEnded():
            return check_ended(state, what)
        case i.CheckpointEnded():
            return tree_saved(state, what)
        case i.TimerFired():
            return [BackoffEnded()]
        case i.HumanAnswered():
            return human_answered(state, what.approved, what.comments)
        case i.Answer():
            return answer_question(state, what)
        case i.Pause():
            return pause_loop(state, what)
        case i.Resume():
            return resume_loop(state, what)
        case i.Abort():
            return abort_loop(state, what)
        case i.Instruct():
            return instruct_loop(state, what)
        case i.Edited():
            return adopt_edit(state, what)
        case i.GatesOpened() | i.FileRead() | i.MergeEnded():
            raise AssertionError("a loop waits for no gates, reads no files and merges nothing")
