"""`orc status`: what is going on here, or how one run stands."""

from __future__ import annotations

from agent_orchestrator.surfaces.cli.options import command as make_command
from agent_orchestrator.surfaces.cli.options import open_orchestrator, run_argument

EXAMPLE = """
orc status
orc status f8c1
"""

UNFINISHED_SHOWN = 50
ENDED_SHOWN = 5


@make_command("status", EXAMPLE)
@run_argument()
def command(run: str | None, repo: str | None, as_json: bool) -> int:
    """Show what is going on, or how one run stands."""
    from agent_orchestrator.runs.budget import budget_facts
    from agent_orchestrator.runs.facts import run_facts
    from agent_orchestrator.surfaces.cli.overview import print_run, print_runs, steps_of
    from agent_orchestrator.surfaces.cli.screen import Screen, print_json

    with open_orchestrator(repo) as orchestrator:
        screen = Screen(orchestrator.settings.environ)
        if run is not None:
            found = orchestrator.find(run)
            folded = orchestrator.fold(found)
            if as_json:
                facts = run_facts(found, orchestrator.owner(found))
                budget = budget_facts(orchestrator, found, folded)
                print_json({**facts, "budget": budget, "steps": steps_of(folded, orchestrator.clock.now_us())})
            else:
                print_run(orchestrator, screen, found, folded)
            return 0
        runs = orchestrator.runs()
        unfinished = [one for one in runs if not one.summary.ended]
        ended = [one for one in runs if one.summary.ended][:ENDED_SHOWN]
        if as_json:
            facts_of = [[run_facts(one, orchestrator.owner(one)) for one in some] for some in (unfinished, ended)]
            print_json({"unfinished": facts_of[0], "ended": facts_of[1], "total": len(runs)})
        elif not runs:
            screen.line(f"There are no runs in {orchestrator.settings.home}; `orc run` starts one.")
        else:
            shown = [*unfinished[:UNFINISHED_SHOWN], *ended]
            print_runs(orchestrator, screen, shown)
            if len(shown) < len(runs):
                hidden = max(0, len(unfinished) - UNFINISHED_SHOWN)
                screen.line(f"… and {len(runs) - len(shown)} more, {hidden} of them unfinished; `orc list --limit 0` lists all.")
    return 0
