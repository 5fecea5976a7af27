"""What a run may spend, has spent, has set aside and has left, as every surface shows it."""

from __future__ import annotations

from typing import Any

import msgspec

from agent_orchestrator.core.budget import Amounts, Budget, Spent, say_amount
from agent_orchestrator.core.units import US
from agent_orchestrator.engine.journal import Folded
from agent_orchestrator.runs.orchestrator import Orchestrator
from agent_orchestrator.store.port import StoredRun

DAY_US = 86_400 * US
KINDS = ("cost_usd", "tokens", "wall_s")


def spending(orchestrator: Orchestrator, run: StoredRun, folded: Folded) -> dict[str, Any]:
    """The run's limits and how it stands to them.

    Launches that did not say their cost are counted as `unknown`; what nobody said and nothing limits is null, not nothing.
    """
    doing, store = folded.state.doing, orchestrator.store
    budget: Budget = doing.budget
    spent, said = Spent(), {"wall_s"} | {kind for kind in KINDS if getattr(budget.run, kind) is not None}
    for row in store.usage(run.id):
        spent.add(row.usage.cost_usd, row.usage.tokens)
        said |= {kind for kind in ("cost_usd", "tokens") if getattr(row.usage, kind) is not None}
    now_us = orchestrator.clock.now_us()
    working_us = max(0, now_us - folded.at_us) if doing.at_work and orchestrator.owner(run) is not None else 0
    marked = store.reserved(run.id)
    reserved = {"cost_usd": round(marked[0], 10), "tokens": marked[1]}
    used = {"cost_usd": round(spent.cost_usd, 10), "tokens": spent.tokens, "wall_s": (doing.worked_us + working_us) / US}
    facts: dict[str, Any] = {
        "limits": msgspec.to_builtins(budget),
        "spent": {**{kind: used[kind] if kind in said else None for kind in KINDS}, "unknown": spent.unknown},
        "reserved": reserved,
        "left": _left(budget.run, used, reserved),
        "held": {unit: msgspec.to_builtins(hold) for unit, hold in doing.holds.items()},
    }
    if budget.day.is_set:
        day = store.day(now_us - now_us % DAY_US)
        of_day = {"cost_usd": round(day.cost_usd, 10), "tokens": day.tokens}
        aside = {"cost_usd": round(day.reserved_usd, 10), "tokens": day.reserved_tokens}
        facts["day"] = {"spent": of_day, "reserved": aside, "left": _left(budget.day, of_day, aside)}
    return facts


def _left(budget: Amounts, used: dict[str, Any], reserved: dict[str, Any]) -> dict[str, Any]:
    """What nobody has spent or set aside; null where there is no limit."""
    left: dict[str, Any] = {}
    for kind in KINDS:
        limit = getattr(budget, kind)
        left[kind] = None if limit is None else round(max(0, limit - used.get(kind, 0) - reserved.get(kind, 0)), 10)
    return left


def spending_lines(facts: dict[str, Any]) -> list[str]:
    """The same for people: one line for each limit."""
    lines = []
    for level, said in (("run", facts), ("day", facts.get("day", {}))):
        budget = facts["limits"].get(level, {})
        for kind in KINDS:
            if kind in budget:
                aside = said["reserved"].get(kind, 0)
                line = f"{say_amount(kind, said['spent'][kind])} of the {level}'s {say_amount(kind, budget[kind])} spent"
                line += f", {say_amount(kind, aside)} set aside" if aside else ""
                lines.append(f"budget: {line}, {say_amount(kind, said['left'][kind])} left")
    return lines
