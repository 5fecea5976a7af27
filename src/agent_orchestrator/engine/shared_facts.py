"""Applies the facts that mean the same in every system: here, once, before the system's own `evolve` sees them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from agent_orchestrator.core import finish, takeover
from agent_orchestrator.core.doing import Doing
from agent_orchestrator.core.effects import RunAgent
from agent_orchestrator.core.events import (
    AgentSpoke,
    AgentsSet,
    BudgetWarned,
    EvidenceWeighed,
    Forked,
    HoldEnded,
    LandingEnded,
    LandingsAsked,
    LandingsDropped,
    LandingStarted,
    LimitsSet,
    TakenUp,
    ToolRefused,
    TreeKept,
    TreesReturned,
    UnitHandedBack,
    UnitHeld,
    UnitSteered,
    UnitTakenOver,
    WentBack,
    WorkDiscarded,
    WorkPublished,
)


def _taken_up(state: Any, event: TakenUp) -> None:
    state.doing.boot = event.boot


def _limits_set(state: Any, event: LimitsSet) -> None:
    state.doing.budget = event.limits
    state.doing.warned.clear()


def _agents_set(state: Any, event: AgentsSet) -> None:
    """A launch at work keeps its agent; one that is held has not begun."""
    before = state.spec.assigned
    state.spec = state.spec.with_assigned(event.agents)
    doing: Doing = state.doing
    for unit in doing.holds:
        effect = doing.of(unit)
        assert isinstance(effect, RunAgent), "only agents are held"
        for place, choice in event.agents.items():
            old = before.get(place)
            if old is not None and (old.name, old.options) == (effect.agent.name, effect.agent.options):
                model = choice.model if effect.agent.model == old.model else effect.agent.model
                doing.change_agent(unit, msgspec.structs.replace(choice, model=model))
                break


def _warned(state: Any, event: BudgetWarned) -> None:
    state.doing.warned[event.what] = event.percent


def _held(state: Any, event: UnitHeld) -> None:
    state.doing.hold(event.unit, event.hold)


def _hold_ended(state: Any, event: HoldEnded) -> None:
    state.doing.let_go(event.unit, event.effect)


def _refused(state: Any, event: ToolRefused) -> None:
    state.doing.refused[event.agent, event.tool, event.asked] = event


def _steered(state: Any, event: UnitSteered) -> None:
    state.doing.steer(event)


def _spoke(state: Any, event: AgentSpoke) -> None:
    state.doing.hear(event)


def _tree_kept(state: Any, event: TreeKept) -> None:
    if not event.unit and event.kept.commit:
        state.doing.found.setdefault(event.kept.place, event.kept.commit)
    state.doing.kept.pop(event.kept.place, None)
    state.doing.kept[event.kept.place] = event.kept  # The newest last.


def _weighed(state: Any, event: EvidenceWeighed) -> None:
    if event.tests is not None:
        state.doing.tests[event.command] = max(event.tests, state.doing.tests.get(event.command, 0))


def _went_back(state: Any, event: WentBack) -> None:
    """The state is already that of the point: only what goes on from there, and not from the past, is set."""
    state.context = msgspec.structs.replace(state.context, generation=event.generation)
    doing: Doing = state.doing
    doing.worked_us, doing.returning = event.worked_us, event
    doing.stale |= frozenset(event.stale)


def _forked(state: Any, event: Forked) -> None:
    doing: Doing = state.doing
    doing.returning = event
    doing.taken.clear()
    doing.shared, doing.stale = frozenset(event.shared), doing.stale | frozenset(event.stale)


def _trees_returned(state: Any, event: TreesReturned) -> None:
    state.doing.returning = None


APPLIED: dict[type, Callable[[Any, Any], None]] = {
    TakenUp: _taken_up,
    LimitsSet: _limits_set,
    AgentsSet: _agents_set,
    BudgetWarned: _warned,
    UnitHeld: _held,
    HoldEnded: _hold_ended,
    ToolRefused: _refused,
    LandingsAsked: finish.asked,
    LandingStarted: finish.started,
    LandingEnded: finish.ended,
    LandingsDropped: finish.dropped,
    WorkDiscarded: finish.discarded,
    WorkPublished: finish.published,
    UnitSteered: _steered,
    UnitTakenOver: takeover.taken_over,
    UnitHandedBack: takeover.handed_back,
    AgentSpoke: _spoke,
    TreeKept: _tree_kept,
    EvidenceWeighed: _weighed,
    WentBack: _went_back,
    Forked: _forked,
    TreesReturned: _trees_returned,
}
"""By kind: the function that applies the fact to a state."""
