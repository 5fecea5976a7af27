"""What an input means for a team: a file per kind of input. Together they are the routing table, and nothing else routes."""

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
from agent_orchestrator.systems.team.decide.agents import agent_ended
from agent_orchestrator.systems.team.decide.directives import answered, instructed, resumed
from agent_orchestrator.systems.team.decide.edits import edited
from agent_orchestrator.systems.team.decide.people import judged
from agent_orchestrator.systems.team.decide.work import check_ended, merge_ended, work_saved
from agent_orchestrator.systems.team.events import BackoffEnded, TeamEvent
from agent_orchestrator.systems.team.state import TeamState


def decide(state: TeamState, what: Input, now_us: int) -> Sequence[TeamEvent]:
    """The events that follow from the input; outcomes that come here are wanted ones."""
    match what:
        case AgentEnded():
            return agent_ended(state, what, now_us)
        case CheckpointEnded():
            return work_saved(state, what, now_us)
        case MergeEnded():
            return merge_ended(state, what, now_us)
        case CheckEnded():
            return check_ended(state, what)
        case TimerFired():
            return [BackoffEnded(step=what.effect.split("/")[1])]
        case HumanAnswered():
            return judged(state, what.effect.split("/")[1], what.approved, what.comments)
        case Answer():
            return answered(state, what)
        case Resume():
            return resumed(state, what)
        case Pause() | Abort():
            return state.lifecycle.decide(what)
        case Instruct():
            return instructed(state, what)
        case Edited():
            return edited(state, what)
        case GatesOpened() | FileRead():
            raise AssertionError("a team waits for no gates and reads no files")
