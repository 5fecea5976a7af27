"""`orc report`: the morning after, on one screen or as a page."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import click

from agent_orchestrator.surfaces.cli.options import command as make_command
from agent_orchestrator.surfaces.cli.options import open_orchestrator, run_argument

if TYPE_CHECKING:
    from agent_orchestrator.runs.digest import Digest
    from agent_orchestrator.surfaces.cli.screen import Screen

EXAMPLE = """
orc report
orc report f8c1
orc report --since 2d --html > report.html
"""

SINCE = "12h"
SHOWN = {"waiting": 4, "finished": 4, "failed": 3, "parked": 2, "going": 2}
"""Runs of each kind on a screen of 24 lines."""
SPENDERS_SHOWN = 3
LISTED = 50
"""Runs of each kind on a page."""
_DAYS = re.compile(r"\s*(\d+(?:\.\d+)?)\s*d\s*(.*)\Z", re.I)


@make_command("report", EXAMPLE)
@run_argument()
@click.option(
    "--since", metavar="TIME", help=f"How far back, as in 90m, 12h, 2d, or from when, as in 2025-01-15T18:00 ({SINCE})."
)
@click.option("--md", "as_markdown", is_flag=True, help="Print it as Markdown.")
@click.option("--html", "as_html", is_flag=True, help="Print it as one HTML file.")
def command(run: str | None, repo: str | None, since: str | None, as_markdown: bool, as_html: bool, as_json: bool) -> int:
    """Tell what happened while you were away.

    What was finished, with the checks that passed; what failed, and why; what waits for you, with the command that answers
    it; what is parked until when; what was spent, by agent and model. A run that has not ended is told however old it is.
    """
    from agent_orchestrator.runs.digest import make_digest
    from agent_orchestrator.surfaces.cli.screen import Screen, print_json
    from agent_orchestrator.surfaces.digest import to_html, to_markdown

    if as_markdown + as_html + as_json > 1:
        raise click.UsageError("--md, --html and --json exclude each other; give one.")
    if run is not None and since is not None:
        raise click.UsageError("--since is for all runs; a report of one run tells all of it.")
    with open_orchestrator(repo) as orchestrator:
        since_us = read_since(since or SINCE, orchestrator.clock.now_us())
        most = LISTED if as_markdown or as_html or as_json else max(SHOWN.values())
        digest = make_digest(orchestrator, since_us, most, orchestrator.find(run) if run is not None else None)
        if as_json:
            print_json(digest)
        elif as_markdown or as_html:
            click.echo(to_markdown(digest) if as_markdown else to_html(digest), nl=False)
        else:
            _print_digest(Screen(orchestrator.settings.environ), digest)
    return 0


def read_since(text: str, now_us: int) -> int:
    """Read how far back, or from when; raises InvalidValue."""
    from agent_orchestrator.core.units import US, from_iso, read_duration_s
    from agent_orchestrator.errors import InvalidValue

    try:
        if (days := _DAYS.match(text)) is not None:
            rest_s = read_duration_s(days[2], "--since") if days[2] else 0.0
            return now_us - int(read_duration_s(float(days[1]) * 86_400 + rest_s, "--since") * US)
        return now_us - int(read_duration_s(text, "--since") * US)
    except InvalidValue:
        expected = "a duration such as 90m, 12h or 2d, or a time such as 2025-01-15T18:00"
    try:
        return from_iso(text)
    except ValueError:
        raise InvalidValue(what="--since", value=text, expected=expected) from None


def _print_digest(screen: Screen, digest: Digest) -> None:
    from agent_orchestrator.surfaces.cli.screen import shorten
    from agent_orchestrator.surfaces.digest import say_headline, say_spending, say_why, sections_of

    screen.line(screen.paint(shorten(say_headline(digest), screen.width), "bold"))
    for name, title, section in sections_of(digest):
        shown = section.entries if digest.run_id is not None else section.entries[: SHOWN[name]]
        if len(shown) < section.total:
            title = f"{title.partition(' (')[0]} ({section.total}, {section.total - len(shown)} not shown)"
        screen.line(screen.paint(title, {"finished": "green", "failed": "red", "waiting": "yellow"}.get(name, "bold")))
        for entry in shown:
            way = entry.ways[0] if entry.ways else ""
            _print_line(screen, entry.run_id, way, entry.name, say_why(entry))
    if digest.spent:
        screen.line(screen.paint("Spent", "bold"))
        dearest = sorted(digest.spent, key=lambda line: -(line.cost_usd or 0.0))
        for line in dearest[:SPENDERS_SHOWN]:
            agent, model, launches, cost, tokens = say_spending(line)
            who = f"{agent} {model}" if line.model else agent
            _print_line(screen, cost if line.cost_usd is not None else "cost unknown", "", who, f"{launches}, {tokens}")


def _print_line(screen: Screen, first: str, way: str, name: str, what: str) -> None:
    """Print a line: what comes first and the command whole, the name short, the rest as far as it fits."""
    from agent_orchestrator.surfaces.cli.screen import plain, shorten

    label = shorten(name, max(12, screen.width // 4))
    head = f"  {plain(first)}  {label}  "
    tail = f"  {plain(way)}" if way else ""
    room = screen.width - len(head) - len(tail)
    screen.line(f"{head}{shorten(what, room)}{tail}".rstrip() if room >= 12 else f"{head}{tail}".rstrip())
