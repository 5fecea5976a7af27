"""Turns what an agent says it consumed into what this launch consumed, and prices it. Called where usage is recorded.

Some CLIs count a session from its beginning: what earlier launches of the session were charged is taken off. What is
unknown stays unknown; it never becomes zero.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from agent_orchestrator.agents.events import COUNTED
from agent_orchestrator.agents.options import price_usage
from agent_orchestrator.core.effects import RunAgent
from agent_orchestrator.core.ids import run_of
from agent_orchestrator.core.inputs import AgentEnded, Usage
from agent_orchestrator.store.port import Store, StoredUsage


def metered(outcome: AgentEnded, effect: RunAgent, store: Store, *, cumulative: bool, copied: bool = False) -> AgentEnded:
    """The outcome with the launch's own usage and its cost, where there is a price; a copied session brings its count along."""
    usage = outcome.usage
    if usage is None:
        return outcome
    if cumulative and effect.session is not None:
        earlier = (row for row in store.usage(None if copied else run_of(effect.id)) if row.effect != effect.id)
        known = {usage.session, effect.session} if copied else {usage.session}
        usage = own_part(usage, (row for row in earlier if row.usage.session in known))
    return msgspec.structs.replace(outcome, usage=price_usage(usage, effect.agent))


def own_part(usage: Usage, earlier: Iterable[StoredUsage]) -> Usage:
    """Return what is left of a session's total when its earlier launches are taken off.

    A total below what was counted before is none: a CLI that began to count anew is taken at its word.
    """
    rows = list(earlier)
    parts: dict[str, int | float] = {}
    for name in COUNTED:
        total = getattr(usage, name)
        if total is not None:
            counted = sum(getattr(row.usage, name) or 0 for row in rows)
            if total < counted - 1e-9:
                return usage
            parts[name] = max(0, total - counted)
    return msgspec.structs.replace(usage, **parts)
