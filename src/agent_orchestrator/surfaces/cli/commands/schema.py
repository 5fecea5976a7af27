"""`orc schema`: the JSON Schemas of the files we read and write, also for editors."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib.resources import files

import click
from click.shell_completion import CompletionItem

from agent_orchestrator.errors import UsageError
from agent_orchestrator.surfaces.cli.options import command as make_command
from agent_orchestrator.systems import SYSTEMS, about

EXAMPLE = """
orc schema
orc schema workflow > workflow.schema.json
"""


def _schemas() -> dict[str, tuple[Callable[[], str], str]]:
    """Return the text of every schema, by name, and what it describes."""
    found = {
        schema.name: (partial(_read, f"agent_orchestrator.systems.{system}", schema.file), schema.describes)
        for system in SYSTEMS
        for schema in about(system).schemas
    }
    report = partial(_read, "agent_orchestrator.core", "report.schema.json")
    return {
        **found,
        "report": (report, "run_report@v0, what an agent writes"),
        "config": (_config, ".orc.toml and orc/config.toml, the configuration"),
    }


def _read(package: str, file: str) -> str:
    return (files(package) / "schema" / file).read_text("utf-8")


def _config() -> str:
    import json

    from agent_orchestrator.config.keys import config_schema

    return json.dumps(config_schema(), indent=2)


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
    click.echo(read_schema(name), nl=False)
    return 0


def read_schema(name: str) -> str:
    """Return the text of a schema; raises UsageError when there is none of that name."""
    schemas = _schemas()
    if name not in schemas:
        raise UsageError(detail=f"There is no schema {name!r}; there are: {', '.join(schemas)}.")
    return schemas[name][0]().rstrip("\n") + "\n"
