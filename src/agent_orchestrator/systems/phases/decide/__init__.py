"""What an input means for a phased run: a file per kind of input."""

from __future__ import annotations

from collections.abc import Sequence

from agent_orchestrator.core import inputs as i
from agent_orchestrator.core.ids import unit_of
from agent_orchestrator.systems.phases.decide.edits import edited
from agent_orchestrator.systems.phases.decide.outcomes import agent_ended
from agent_orchestrator.systems.phases.decide.people import answered, human_answered, instructed, resumed
from agent_orchestrator.systems.phases.decide.programs import check_ended, merge_ended, tree_saved
from agent_orchestrator.systems.phases.events import BackoffEnded, PhasesEvent
from agent_orchestrator.systems.phases.state import PhasesState


def decide(state: PhasesState, what: i.Input, now_us: int) -> Sequence[PhasesEvent]:
    """The events that follow from the input; outcomes that come here are wanted ones."""
    match what:
        case i.AgentEnded():
            return agent_ended(state, what, now_us)
        case i.CheckEnded():
            return check_ended(state, what)
        case i.CheckpointEnded():
            return tree_saved(state, what)
        case i.MergeEnded():
            return merge_ended(state, what)
        case i.TimerFired():
            return [BackoffEnded(step=unit_of(what.effect))]
        case i.HumanAnswered():
            return human_answered(state, unit_of(what.effect), approved=what.approved, comments=what.comments)
        case i.Answer():
            return answered(state, what)
        case i.Pause() | i.Abort():
            return list(state.lifecycle.decide(what))
        case i.Resume():
            return resumed(state, what)
        case i.Instruct():
            return instructed(state, what)
        case i.Edited():
            return edited(state, what)
        case _:
            raise AssertionError(f"a phased run asks for nothing that ends so: {what}")
