"""What an input means for a loop: a file per kind of input."""

from __future__ import annotations

from collections.abc import Sequence

from agent_orchestrator.core import inputs as i
from agent_orchestrator.systems.loop.decide.directives import aborted, answered, instructed, paused, resumed
from agent_orchestrator.systems.loop.decide.edits import edited
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
            return answered(state, what)
        case i.Pause():
            return paused(state, what)
        case i.Resume():
            return resumed(state, what)
        case i.Abort():
            return aborted(state, what)
        case i.Instruct():
            return instructed(state, what)
        case i.Edited():
            return edited(state, what)
        case i.GatesOpened() | i.FileRead() | i.MergeEnded():
            raise AssertionError("a loop waits for no gates, reads no files and merges nothing")
