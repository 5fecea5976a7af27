"""A run's budget as every surface shows it, and the refusal of agents that could not be held to one.

Nothing here reserves or spends: that is the engine's.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from agent_orchestrator.agents import find_agent
from agent_orchestrator.core.budget import KINDS, Amounts, Budget, Spent, say_amount
from agent_orchestrator.core.effects import AgentChoice
from agent_orchestrator.core.units import US, day_start_us
from agent_orchestrator.engine.journal import Folded
from agent_orchestrator.errors import UsageError
from agent_orchestrator.runs.orchestrator import Orchestrator
from agent_orchestrator.store.port import StoredRun

LIMITED = (*KINDS, "wall_s")


def budget_facts(orchestrator: Orchestrator, run: StoredRun, folded: Folded) -> dict[str, Any]:
    """Return the run's budget, what is spent, reserved and left of it, and the units that are held.

    Launches that did not say their cost are counted as `unknown`; what nobody said and nothing limits is null, not nothing.
    """
    doing, store = folded.state.doing, orchestrator.store
    budget: Budget = doing.budget
    spent, said = Spent(), {"wall_s"} | {kind for kind in LIMITED if getattr(budget.run, kind) is not None}
    for row in store.usage(run.id):
        spent.add(row.usage.cost_usd, row.usage.tokens)
        said |= {kind for kind in KINDS if getattr(row.usage, kind) is not None}
    now_us = orchestrator.clock.now_us()
    working_us = max(0, now_us - folded.at_us) if doing.at_work and orchestrator.owner(run) is not None else 0
    marked = store.reserved(run.id)
    reserved = {"cost_usd": round(marked[0], 10), "tokens": marked[1]}
    used = {"cost_usd": round(spent.cost_usd, 10), "tokens": spent.tokens, "wall_s": (doing.worked_us + working_us) / US}
    facts: dict[str, Any] = {
        "limits": msgspec.to_builtins(budget),
        "spent": {**{kind: used[kind] if kind in said else None for kind in LIMITED}, "unknown": spent.unknown},
        "reserved": reserved,
        "left": _left(budget.run, used, reserved),
        "held": {unit: msgspec.to_builtins(hold) for unit, hold in doing.holds.items()},
    }
    if budget.day.is_set:
        day = store.day(day_start_us(now_us))
        of_day = {"cost_usd": round(day.cost_usd, 10), "tokens": day.tokens}
        aside = {"cost_usd": round(day.reserved_usd, 10), "tokens": day.reserved_tokens}
        facts["day"] = {"spent": of_day, "reserved": aside, "left": _left(budget.day, of_day, aside)}
    return facts


def _left(budget: Amounts, used: dict[str, Any], reserved: dict[str, Any]) -> dict[str, Any]:
    """Return what nobody has spent or reserved; null where there is no limit."""
    left: dict[str, Any] = {}
    for kind in LIMITED:
        limit = getattr(budget, kind)
        left[kind] = None if limit is None else round(max(0, limit - used.get(kind, 0) - reserved.get(kind, 0)), 10)
    return left


def budget_lines(facts: dict[str, Any]) -> list[str]:
    """Say the same for people: one line for each limit."""
    lines = []
    for level, said in (("run", facts), ("day", facts.get("day", {}))):
        budget = facts["limits"].get(level, {})
        for kind in LIMITED:
            if kind in budget:
                aside = said["reserved"].get(kind, 0)
                line = f"{say_amount(kind, said['spent'][kind])} of the {level}'s {say_amount(kind, budget[kind])} spent"
                line += f", {say_amount(kind, aside)} set aside" if aside else ""
                lines.append(f"budget: {line}, {say_amount(kind, said['left'][kind])} left")
    return lines


def refuse_unmetered(budget: Budget, choices: Iterable[AgentChoice]) -> None:
    """Raise a UsageError for an agent that does not say what it consumes, where that is limited: unknown is not zero."""
    if budget.allow_unmetered:
        return
    for choice in choices:
        able = abilities_of(choice)
        if budget.limits_cost and "cost" not in able:
            why = f"{choice.name} does not say what it costs, and unknown is not zero"
            raise UsageError(detail=f"The budget cannot be kept: {why}; configure prices for it, or give --allow-unmetered.")
        if budget.limits_tokens and "tokens" not in able:
            why = f"{choice.name} does not say how many tokens it uses, and unknown is not zero"
            raise UsageError(detail=f"The token budget cannot be kept: {why}; give --allow-unmetered to go on without it.")


def abilities_of(choice: AgentChoice) -> frozenset[str]:
    """Return what an agent can do and says of itself, `cost` and `tokens` among it, with its settings taken into account."""
    adapter = find_agent(choice.performer)
    able: frozenset[str] = getattr(adapter, "abilities", frozenset())
    paths = choice.options.get("usage") if choice.options.get("output") == "json-lines" else None
    if isinstance(paths, dict):
        able |= {"cost"} if "cost_usd" in paths else set()
        able |= {"tokens"} if {"input", "output"} <= paths.keys() else set()
    return able | {"cost"} if choice.options.get("prices") and "tokens" in able else able
