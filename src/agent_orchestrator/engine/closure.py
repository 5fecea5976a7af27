"""Ends what was at work at a point of a run's past, as a stop ends it: the run goes on from there as after `pause --now`.

The system itself says what each end means, so that going back and forking need no code in any of them.
"""

from __future__ import annotations

from collections.abc import Iterable

from agent_orchestrator.core.effects import Effect, Merge, RunAgent, RunCheck
from agent_orchestrator.core.events import Event, Paused
from agent_orchestrator.core.failure import Failure, FailureKind
from agent_orchestrator.core.inputs import AgentEnded, CheckEnded, MergeEnded, MergeVerdict, Outcome
from agent_orchestrator.core.lifecycle import Phase
from agent_orchestrator.engine.journal import Folded
from agent_orchestrator.errors import Refused

LEFT = Failure(kind=FailureKind.STOPPED, message="left behind")
STEPS_MAX = 1_000
PROGRAMS = (RunAgent, RunCheck, Merge)
"""Effects that are ended; a wait goes on, and a tree that was being saved is saved again."""


def close(folded: Folded, now_us: int, why: str) -> list[Event]:
    """Pause a run that is at a point of its past, and end what was at work there as a stop ends it."""
    life, events = folded.state.lifecycle, list[Event]()

    def add(more: Iterable[Event]) -> None:
        new = list(more)
        folded.apply(new, now_us)
        events.extend(new)

    if life.phase is Phase.ABORTING:
        raise Refused(why="The run was being aborted at that point; choose an earlier one.")
    if life.ended:
        return events
    if not (life.phase is Phase.PAUSED and life.halting):
        add([Paused(reason=why, now=True)])
    for _ in range(STEPS_MAX):
        at_work = [effect for effect in folded.state.doing if isinstance(effect, PROGRAMS)]
        if not at_work:
            return events
        add(folded.decide(_stopped(at_work[0], now_us), now_us))
    raise AssertionError("what is stopped does not come to rest")


def _stopped(effect: Effect, now_us: int) -> Outcome:
    match effect:
        case RunAgent():
            return AgentEnded(effect=effect.id, started_us=now_us, ended_us=now_us, failure=LEFT)
        case RunCheck():
            return CheckEnded(effect=effect.id, started_us=now_us, ended_us=now_us, failure=LEFT)
        case _:
            return MergeEnded(effect=effect.id, verdict=MergeVerdict.INTERRUPTED, detail=LEFT.message, failure=LEFT)
