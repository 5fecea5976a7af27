"""`orc team messages`: what the roles told each other."""

from __future__ import annotations

import click

from agent_orchestrator.surfaces.cli.options import command as make_command
from agent_orchestrator.surfaces.cli.options import open_orchestrator, run_argument

EXAMPLE = """
orc team messages
orc team messages --unread --json
"""


@make_command("messages", EXAMPLE)
@run_argument()
@click.option("--unread", is_flag=True, help="Only those that stood in no prompt yet.")
def command(run: str | None, repo: str | None, as_json: bool, unread: bool) -> int:
    """Print the messages between the roles."""
    from agent_orchestrator.runs.team.start import find_team
    from agent_orchestrator.surfaces.cli.screen import Screen, plain, print_json

    with open_orchestrator(repo) as orchestrator:
        found = find_team(orchestrator, run)
        state = orchestrator.fold(found).state
        boxes = state.messages
        kept = {box: [one for one in sent if not (unread and one.get("read"))] for box, sent in boxes.items()}
        if as_json:
            print_json({"run_id": found.id, **kept})
            return 0
        screen = Screen(orchestrator.settings.environ)
        listed = [one for one in state.known.values() if not (unread and one.get("read"))]
        for one in listed:
            mark = " " if one.get("read") else "*"
            word = one.get("status") or one.get("result") or one.get("decision")
            screen.line(
                f"{mark} {one.get('timestamp') or 'no time'}  {one['group_id']}  {one.get('from')} → {one.get('to')}  {word}"
            )
            screen.line(f"    {plain(one.get('subject') or 'no subject')}")
            said = one.get("feedback") or (one.get("context") or {}).get("notes") or ""
            if said:
                screen.line(f"    {plain(str(said))}")
        if not listed:
            screen.line("There are no unread messages." if unread else "There are no messages yet.")
    return 0
