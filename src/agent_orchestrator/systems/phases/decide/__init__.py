"""Decides what follows an input of a phased run, with a file per kind of input."""

from __future__ import annotations

from collections.abc import Sequence

from agent_orchestrator.core import inputs as i
from agent_orchestrator.core.events import BackoffEnded
from agent_orchestrator.core.ids import unit_of
from agent_orchestrator.core.lifecycle import Decisions, decide_input
from agent_orchestrator.systems.phases.decide.edits import adopt_edit
from agent_orchestrator.systems.phases.decide.outcomes import settle_agent
from agent_orchestrator.systems.phases.decide.people import answer_question, instruct_run, resume_run, settle_answer
from agent_orchestrator.systems.phases.decide.programs import settle_check, settle_merge, settle_tree
from agent_orchestrator.systems.phases.events import PhasesEvent
from agent_orchestrator.systems.phases.state import PhasesState


def decide(state: PhasesState, what: i.Input, now_us: int) -> Sequence[PhasesEvent]:
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
