"""What an input means for a loop: a file per kind of input."""

from __future__ import annotations

from collections.abc import Sequence

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
from agent_orchestrator.systems.loop.decide.directives import aborted, answered, instructed, paused, resumed
from agent_orchestrator.systems.loop.decide.edits import edited
from agent_orchestrator.systems.loop.decide.outcomes import agent_ended, check_ended, human_answered, tree_saved
from agent_orchestrator.systems.loop.events import BackoffEnded, LoopEvent
from agent_orchestrator.systems.loop.state import LoopState


def decide(state: LoopState, what: Input, now_us: int) -> Sequence[LoopEvent]:
    """The events that follow from the input; outcomes that come here are wanted ones."""
    match what:
        case AgentEnded():
            return agent_ended(state, what)
        case CheckEnded():
            return check_ended(state, what)
        case CheckpointEnded():
            return tree_saved(state, what)
        case TimerFired():
            return [BackoffEnded()]
        case HumanAnswered():
            return human_answered(state, what.approved, what.comments)
        case Answer():
            return answered(state, what)
        case Pause():
            return paused(state, what)
        case Resume():
            return resumed(state, what)
        case Abort():
            return aborted(state, what)
        case Instruct():
            return instructed(state, what)
        case Edited():
            return edited(state, what)
        case GatesOpened() | FileRead() | MergeEnded():
            raise AssertionError("a loop waits for no gates, reads no files and merges nothing")
