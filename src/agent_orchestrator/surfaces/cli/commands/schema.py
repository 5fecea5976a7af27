"""`orc schema`: the JSON Schemas of the files we read and write, also for editors."""

from __future__ import annotations

from importlib.resources import files
from importlib.resources.abc import Traversable

import click
from click.shell_completion import CompletionItem

from agent_orchestrator.errors import UsageError
from agent_orchestrator.surfaces.cli.options import command as make_command
from agent_orchestrator.systems import SYSTEMS, about

EXAMPLE = """
orc schema
orc schema workflow > workflow.schema.json
"""


def _schemas() -> dict[str, tuple[Traversable, str]]:
    """Return the file of every schema, by name, and what it describes."""
    found = {
        schema.name: (files(f"agent_orchestrator.systems.{system}") / "schema" / schema.file, schema.describes)
        for system in SYSTEMS
        for schema in about(system).schemas
    }
    report = files("agent_orchestrator.core") / "schema" / "report.schema.json"
    return {**found, "report": (report, "run_report@v0, what an agent writes")}


def _complete(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    return [CompletionItem(name, help=describes) for name, (_, describes) in _schemas().items() if name.startswith(incomplete)]


@make_command("schema", EXAMPLE)
@click.argument("name", required=False, shell_complete=_complete)
def command(name: str | None, repo: str | None, as_json: bool) -> int:
    """Print a JSON Schema.

    Without NAME, lists the schemas.
    """
    schemas = _schemas()
    if name is None:
        if as_json:
            import json

            click.echo(json.dumps({"schemas": {known: describes for known, (_, describes) in schemas.items()}}, indent=2))
        else:
            for known, (_, describes) in schemas.items():
                click.echo(f"{known:<26}{describes}")
        return 0
    if name not in schemas:
        raise UsageError(detail=f"There is no schema {name!r}; there are: {', '.join(schemas)}.")
    click.echo(schemas[name][0].read_text("utf-8").rstrip("\n"))
    return 0
