"""The budget options, the same for every command that starts a run or goes on with one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from agent_orchestrator.core.budget import Budget

Function = Callable[..., Any]


def budget_options(function: Function) -> Function:
    """Add the options for a run's budget; when it goes on, only what is really given changes."""
    options = (
        click.option("--budget-usd", "--max-cost", metavar="USD", help="Pause before this much is spent, as in 20 or $20."),
        click.option("--budget-tokens", metavar="N", help="The same in tokens, those from the cache included."),
        click.option("--max-time", metavar="TIME", help="The same in working time, as in 90m, 2h; waiting is left out."),
        click.option("--day-budget-usd", metavar="USD", help="What all runs of the repository may spend in a day (UTC)."),
        click.option("--allow-unmetered", is_flag=True, help="Accept agents that do not say what they consume."),
    )
    for option in reversed(options):
        function = option(function)
    return function


def read_flag_budget(given: Mapping[str, Any]) -> Budget:
    """Read the budget options that were really given; nothing else is in the result."""
    from agent_orchestrator.core.budget import Amounts, Budget
    from agent_orchestrator.core.units import read_count, read_duration_s, read_money

    money, count, time = given.get("budget_usd"), given.get("budget_tokens"), given.get("max_time")
    day = given.get("day_budget_usd")
    return Budget(
        run=Amounts(
            cost_usd=None if money is None else read_money(money, "--budget-usd"),
            tokens=None if count is None else read_count(count, "--budget-tokens"),
            wall_s=None if time is None else read_duration_s(time, "--max-time"),
        ),
        day=Amounts(cost_usd=None if day is None else read_money(day, "--day-budget-usd")),
        allow_unmetered=True if given.get("allow_unmetered") else None,
    )
