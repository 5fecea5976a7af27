"""`orc phases new`: writes a template of a task document."""

from __future__ import annotations

from pathlib import Path

import click

from agent_orchestrator.errors import UsageError
from agent_orchestrator.surfaces.cli.options import command as make_command

EXAMPLE = """
orc phases new
orc phases new docs/auth.md
"""


@make_command("new", EXAMPLE)
@click.argument("file", default="task.md", type=click.Path())
@click.option("--force", is_flag=True, help="Write over a file that exists.")
def command(file: str, force: bool, repo: str | None, as_json: bool) -> int:
    """Write a template of a task document.

    What stands between ‹ and › is to be replaced: a document with one left in is refused.
    """
    from agent_orchestrator import systems
    from agent_orchestrator.surfaces.cli.screen import print_json

    path = Path(repo or ".").joinpath(Path(file).expanduser())
    if path.exists() and not force:
        raise UsageError(detail=f"{path} exists already; choose another name, or give --force to write over it.")
    if not path.parent.is_dir():
        raise UsageError(detail=f"There is no folder {path.parent} to write {path.name} into; make it first.")
    template = Path(systems.__file__).parent.joinpath("phases", "template.md")
    try:
        path.write_text(template.read_text("utf-8"), "utf-8")
    except OSError as error:
        raise UsageError(detail=f"{path} cannot be written: {error.strerror}.") from None
    if as_json:
        print_json({"file": str(path)})
    else:
        click.echo(f"{path} is written; fill it in, then: orc phases plan {file}")
    return 0
