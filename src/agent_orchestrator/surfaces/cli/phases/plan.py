"""`orc phases plan`: what a task document asks for, and what would run side by side. Creates nothing."""

from __future__ import annotations

from pathlib import Path

import click

from agent_orchestrator.surfaces.cli.options import command as make_command
from agent_orchestrator.surfaces.cli.options import idle_option, publish_option

EXAMPLE = """
orc phases plan task.md
orc phases plan task.md --max-parallel 3 --json
"""


@make_command("plan", EXAMPLE)
@click.argument("document", metavar="DOC")
@click.option("--max-parallel", metavar="N", help="Tasks at work at once (1).")
@idle_option
@publish_option
def command(
    document: str, max_parallel: str | None, idle_timeout: str | None, publish: bool | None, repo: str | None, as_json: bool
) -> int:
    """Show what a task document asks for.

    Also what would leave this machine, and where it would go. Every fault of the document is told with its line. Nothing is
    created.
    """
    from agent_orchestrator.config import load_settings
    from agent_orchestrator.core.units import read_count
    from agent_orchestrator.runs.choices import read_idle_s
    from agent_orchestrator.runs.phases.options import read_document
    from agent_orchestrator.surfaces.cli.phases.document import plan_facts, print_plan, publish_facts, silence_facts
    from agent_orchestrator.surfaces.cli.screen import Screen, print_json, warn

    parallel = read_count(max_parallel, "--max-parallel") if max_parallel is not None else 1
    settings = load_settings(repo)
    parsed = read_document(Path(document).expanduser(), settings.home)
    published, doubts = publish_facts(parsed.plan, settings, publish)
    silence = silence_facts(read_idle_s(idle_timeout))
    facts = {**plan_facts(parsed.plan, parallel), "idle_timeout_s": silence, "publish": published}
    for text in (*parsed.warnings, *doubts):
        warn(text)
    if as_json:
        print_json({"document": document, **facts, "warnings": list(parsed.warnings)})
    else:
        print_plan(facts, Screen(settings.environ))
    return 0
