"""Says what an input means for a swarm run: all judging lives here, a file per kind of input."""

from __future__ import annotations

from collections.abc import Sequence

from agent_orchestrator.core import inputs as i
from agent_orchestrator.core.lifecycle import refuse
from agent_orchestrator.systems.swarm.decide.directives import instruct_run, resume_run
from agent_orchestrator.systems.swarm.decide.outcomes import agent_ended, check_ended, merge_ended, saving_ended, timer_fired
from agent_orchestrator.systems.swarm.events import EditRefused, SwarmEvent
from agent_orchestrator.systems.swarm.state import SwarmState


def decide(state: SwarmState, what: i.Input, now_us: int) -> Sequence[SwarmEvent]:
    """The events that follow from the input; outcomes that come here are wanted ones."""
    match what:
        case i.AgentEnded():
            return agent_ended(state, what, now_us)
        case i.CheckEnded():
            return check_ended(state, what, now_us)
        case i.TimerFired():
            return timer_fired(state, what)
        case i.CheckpointEnded():
            return saving_ended(what)
        case i.MergeEnded():
            return merge_ended(what)
        case i.Resume():
            return resume_run(state, what)
        case i.Instruct():
            return instruct_run(state, what, now_us)
        case i.Pause() | i.Abort():
            return state.lifecycle.decide(what)
        case i.Answer():
            return refuse(what, "no bead waits for a person")
        case i.Edited():
            return [EditRefused(path=what.path)]
        case _:
            raise AssertionError(f"a swarm run has no effect that ends with {type(what).__name__}")
