"""Says what a person's directive means: resume, stop, retry, release. A refusal says why in a sentence."""

from __future__ import annotations

from typing import Any

import msgspec

from agent_orchestrator.core.effects import ACTIVE
from agent_orchestrator.core.events import Resumed
from agent_orchestrator.core.inputs import Instruct, Resume
from agent_orchestrator.core.lifecycle import Phase, refuse
from agent_orchestrator.core.units import read_count
from agent_orchestrator.errors import Refused, UsageError
from agent_orchestrator.systems.swarm.decide.outcomes import stop_verdict
from agent_orchestrator.systems.swarm.events import (
    AttemptEnded,
    BeadDropped,
    BeadsReleased,
    BeadsReset,
    MergeAsked,
    OptionsChanged,
    StopAsked,
    SwarmEvent,
)
from agent_orchestrator.systems.swarm.state import SwarmState

LIMITS = ("max_agents", "stop_after_failures")


def resume_run(state: SwarmState, directive: Resume) -> list[SwarmEvent]:
    """Goes on: after a pause, with other limits, or with beads that are to be tried again."""
    try:
        return _resume(state, directive.changes)
    except UsageError as error:
        return refuse(directive, str(error))


def instruct_run(state: SwarmState, directive: Instruct, now_us: int) -> list[SwarmEvent]:
    """Stops, retries or releases beads."""
    try:
        if directive.what not in ("stop", "retry", "release", "merge"):
            raise Refused(why=f"a swarm run knows no {directive.what!r}")
        beads = _read_beads(state, directive.values.get("beads"))
        if directive.what == "stop":
            reason = directive.values.get("reason")
            return _stop(state, beads, reason if isinstance(reason, str) and reason else "asked to stop", now_us)
        if directive.what == "retry":
            if state.lifecycle.ended:
                raise Refused(why="the run has ended; it is resumed with the beads to retry")
            return [_reset(state, beads)]
        if directive.what == "merge":
            if state.lifecycle.ended:
                raise Refused(why="the run has ended; it is resumed with the beads to merge")
            return [_merge(state, beads, directive.values)]
        return [_release(state, beads)]
    except UsageError as error:
        return refuse(directive, str(error))


def _resume(state: SwarmState, changes: dict[str, Any]) -> list[SwarmEvent]:
    life = state.lifecycle
    unknown = [key for key in changes if key not in {"retry", "merge", "into", "check", *LIMITS}]
    if unknown:
        raise Refused(why=f"resume does not know the change {unknown[0]!r}")
    if life.phase is Phase.ABORTING:
        raise Refused(why="the run is being aborted")
    limits = {name: read_count(changes[name], name) for name in LIMITS if changes.get(name) is not None}
    again = _read_beads(state, changes["retry"]) if changes.get("retry") is not None else ()
    merges = [_merge(state, _read_beads(state, changes["merge"]), changes)] if changes.get("merge") is not None else []
    if life.ended and not again and not merges:
        raise Refused(why=f"the run has ended ({life.stop}); try what failed again with `orc swarm retry {state.context.run}`")
    if life.running and not limits and not again and not merges:
        raise Refused(why="the run is running already")
    events: list[SwarmEvent] = [*merges, *([_reset(state, again)] if again else [])]
    if limits:
        events.append(msgspec.structs.replace(OptionsChanged(), **limits))
    if not life.running:
        events.append(Resumed())
    return events


def _read_beads(state: SwarmState, given: object) -> tuple[str, ...]:
    if not isinstance(given, list | tuple) or not given:
        raise Refused(why="no bead is named")
    unknown = [bead for bead in given if bead not in state.beads]
    if unknown:
        raise Refused(why=f"there is no bead {unknown[0]!r} in this run")
    return tuple(dict.fromkeys(given))


def _stop(state: SwarmState, beads: tuple[str, ...], reason: str, now_us: int) -> list[SwarmEvent]:
    if state.lifecycle.ended:
        raise Refused(why="the run has ended")
    events: list[SwarmEvent] = []
    for bead in beads:
        standing = state.standing(bead)
        if standing in ("done", "failed", "timeout", "stopped"):
            raise Refused(why=f"bead {bead} does not run, it is {standing}")
        if state.beads[bead].stopping is not None:
            raise Refused(why=f"bead {bead} is being stopped already")
        held = state.beads[bead]
        if isinstance(state.doing.of(bead), ACTIVE):
            events.append(StopAsked(bead=bead, effect=state.name_effect(bead, "stop"), at_us=now_us, reason=reason))
        elif held.run is not None and held.result is None:
            events.append(AttemptEnded(bead=bead, verdict=stop_verdict(reason)))
        else:
            events.append(BeadDropped(bead=bead, reason=reason))
    return events


def _reset(state: SwarmState, beads: tuple[str, ...]) -> BeadsReset:
    for bead in beads:
        if state.beads[bead].released:
            raise Refused(why=f"bead {bead} belongs to a newer run")
        if bead not in state.failed:
            raise Refused(why=f"bead {bead} did not fail, it is {state.standing(bead)}")
    return BeadsReset(beads=beads)


def _merge(state: SwarmState, beads: tuple[str, ...], values: dict[str, Any]) -> MergeAsked:
    into, check = values.get("into"), values.get("check")
    if not isinstance(into, str) or not into or not isinstance(check, str | None):
        raise Refused(why="a merge needs a branch to merge into")
    for bead in beads:
        standing, branch = state.standing(bead), state.specs[bead].branch
        if standing != "done":
            raise Refused(why=f"bead {bead} is {standing}, and only what is done is merged")
        if not branch:
            raise Refused(why=f"bead {bead} worked in the repository's own checkout: there is no branch of its own to merge")
        if bead in state.merging:
            raise Refused(why=f"bead {bead} is in line to be merged already")
    return MergeAsked(beads=beads, into=into, check=check)


def _release(state: SwarmState, beads: tuple[str, ...]) -> BeadsReleased:
    for bead in beads:
        if bead in state.working or bead in state.due or state.doing.of(bead) is not None:
            raise Refused(why=f"bead {bead} has not ended, it is {state.standing(bead)}")
    return BeadsReleased(beads=beads)
