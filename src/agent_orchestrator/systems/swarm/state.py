"""A swarm run in memory. Only `evolve` changes any of this.

`due` are beads that go on as soon as they may: bead → agent, verify or close. A bead holds its tree from its first
attempt until it is over, also while it waits for the next one: half-done work lies there.
"""

from __future__ import annotations

from collections import deque
from enum import StrEnum

import msgspec

from agent_orchestrator.core.dag import Dag
from agent_orchestrator.core.doing import Doing
from agent_orchestrator.core.effects import RunCheck, Wait
from agent_orchestrator.core.events import StopReason
from agent_orchestrator.core.foreign.values import time_of
from agent_orchestrator.core.ids import EffectId, UnitId, effect_id
from agent_orchestrator.core.lifecycle import Lifecycle
from agent_orchestrator.core.system import Context
from agent_orchestrator.core.unit import UnitRecord, UnitView
from agent_orchestrator.core.units import iso
from agent_orchestrator.systems.swarm.records import ABORTED, AttemptStatus, Kept, ResultRecord, RunRecord
from agent_orchestrator.systems.swarm.spec import BeadSpec, SwarmSpec


class Bead(UnitRecord, kw_only=True):
    """The work on a bead."""

    attempt: int
    """The newest attempt; before the first, that of an earlier dispatch."""
    limit: int
    """The last attempt that may be made."""
    started_us: int = 0
    exit_code: int | None = None
    summary: str = ""
    output: str = ""
    error: str = ""
    stopping: str | None = None
    """The reason why a person stops it, until it has stopped."""
    run: RunRecord | None = None
    result: ResultRecord | None = None
    kept: tuple[Kept, ...] = ()
    cost_usd: float | None = None
    tokens: int | None = None
    merge: Merging | None = None
    released: bool = False
    """A newer run has this bead."""


class Merging(msgspec.Struct, kw_only=True, omit_defaults=True):
    """The merge of a bead's branch: asked for, or what came of it."""

    into: str
    check: str | None = None
    saved: bool = False
    verdict: str | None = None
    detail: str = ""
    commit: str | None = None


class BeadStanding(StrEnum):
    """The state of a bead for people: finer than the words of the records."""

    WAITING = "waiting"
    QUEUED = "queued"
    RUNNING = "running"
    VERIFYING = "verifying"
    RETRYING = "retrying"
    DONE = "done"
    FAILED = "failed"
    TIMEOUT = "timeout"
    STOPPED = "stopped"


def needs_of(spec: SwarmSpec) -> dict[str, tuple[str, ...]]:
    """Return each bead's needs: by priority, then as in the file, for the graph offers what is ready in the order it is given."""
    return {bead.id: bead.needs for bead in sorted(spec.beads, key=lambda bead: bead.priority)}


class SwarmState:
    """One run."""

    __slots__ = (
        *(
            "beads",
            "context",
            "dag",
            "doing",
            "due",
            "ended_as",
            "failed",
            "holders",
            "lifecycle",
            "merging",
            "queues",
            "repos",
            "spec",
            "specs",
        ),
        *("updated_us", "working"),
    )

    def __init__(self, spec: SwarmSpec, context: Context) -> None:
        self.spec, self.context = spec, context
        self.specs: dict[str, BeadSpec] = {bead.id: bead for bead in spec.beads}
        self.dag = Dag(needs_of(spec))
        self.lifecycle, self.doing = Lifecycle(), Doing()
        self.beads: dict[str, Bead] = {
            bead.id: Bead(attempt=bead.attempts_before, limit=bead.attempts_before + bead.max_attempts) for bead in spec.beads
        }
        self.due: dict[str, str] = {}
        self.working: dict[str, None] = {}
        """Beads that occupy one of the places: an attempt of theirs is going on."""
        self.failed: dict[str, str] = {}
        """Beads that are over without being done, and the reason of each."""
        self.holders: dict[str, str] = {}
        """Who works in a tree, where only one may."""
        self.queues: dict[str, deque[str]] = {}
        """Who is next there."""
        self.repos: dict[str, dict[str, None]] = {}
        """Who is at work on a repository, whatever the branch."""
        self.merging: dict[str, None] = {}
        """Beads whose branches are to be merged; the first one is at it."""
        self.ended_as: tuple[StopReason, str] | None = None
        """How the run had ended when a merge was asked for: nothing else is begun then, and it ends so again."""
        self.updated_us = context.created_us

    @property
    def room(self) -> bool:
        """True while one more agent may run."""
        return len(self.working) < self.spec.max_agents

    @property
    def tripped(self) -> bool:
        """True when so many beads failed that no other is begun."""
        limit = self.spec.stop_after_failures
        return limit is not None and len(self.failed) >= limit

    def is_untried(self, bead: str) -> bool:
        """Tell whether none of the attempts that the bead may have now was begun."""
        held = self.beads[bead]
        return held.attempt == held.limit - self.specs[bead].max_attempts

    def holder(self, bead: str) -> str | None:
        """Give the bead that is in this one's way in its tree, or None."""
        if self.spec.shared:
            return None
        found = self.holders.get(self.specs[bead].place)
        return found if found != bead else None

    def name_effect(self, bead: str, kind: str, attempt: int | None = None) -> EffectId:
        """The id of the bead's next effect."""
        held = self.beads[bead]
        return effect_id(
            self.context.run,
            UnitId(bead),
            0,
            held.attempt if attempt is None else attempt,
            held.launches + 1,
            kind,
            self.context.generation,
        )

    def standing(self, bead: str) -> BeadStanding:
        """Give the state of a bead."""
        held, doing = self.beads[bead], self.doing.of(bead)
        if bead in self.working:
            verifying = isinstance(doing, RunCheck) or self.due.get(bead) == "verify"
            return BeadStanding.VERIFYING if verifying else BeadStanding.RUNNING
        if bead in self.failed:
            if self.failed[bead] == ABORTED:
                return BeadStanding.STOPPED
            return (
                BeadStanding.TIMEOUT
                if held.result is not None and held.result.status is AttemptStatus.TIMEOUT
                else BeadStanding.FAILED
            )
        if held.result is not None and held.result.status is AttemptStatus.DONE:
            return BeadStanding.DONE
        if isinstance(doing, Wait) or held.run is not None:
            return BeadStanding.RETRYING if held.result is not None else BeadStanding.RUNNING
        return BeadStanding.QUEUED if bead in self.due or self.holder(bead) is not None else BeadStanding.WAITING

    @property
    def steps(self) -> dict[str, UnitView]:
        """The beads as commands for all systems show units."""
        return {bead: self._view(bead, held) for bead, held in self.beads.items()}

    def _view(self, bead: str, held: Bead) -> UnitView:
        ended = time_of(held.result.finished_at) if held.result is not None else None
        lasting = held.run is not None and (held.result is None or ended is not None)
        started = iso(held.started_us) if lasting and held.started_us else None  # 0 where nobody knows
        return UnitView(self.standing(bead), held.attempt, 0, started, ended, held.error or None)
