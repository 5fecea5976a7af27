"""`orc team status`: how a team stands."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_orchestrator.surfaces.cli.options import command as make_command
from agent_orchestrator.surfaces.cli.options import open_orchestrator, run_argument

if TYPE_CHECKING:
    from agent_orchestrator.runs.orchestrator import Orchestrator
    from agent_orchestrator.store.port import StoredRun
    from agent_orchestrator.surfaces.cli.screen import Screen

EXAMPLE = """
orc team status
orc team status v4_20250106_100000 --json
"""

DECISIONS_SHOWN = 8


@make_command("status", EXAMPLE)
@run_argument()
def command(run: str | None, repo: str | None, as_json: bool) -> int:
    """Show how a team stands.

    With --json: every file of coordination/, and what they do not carry.
    """
    import msgspec

    from agent_orchestrator.runs.facts import run_facts
    from agent_orchestrator.runs.team.start import find_team
    from agent_orchestrator.surfaces.cli.screen import Screen, print_json

    with open_orchestrator(repo) as orchestrator:
        found = find_team(orchestrator, run)
        folded = orchestrator.fold(found)
        if as_json:
            printed = folded.system.documents(folded.state, orchestrator.clock.now_us())
            files = {document.path: msgspec.to_builtins(document.body) for document in printed}
            facts = run_facts(found, orchestrator.owner(found))
            print_json({**facts, "files": files, "details": folded.system.details(folded.state)})
        else:
            _print(orchestrator, Screen(orchestrator.settings.environ), found)
    return 0


def _print(orchestrator: Orchestrator, screen: Screen, run: StoredRun) -> None:
    from agent_orchestrator.surfaces.cli.overview import print_owner
    from agent_orchestrator.surfaces.cli.screen import plain
    from agent_orchestrator.surfaces.cli.team.words import closing_lines
    from agent_orchestrator.systems.team.status import agent_of, current_phase, status_of, waiting_for

    folded = orchestrator.fold(run)
    state, summary = folded.state, folded.system.summary(folded.state)
    status = screen.paint_status(summary.status.replace("_", " "), summary.status)
    count = f"{summary.done}/{summary.total} groups"
    phase = current_phase(state)
    where = f"{phase.replace('_', ' ')}  " if phase != summary.status else ""
    screen.line(f"team {screen.paint(run.id, 'bold')}  {status}  {where}{count}")
    screen.line(f"  {plain(' '.join(state.spec.requirements.split())[:160])}")
    if summary.detail:
        screen.line(f"  {plain(summary.detail)}")
    print_owner(screen, run, orchestrator.owner(run), ended=summary.ended)
    screen.line(f"  files: {run.context.home}/coordination")
    rows = [
        (
            name,
            group.name,
            status_of(state, group),
            agent_of(state, name),
            f"{group.developer}/{group.qa}/{group.tech_lead}",
            waiting_for(state, name) or group.error,
        )
        for name, group in state.groups.items()
    ]
    if rows:
        screen.line()
        screen.table(("GROUP", "NAME", "STATUS", "AGENT", "DEV/QA/LEAD", "WHY"), rows, status=2, whole=0)
    if state.decisions:
        screen.line()
    for one in state.decisions[-DECISIONS_SHOWN:]:
        screen.line(f"  {one.timestamp}  {one.decision}: {plain(one.reasoning)}")
    for line in closing_lines(state):
        screen.line(f"  {plain(line)}")
