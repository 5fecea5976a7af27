"""What an input means for a swarm run: all judging lives here, a file per kind of input."""

from __future__ import annotations

from collections.abc import Sequence

from agent_orchestrator.core.events import DirectiveRefused
from agent_orchestrator.core.inputs import (
    Abort,
    AgentEnded,
    Answer,
    CheckEnded,
    CheckpointEnded,
    Edited,
    Input,
    Instruct,
    MergeEnded,
    Pause,
    Resume,
    TimerFired,
)
from agent_orchestrator.systems.swarm.decide.directives import instructed, resumed
from agent_orchestrator.systems.swarm.decide.merges import merge_ended, saving_ended
from agent_orchestrator.systems.swarm.decide.outcomes import agent_ended, check_ended, timer_fired
from agent_orchestrator.systems.swarm.events import EditRefused, SwarmEvent
from agent_orchestrator.systems.swarm.state import SwarmState


def decide(state: SwarmState, what: Input, now_us: int) -> Sequence[SwarmEvent]:
    """The events that follow from the input; outcomes that come here are wanted ones."""
    match what:
        case AgentEnded():
            return agent_ended(state, what, now_us)
        case CheckEnded():
            return check_ended(state, what, now_us)
        case TimerFired():
            return timer_fired(state, what)
        case CheckpointEnded():
            return saving_ended(what)
        case MergeEnded():
            return merge_ended(what)
        case Resume():
            return resumed(state, what)
        case Instruct():
            return instructed(state, what, now_us)
        case Pause() | Abort():
            return state.lifecycle.decide(what)
        case Answer():
            return [DirectiveRefused(directive=what.id, why="no bead waits for a person")]
        case Edited():
            return [EditRefused(path=what.path)]
        case _:
            raise AssertionError(f"a swarm run has no effect that ends with {type(what).__name__}")
