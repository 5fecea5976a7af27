"""`orc swarm init`: the schemas, their description, and the scripts that call us."""

from __future__ import annotations

import click

from agent_orchestrator.surfaces.cli.swarm.shared import open_workspace, swarm_command

EXAMPLE = """
orc swarm init
./scripts/dispatch.sh bd-101 ~/project claude:sonnet "fix the login bug" bug-fix
"""


@swarm_command("init", EXAMPLE)
@click.option("--force", is_flag=True, help="Write them again where they stand already.")
def command(workspace: str | None, as_json: bool, force: bool) -> int:
    """Write schemas and scripts into a workspace.

    state/SCHEMA.md, state/schemas/, scripts/dispatch.sh, scripts/validate-state.sh and scripts/analyze-runs.sh.
    """
    from agent_orchestrator.runs.swarm.workspace import write_schemas, write_scripts
    from agent_orchestrator.surfaces.cli.screen import Screen, print_json

    with open_workspace(workspace) as orchestrator:
        home = orchestrator.settings.home
        written = [*write_schemas(home, again=force), *write_scripts(home, again=force)]
        if as_json:
            print_json({"workspace": str(home), "written": written})
            return 0
        screen = Screen(orchestrator.settings.environ)
        for path in written:
            screen.line(f"wrote {path}")
        if not written:
            screen.line("everything is there already; --force writes it again.")
    return 0
