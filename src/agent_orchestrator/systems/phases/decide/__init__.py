"""What an input means for a phased run: a file per kind of input."""

from __future__ import annotations

from collections.abc import Sequence

from agent_orchestrator.core import inputs as i
from agent_orchestrator.core.ids import unit_of
from agent_orchestrator.core.unit_events import BackoffEnded
from agent_orchestrator.systems.phases.decide.edits import adopt_edit
from agent_orchestrator.systems.phases.decide.outcomes import settle_agent
from agent_orchestrator.systems.phases.decide.people import answer_question, instruct_run, resume_run, settle_answer
from agent_orchestrator.systems.phases.decide.programs import settle_check, settle_merge, settle_tree
from agent_orchestrator.systems.phases.events import PhasesEvent
from agent_orchestrator.systems.phases.state import PhasesState


def decide(state: PhasesState, what: i.Input, now_us: int) -> Sequence[PhasesEvent]:
    """The events that follow from the input; outcomes that come here are wanted ones."""
    match what:
        case i.AgentEnded():
            return settle_agent(state, what, now_us)
        case i.CheckEnded():
            return settle_check(state, what)
        case i.CheckpointEnded():
            return settle_tree(state, what)
        case i.MergeEnded():
            return settle_merge(state, what)
        case i.TimerFired():
            return [BackoffEnded(step=unit_of(what.effect))]
        case i.HumanAnswered():
            return settle_answer(state, unit_of(what.effect), approved=what.approved, comments=what.comments)
        case i.Answer():
            return answer_question(state, what)
        case i.Pause() | i.Abort():
            return list(state.lifecycle.decide(what))
        case i.Resume():
            return resume_run(state, what)
        case i.Instruct():
            return instruct_run(state, what)
        case i.Edited():
            return adopt_edit(state, what)
        case _:
            raise AssertionError(f"a phased run asks for nothing that ends so: {what}")
