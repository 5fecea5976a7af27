"""`orc usage`: what agents consumed, in tokens and money."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from agent_orchestrator.errors import UnknownRun
from agent_orchestrator.surfaces.cli.options import command as make_command
from agent_orchestrator.surfaces.cli.options import open_orchestrator, run_argument

if TYPE_CHECKING:
    from agent_orchestrator.runs.orchestrator import Orchestrator
    from agent_orchestrator.store.port import StoredRun, StoredUsage

EXAMPLE = """
orc usage
orc usage f8c1 --by step
orc usage --by day --json | jq .total.cost_usd
"""

WAYS = ("agent", "model", "day", "step", "run")
KINDS = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens")
HEADERS = ("launches", "input", "output", "cache read", "cache write", "cost")


@make_command("usage", EXAMPLE)
@run_argument()
@click.option("--by", type=click.Choice(WAYS), default="agent", help="What a line is (agent).")
def command(run: str | None, by: str, repo: str | None, as_json: bool) -> int:
    """Show what agents consumed: tokens and cost.

    Of one run, or of all runs of the repository, those that were pruned included. What an agent did not report is
    unknown, not zero: a sum with unknown parts says >= (in JSON: `unknown` counts the launches that are missing from it).
    """
    from agent_orchestrator.core.units import say_count
    from agent_orchestrator.runs.budget import budget_facts, budget_lines
    from agent_orchestrator.surfaces.cli.screen import Screen, print_json

    with open_orchestrator(repo) as orchestrator:
        found, rows = choose(orchestrator, run)
        lines = {key: total(some) for key, some in sorted(grouped(rows, by).items())}
        budget = budget_facts(orchestrator, found, orchestrator.fold(found)) if found is not None else None
        pruned = sum(row.pruned for row in rows)
        if as_json:
            name = found.id if found is not None else rows[0].run if run is not None else None
            facts = {"run_id": name, "by": by, "lines": lines, "total": total(rows), "pruned": pruned}
            print_json({**facts, "budget": budget} if budget is not None else facts)
            return 0
        screen = Screen(orchestrator.settings.environ)
        if not rows:
            screen.line("No agent has reported anything that it consumed.")
            return 0
        table = [(key, *told(line)) for key, line in lines.items()]
        screen.table((by, *HEADERS), [*table, ("all", *told(total(rows)))])
        if pruned:
            screen.line(f"{say_count(pruned, 'launch')} of them {'is' if pruned == 1 else 'are'} of pruned runs.")
        for line in budget_lines(budget) if budget is not None else ():
            screen.line(line)
    return 0


def choose(orchestrator: Orchestrator, run: str | None) -> tuple[StoredRun | None, list[StoredUsage]]:
    """The run that is meant, None for all or a pruned one, and the lines of the ledger; raises UnknownRun."""
    if run is None:
        return None, orchestrator.ledger()
    try:
        found = orchestrator.find(run)
    except UnknownRun:
        gone = {row.run for row in orchestrator.ledger() if row.pruned and row.run.startswith(run)}
        if run not in gone and len(gone) != 1:
            raise
        name = run if run in gone else gone.pop()
        return None, [row for row in orchestrator.ledger() if row.pruned and row.run == name]
    return found, orchestrator.store.usage(found.id)


def grouped(rows: list[StoredUsage], by: str) -> dict[str, list[StoredUsage]]:
    """The ledger's lines by what they are asked for."""
    from agent_orchestrator.core.units import iso

    groups: dict[str, list[StoredUsage]] = {}
    for row in rows:
        names = {"agent": row.agent, "model": row.usage.model or "unknown", "day": iso(row.at_us)[:10], "step": row.unit}
        names["run"] = f"{row.run} (pruned)" if row.pruned else row.run
        groups.setdefault(names[by], []).append(row)
    return groups


def total(rows: list[StoredUsage]) -> dict[str, Any]:
    """Sums of what is known, null where nothing is, and how many launches did not say."""
    line: dict[str, Any] = {"launches": len(rows)}
    unknown: dict[str, int] = {}
    for name in (*KINDS, "cost_usd"):
        known = [value for row in rows if (value := getattr(row.usage, name)) is not None]
        line[name] = round(sum(known), 10) if known else None
        if len(known) < len(rows):
            unknown[name] = len(rows) - len(known)
    line["unknown"] = unknown
    return line


def told(line: dict[str, Any]) -> list[str]:
    """The cells of a line."""
    from agent_orchestrator.core.units import say_cost

    cells = [str(line["launches"])]
    for name in KINDS:
        value = line[name]
        cells.append("unknown" if value is None else (">= " if name in line["unknown"] else "") + f"{value:,}")
    return [*cells, say_cost(line["cost_usd"], partly="cost_usd" in line["unknown"])]
