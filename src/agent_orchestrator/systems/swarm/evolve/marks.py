"""The few ways in which a bead's marks change, shared by all facts."""

from __future__ import annotations

from collections import deque

import msgspec

from agent_orchestrator.systems.swarm.records import AttemptVerdict, Kept, end_record
from agent_orchestrator.systems.swarm.state import SwarmState


def leave(state: SwarmState, bead: str) -> None:
    """The bead does nothing and waits for nothing."""
    state.doing.drop(bead)
    if state.due:
        state.due.pop(bead, None)


def rest(state: SwarmState, bead: str) -> None:
    """The bead's place is free for another one."""
    state.working.pop(bead, None)
    at_work = state.repos.get(state.specs[bead].repo)
    if at_work is not None:
        at_work.pop(bead, None)


def end_attempt(state: SwarmState, bead: str, verdict: AttemptVerdict, ended_us: int, *, will_retry: bool) -> None:
    """Both records of the attempt, kept for ever."""
    held = state.beads[bead]
    assert held.run is not None, "an attempt that ends has begun"
    held.run, held.result = end_record(
        held.run, verdict, started_us=held.started_us, ended_us=ended_us, output=held.output, will_retry=will_retry
    )
    held.kept += (Kept(held.run, held.result),)
    held.error = verdict.reason if verdict.failure_reason is not None else ""
    held.stopping, held.session, held.spent_us = None, None, 0
    held.abandon_launch(ended_us, verdict.failure_reason)
    rest(state, bead)


def give_up(state: SwarmState, bead: str, why: str) -> None:
    """The bead is over without being done; its newest result promises no other attempt."""
    held = state.beads[bead]
    state.failed[bead] = why
    if held.result is not None and held.result.will_retry:
        held.result = msgspec.structs.replace(held.result, will_retry=False)
    free_tree(state, bead)


def hold_tree(state: SwarmState, bead: str) -> None:
    """The bead works in its tree until it is over."""
    if not state.spec.shared:
        state.holders[state.specs[bead].place] = bead


def free_tree(state: SwarmState, bead: str) -> None:
    """The bead is over: whoever is next in its tree may go on."""
    place = state.specs[bead].place
    queue = state.queues.get(place)
    if queue is not None and bead in queue:
        queue.remove(bead)
    if state.holders.get(place) != bead:
        return
    del state.holders[place]
    if queue:
        following = queue.popleft()
        state.holders[place] = following
        state.due[following] = "agent"
    if not queue:
        state.queues.pop(place, None)


def queue_up(state: SwarmState, bead: str) -> None:
    """The bead is next in its tree, behind those that came before."""
    state.queues.setdefault(state.specs[bead].place, deque()).append(bead)
