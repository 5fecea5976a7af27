"""What an input means for a team: a file per kind of input. Together they are the routing table, and nothing else routes."""

from __future__ import annotations

from collections.abc import Sequence

from agent_orchestrator.core import inputs as i
from agent_orchestrator.core.ids import unit_of
from agent_orchestrator.core.unit_events import BackoffEnded
from agent_orchestrator.systems.team.decide.agents import settle_agent
from agent_orchestrator.systems.team.decide.people import adopt_edit, answer_question, instruct_run, resume_run, settle_answer
from agent_orchestrator.systems.team.decide.work import settle_check, settle_merge, settle_tree
from agent_orchestrator.systems.team.events import TeamEvent
from agent_orchestrator.systems.team.state import TeamState


def decide(state: TeamState, what: i.Input, now_us: int) -> Sequence[TeamEvent]:
    """The events that follow from the input; outcomes that come here are wanted ones."""
    match what:
        case i.AgentEnded():
            return settle_agent(state, what, now_us)
        case i.CheckpointEnded():
            return settle_tree(state, what, now_us)
        case i.MergeEnded():
            return settle_merge(state, what, now_us)
        case i.CheckEnded():
            return settle_check(state, what)
        case i.TimerFired():
            return [BackoffEnded(step=unit_of(what.effect))]
        case i.HumanAnswered():
            return settle_answer(state, unit_of(what.effect), what.approved, what.comments)
        case i.Answer():
            return answer_question(state, what)
        case i.Resume():
            return resume_run(state, what)
        case i.Pause() | i.Abort():
            return state.lifecycle.decide(what)
        case i.Instruct():
            return instruct_run(state, what)
        case i.Edited():
            return adopt_edit(state, what)
        case i.GatesOpened() | i.FileRead():
            raise AssertionError("a team waits for no gates and reads no files")
