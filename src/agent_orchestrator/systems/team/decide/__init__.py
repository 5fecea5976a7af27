"""What an input means for a team: a file per kind of input. Together they are the routing table, and nothing else routes."""

from __future__ import annotations

from collections.abc import Sequence

from agent_orchestrator.core import inputs as i
from agent_orchestrator.core.ids import unit_of
from agent_orchestrator.systems.team.decide.agents import agent_ended
from agent_orchestrator.systems.team.decide.people import answered, edited, instructed, judged, resumed
from agent_orchestrator.systems.team.decide.work import check_ended, merge_ended, work_saved
from agent_orchestrator.systems.team.events import BackoffEnded, TeamEvent
from agent_orchestrator.systems.team.state import TeamState


def decide(state: TeamState, what: i.Input, now_us: int) -> Sequence[TeamEvent]:
    """The events that follow from the input; outcomes that come here are wanted ones."""
    match what:
        case i.AgentEnded():
            return agent_ended(state, what, now_us)
        case i.CheckpointEnded():
            return work_saved(state, what, now_us)
        case i.MergeEnded():
            return merge_ended(state, what, now_us)
        case i.CheckEnded():
            return check_ended(state, what)
        case i.TimerFired():
            return [BackoffEnded(step=unit_of(what.effect))]
        case i.HumanAnswered():
            return judged(state, unit_of(what.effect), what.approved, what.comments)
        case i.Answer():
            return answered(state, what)
        case i.Resume():
            return resumed(state, what)
        case i.Pause() | i.Abort():
            return state.lifecycle.decide(what)
        case i.Instruct():
            return instructed(state, what)
        case i.Edited():
            return edited(state, what)
        case i.GatesOpened() | i.FileRead():
            raise AssertionError("a team waits for no gates and reads no files")
