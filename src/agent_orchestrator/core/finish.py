"""The end of a run's work, the same for every system: its branches merged on request, published, or discarded.

A run that has ended is merged like one that goes on: the wanted merge stands in `doing` under a unit that no system has, one
at a time, in the order asked for. So it is journaled, performed, stopped and taken up after a crash as everything else is.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from agent_orchestrator.core.effects import Merge
from agent_orchestrator.core.events import (
    DirectiveRefused,
    Event,
    LandingEnded,
    LandingsAsked,
    LandingsDropped,
    LandingStarted,
    WorkDiscarded,
    WorkPublished,
)
from agent_orchestrator.core.failure import FailureKind
from agent_orchestrator.core.ids import EffectId, RunId, UnitId, effect_id, unit_of
from agent_orchestrator.core.inputs import Abort, Discard, Land, MergeEnded, MergeVerdict, Pause, Publish
from agent_orchestrator.core.queue import Landing

UNIT = UnitId("_merge")
"""The unit of merges that people ask for; the name of a system's unit begins with a letter or a digit."""


class Landed(msgspec.Struct, kw_only=True, omit_defaults=True):
    """The newest merge of a unit's branch: asked for, or what came of it."""

    landing: Landing
    verdict: str = ""
    """'' until it is over."""
    detail: str = ""
    commit: str | None = None
    conflicts: tuple[str, ...] = ()
    tail: str = ""
    """The end of what the check wrote, where it failed."""

    @property
    def landed(self) -> bool:
        """True once the target has it."""
        return self.verdict == MergeVerdict.LANDED


class Finish(msgspec.Struct):
    """The part of a run's state that merging, publishing and discarding change."""

    landings: dict[str, Landed] = {}
    """By unit."""
    line: list[str] = []
    """Units whose branches are to be merged; the first one is at it."""
    launches: int = 0
    discarded: dict[str, str] = {}
    """The refs that keep what was discarded, by branch; by folder where there was none."""
    published: dict[str, str] = {}
    """The addresses of pull requests, by unit."""

    def name_effect(self, run: RunId, generation: int) -> EffectId:
        """The id of the next merge."""
        return effect_id(run, UNIT, 0, 1, self.launches + 1, "merge", generation)


def is_landing(effect: EffectId) -> bool:
    """Tell whether an effect is a merge that a person asked for."""
    return unit_of(effect) == UNIT


def decide_finish(state: Any, directive: Land | Discard | Publish, now_us: int) -> Sequence[Event]:
    """Say what a person's wish to merge, discard or record a pull request means now."""
    finish: Finish = state.doing.finish
    match directive:
        case Land():
            return _land(state, finish, directive, now_us)
        case Discard():
            if not state.lifecycle.ended:
                return [DirectiveRefused(directive=directive.id, why="the run has not ended")]
            if finish.line:
                return [DirectiveRefused(directive=directive.id, why="its work is being merged")]
            return [WorkDiscarded(kept=directive.kept)]
        case Publish():
            return [WorkPublished(unit=directive.unit, branch=directive.branch, url=directive.url)]


def _land(state: Any, finish: Finish, directive: Land, now_us: int) -> Sequence[Event]:
    units = [one.unit for one in directive.landings]
    waiting = [unit for unit in units if unit in finish.line]
    if waiting or not units:
        said = f"{waiting[0] or 'its work'} is being merged already" if waiting else "there is nothing to merge"
        return [DirectiveRefused(directive=directive.id, why=said)]
    asked = LandingsAsked(landings=directive.landings)
    return [asked] if finish.line else [asked, _start(state, finish, units[0], now_us)]


def _start(state: Any, finish: Finish, unit: str, now_us: int) -> LandingStarted:
    return LandingStarted(unit=unit, effect=finish.name_effect(state.context.run, state.context.generation), at_us=now_us)


def decide_landed(state: Any, outcome: MergeEnded, now_us: int) -> Sequence[Event]:
    """Say what the end of a merge means: try it once more, or what came of it, and whose turn it is."""
    finish: Finish = state.doing.finish
    unit = finish.line[0]
    halting = state.lifecycle.halting
    lost = outcome.failure is None or outcome.failure.kind is not FailureKind.STOPPED
    if outcome.again and lost and not halting:
        return [_start(state, finish, unit, now_us)]
    ended = LandingEnded(
        unit=unit,
        effect=outcome.effect,
        verdict=outcome.verdict.value,
        detail=outcome.detail,
        commit=outcome.commit if outcome.verdict is MergeVerdict.LANDED else None,
        conflicts=outcome.conflicts,
        tail=outcome.tail if outcome.verdict is MergeVerdict.RED else "",
    )
    rest = tuple(finish.line[1:])
    if not rest:
        return [ended]
    return [ended, LandingsDropped(units=rest, reason="stopped") if halting else _start(state, finish, rest[0], now_us)]


def decide_stop(state: Any, directive: Pause | Abort) -> Sequence[Event]:
    """Say what a stop means for a run that has ended and is only being merged; nothing when it is not."""
    line = state.doing.finish.line
    return [LandingsDropped(units=tuple(line), reason=directive.reason)] if line and state.lifecycle.ended else ()


def asked(state: Any, event: LandingsAsked) -> None:
    """Put the branches in line."""
    finish: Finish = state.doing.finish
    for one in event.landings:
        finish.landings[one.unit] = Landed(landing=one)
        finish.line.append(one.unit)


def started(state: Any, event: LandingStarted) -> None:
    """Merge the first in line."""
    finish: Finish = state.doing.finish
    one = finish.landings[event.unit].landing
    finish.launches += 1
    state.doing.put(
        Merge(
            id=event.effect,
            unit=UNIT,
            branch=one.branch,
            into=one.into,
            message=one.message,
            at_us=event.at_us,
            repo=one.repo,
            check=one.check,
            timeout_s=one.timeout_s,
        )
    )


def ended(state: Any, event: LandingEnded) -> None:
    """Note what came of it."""
    finish: Finish = state.doing.finish
    finish.line.remove(event.unit)
    state.doing.drop(UNIT)
    held = finish.landings[event.unit]
    held.verdict, held.detail, held.commit = event.verdict, event.detail, event.commit
    held.conflicts, held.tail = event.conflicts, event.tail


def dropped(state: Any, event: LandingsDropped) -> None:
    """Nobody wants them merged any more."""
    finish: Finish = state.doing.finish
    if finish.line and finish.line[0] in event.units:
        state.doing.drop(UNIT)
    for unit in event.units:
        finish.line.remove(unit)
        finish.landings[unit].verdict, finish.landings[unit].detail = "stopped", event.reason


def discarded(state: Any, event: WorkDiscarded) -> None:
    """Remember where the work is kept."""
    state.doing.finish.discarded |= event.kept


def published(state: Any, event: WorkPublished) -> None:
    """Remember the pull request."""
    state.doing.finish.published[event.unit] = event.url
