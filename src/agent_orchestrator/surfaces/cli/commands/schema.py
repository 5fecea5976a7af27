"""`orc schema`: the JSON Schemas of the files we read and write, also for editors."""

from __future__ import annotations

from pathlib import Path

import click
from click.shell_completion import CompletionItem

from agent_orchestrator.errors import UsageError
from agent_orchestrator.surfaces.cli.options import command as make_command

EXAMPLE = """
orc schema
orc schema workflow > workflow.schema.json
"""

SCHEMAS = {
    "run-state": ("workflow/schema/run_state.schema.json", "run_state.json, the state of a workflow run"),
    "workflow": ("workflow/schema/workflow.schema.json", "a workflow file"),
    "loop-state": ("loop/schema/loop_state.schema.json", "state.json, the state of a loop"),
    "bead-run": ("swarm/schema/bead_run.schema.json", "state/runs/<bead>.json, an attempt of a bead"),
    "bead-result": ("swarm/schema/bead_result.schema.json", "state/results/<bead>.json, how an attempt ended"),
    "agent-state": ("phases/schema/agent_state.schema.json", "agent-state.json, the state of a run of phases"),
    **{
        f"team-{name.replace('_', '-')}": (f"team/schema/{name}.schema.json", f"coordination/{file}, of a team")
        for name, file in (
            ("pm_state", "pm_state.json"),
            ("group_status", "group_status.json"),
            ("orchestrator_state", "orchestrator_state.json"),
            ("dev_to_qa", "messages/dev_to_qa.json"),
            ("qa_to_techlead", "messages/qa_to_techlead.json"),
            ("techlead_to_dev", "messages/techlead_to_dev.json"),
        )
    },
    "report": ("workflow/schema/report.schema.json", "run_report@v0, what an agent writes"),
}


def _complete(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    return [CompletionItem(name, help=about) for name, (_, about) in SCHEMAS.items() if name.startswith(incomplete)]


@make_command("schema", EXAMPLE)
@click.argument("name", required=False, shell_complete=_complete)
def command(name: str | None, repo: str | None, as_json: bool) -> int:
    """Print a JSON Schema.

    Without NAME, lists the schemas.
    """
    if name is None:
        if as_json:
            import json

            click.echo(json.dumps({"schemas": {known: about for known, (_, about) in SCHEMAS.items()}}, indent=2))
        else:
            for known, (_, about) in SCHEMAS.items():
                click.echo(f"{known:<26}{about}")
        return 0
    if name not in SCHEMAS:
        raise UsageError(detail=f"There is no schema {name!r}; there are: {', '.join(SCHEMAS)}.")
    from agent_orchestrator import systems

    click.echo(Path(systems.__file__).parent.joinpath(SCHEMAS[name][0]).read_text("utf-8").rstrip("\n"))
    return 0
