"""`orc status`: what is going on here, or how one run stands."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_orchestrator.surfaces.cli.options import command as make_command
from agent_orchestrator.surfaces.cli.options import open_orchestrator, run_argument

if TYPE_CHECKING:
    from agent_orchestrator.runs.orchestrator import Orchestrator
    from agent_orchestrator.store.port import StoredRun
    from agent_orchestrator.surfaces.cli.screen import Screen

EXAMPLE = """
orc status
orc status f8c1
"""

UNFINISHED_SHOWN = 50
ENDED_SHOWN = 5


@make_command("status", EXAMPLE)
@run_argument()
def command(run: str | None, repo: str | None, as_json: bool) -> int:
    """Show all runs, or one run's steps.

    A state file that no run here wrote, as another tool leaves one, is named with the command that imports it.
    """
    from agent_orchestrator.runs.facts import run_facts
    from agent_orchestrator.runs.foreign import find_foreign
    from agent_orchestrator.runs.untold import list_untold
    from agent_orchestrator.store.port import Which
    from agent_orchestrator.surfaces.cli.runs import print_runs
    from agent_orchestrator.surfaces.cli.screen import Screen, plain, print_json, warn

    with open_orchestrator(repo) as orchestrator:
        screen = Screen(orchestrator.settings.environ)
        if run is not None:
            _show(orchestrator, screen, orchestrator.find(run), as_json=as_json)
            return 0
        count = orchestrator.count()
        unfinished = orchestrator.runs(Which(ended=False, most=None if as_json else UNFINISHED_SHOWN))
        ended = orchestrator.runs(Which(ended=True, most=ENDED_SHOWN))
        untold = list_untold(orchestrator)
        if as_json:
            facts_of = [[run_facts(one, orchestrator.owner(one)) for one in some] for some in (unfinished, ended)]
            foreign = [one._asdict() for one in find_foreign(orchestrator)]
            counted = {"total": count.total, "not_imported": foreign, "untold": untold}
            print_json({"unfinished": facts_of[0], "ended": facts_of[1], **counted})
            return 0
        if not count.total:
            screen.line(f"There are no runs in {orchestrator.settings.home}; `orc run` starts one.")
        else:
            shown = [*unfinished, *ended]
            print_runs(orchestrator, screen, shown)
            if len(shown) < count.total:
                more, hidden = count.total - len(shown), max(0, count.unfinished - len(unfinished))
                screen.line(f"… and {more} more, {hidden} of them unfinished; `orc list --limit 0` lists all.")
        for one in find_foreign(orchestrator):
            where = f"{plain(one.path)} ({one.system})"
            screen.line(f"Not imported: {where} belongs to no run here; import it with: {plain(one.command)}")
        for told in untold:
            warn(f"{told['name']} could not be told {told['count']} times: {told['problem']}; see `orc notify list`.")
    return 0


def _show(orchestrator: Orchestrator, screen: Screen, run: StoredRun, *, as_json: bool) -> None:
    # Costly, and of no use to the list of all runs.
    from agent_orchestrator.runs.budget import budget_facts
    from agent_orchestrator.runs.facts import run_facts
    from agent_orchestrator.surfaces.cli.overview import print_run, steps_of
    from agent_orchestrator.surfaces.cli.screen import print_json

    folded = orchestrator.fold(run)
    if as_json:
        facts = run_facts(run, orchestrator.owner(run))
        budget = budget_facts(orchestrator, run, folded)
        print_json({**facts, "budget": budget, "steps": steps_of(folded, orchestrator.clock.now_us())})
    else:
        print_run(orchestrator, screen, run, folded)
