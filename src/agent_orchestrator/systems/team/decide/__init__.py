"""Decides what follows an input of a team, with a file per kind: together they are the routing table, and nothing else routes."""

from __future__ import annotations

from collections.abc import Sequence

from agent_orchestrator.core import inputs as i
from agent_orchestrator.core.events import BackoffEnded
from agent_orchestrator.core.ids import unit_of
from agent_orchestrator.core.lifecycle import Decisions, decide_input
from agent_orchestrator.systems.team.decide.agents import settle_agent
from agent_orchestrator.systems.team.decide.people import adopt_edit, answer_question, instruct_run, resume_run, settle_answer
from agent_orchestrator.systems.team.decide.work import settle_check, settle_merge, settle_tree
from agent_orchestrator.systems.team.events import TeamEvent
from agent_orchestrator.systems.team.state import TeamState


def decide(state: TeamState, what: i.Input, now_us: int) -> Sequence[TeamEvent]:
    """Give the events that follow from the input; outcomes that come here are wanted ones."""
    return decide_input(_DECISIONS, state, what, now_us)


_DECISIONS: Decisions = {
    i.AgentEnded: settle_agent,
    i.CheckEnded: settle_check,
    i.CheckpointEnded: settle_tree,
    i.MergeEnded: settle_merge,
    i.TimerFired: lambda state, what, now_us: [BackoffEnded(step=unit_of(what.effect))],
    i.HumanAnswered: settle_answer,
    i.Answer: answer_question,
    i.Resume: resume_run,
    i.Instruct: instruct_run,
    i.Edited: adopt_edit,
}
