"""`orc swarm analyze`: what became of the beads, by agent, model and template, and what to do about it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import click

from agent_orchestrator.core.units import say_count
from agent_orchestrator.surfaces.cli.swarm.shared import open_workspace, swarm_command

if TYPE_CHECKING:
    from agent_orchestrator.analysis.figures import Figures, Tally
    from agent_orchestrator.surfaces.cli.screen import Screen

EXAMPLE = """
orc swarm analyze
orc swarm analyze --since 2026-02-11 --json
"""

BAR = 20
GROUPS_SHOWN = 20
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}(?:[T ].*)?\Z")


@swarm_command("analyze", EXAMPLE)
@click.option("--since", metavar="DATE", help="Only beads started on this day or later, as in 2026-02-11 (UTC).")
@click.option("--from-store", is_flag=True, help="Read the journals instead of the record files.")
def command(workspace: str | None, as_json: bool, since: str | None, from_store: bool) -> int:
    """Report on all runs: figures, comparisons, advice.

    Beads count by their newest attempt; full, minimal and legacy records are read. Rates come with the range in which the
    true rate lies with 95 % confidence: a few beads prove little.
    """
    from agent_orchestrator.analysis.figures import Figures, recommend
    from agent_orchestrator.runs.swarm.records import Unreadable, costs_of, outcomes_of_files, outcomes_of_store
    from agent_orchestrator.surfaces.cli.screen import Screen, print_json, warn

    since_s = _read_since(since) if since is not None else None
    faults: list[Unreadable] = []
    with open_workspace(workspace) as orchestrator:
        home = orchestrator.settings.home
        outcomes = outcomes_of_store(orchestrator) if from_store else outcomes_of_files(home, costs_of(orchestrator), faults)
        figures = Figures().count(outcomes, since_s)
        advice = recommend(figures)
        for fault in faults[:10]:
            warn(f"{fault.path} was left out: {fault.why}.")
        if as_json:
            print_json(_facts(figures, advice, since, [fault.path for fault in faults]))
        else:
            _print(Screen(orchestrator.settings.environ), figures, advice, since)
    return 0


def _read_since(text: str) -> float:
    from datetime import UTC, datetime

    from agent_orchestrator.errors import InvalidValue

    try:
        if not _DATE.match(text.strip()):
            raise ValueError
        moment = datetime.fromisoformat(text.strip())
    except ValueError:
        raise InvalidValue(what="--since", value=text, expected="a day such as 2026-02-11, or a time in ISO 8601") from None
    return (moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)).timestamp()


def _facts(figures: Figures, advice: list[str], since: str | None, unreadable: list[str]) -> dict[str, Any]:
    return {
        **figures.facts(),
        "since": since,
        "recommendations": advice,
        "healthy": not advice and figures.all.total > 0,
        "unreadable": unreadable,
    }


def _print(screen: Screen, figures: Figures, advice: list[str], since: str | None) -> None:
    from agent_orchestrator.surfaces.cli.screen import plain

    every = figures.all
    screen.line(screen.paint(f"Runs{f' since {since}' if since else ''}", "bold"))
    if not every.total:
        screen.line("  none: nothing was dispatched from here" + (" since then." if since else "."))
        return
    counts = f"{every.done} done, {every.failed} failed, {every.timeout} timed out, {every.running} running"
    screen.line(f"  total          {every.total}   ({counts})")
    screen.line(f"  success rate   {_rate(every)}")
    screen.line(f"  retry rate     {every.retry_rate:.0%} needed more than one attempt")
    screen.line(f"  average time   {_time(every)}")
    screen.line(f"  cost           {_cost(every)}")
    for title, groups in (("agent", figures.agents), ("model", figures.models), ("template", figures.templates)):
        _print_groups(screen, title, groups)
    if figures.reasons:
        screen.line()
        screen.line(screen.paint("Failure reasons", "bold"))
        most = figures.common_reasons()[0][1]
        for reason, count in figures.common_reasons():
            screen.line(f"  {_bar(count / most)}  {count:>5}  {plain(reason)[:80]}")
    screen.line()
    screen.line(screen.paint("Recommendations", "bold"))
    for text in advice or ["None: success and retry rates are within their limits. The swarm is healthy."]:
        screen.line(f"  - {plain(text)}")


def _print_groups(screen: Screen, title: str, groups: dict[str, Tally]) -> None:
    from agent_orchestrator.surfaces.cli.screen import plain

    screen.line()
    screen.line(screen.paint(f"By {title}", "bold"))
    ordered = sorted(groups.items(), key=lambda one: (-one[1].total, one[0]))
    width = max(len(plain(name)[:24]) for name, _ in ordered[:GROUPS_SHOWN])
    for name, tally in ordered[:GROUPS_SHOWN]:
        said = f"{_rate(tally)}, {say_count(tally.total, 'bead')}, {_time(tally)}, cost {_cost(tally)}"
        screen.line(f"  {plain(name)[:24]:<{width}}  {_bar(tally.success_rate or 0.0)}  {said}")
    if len(ordered) > GROUPS_SHOWN:
        screen.line(f"  … and {len(ordered) - GROUPS_SHOWN} more; --json has all.")


def _rate(tally: Tally) -> str:
    from agent_orchestrator.analysis.figures import wilson

    rate = tally.success_rate
    low, high = wilson(tally.done, tally.ended)
    return "not known yet" if rate is None or low is None or high is None else f"{rate:.0%} ({low:.0%}-{high:.0%})"


def _time(tally: Tally) -> str:
    from agent_orchestrator.core.units import say_duration

    return say_duration(tally.duration_s / tally.duration_count) if tally.duration_count else "time not known"


def _cost(tally: Tally) -> str:
    from agent_orchestrator.core.units import say_cost

    return say_cost(tally.cost_usd if tally.cost_count else None, partly=tally.cost_count < tally.total)


def _bar(share: float) -> str:
    filled = round(share * BAR)
    return "█" * filled + "·" * (BAR - filled)
