"""`orc init`: writes a starter workflow. It never overwrites anything."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import click

from agent_orchestrator.surfaces.cli.options import command as make_command

if TYPE_CHECKING:
    from agent_orchestrator.config import Settings

EXAMPLE = """
orc init
orc init --task "log in with a token"
orc run --workflow workflow.yaml --rehearse rehearsal.yaml
"""

TASK = "@TASK@"
"""The place of the task in the starter's prompts."""
ANY_TASK = "The work is what the person who started you asks for; where nothing is said, what the README lists as missing."
SCHEMAS = {"workflow": ".agents/schema/workflow.json", "config": ".agents/schema/config.json"}
"""The files with schemas for editors: the first line of workflow.yaml names the one, that of .orc.toml may name the other."""
IGNORED = (".agents/runs/", ".agents/worktrees/", ".agents/orc/")


@make_command("init", EXAMPLE)
@click.option("--task", metavar="TEXT", help="What the workflow is to do; it stands in the prompts.")
def command(repo: str | None, as_json: bool, task: str | None) -> int:
    """Write a starter workflow with its prompts.

    workflow.yaml, prompts/*.md, a rehearsal that plays it without a model, schemas for editors, and entries in
    .gitignore. What is there already stays as it is; only the schemas are renewed. Nothing of it is needed for
    `orc run TASK`.
    """
    from agent_orchestrator.config import load_settings
    from agent_orchestrator.surfaces.cli.screen import Screen, print_json

    settings = load_settings(repo)
    if task is not None and not task.strip():
        raise click.UsageError("--task is empty: say what is to be done.")
    written, kept = _write_starter(settings.home, task)
    with_agent = _next_command(settings)
    if as_json:
        print_json({"repo": str(settings.home), "written": written, "kept": kept, "next": with_agent})
        return 0
    screen = Screen(settings.environ)
    for name in written:
        screen.line(f"wrote  {name}")
    for name in kept:
        screen.line(f"kept   {name} (it is there already)")
    screen.line()
    screen.line("Try it without a model:   orc run --workflow workflow.yaml --rehearse rehearsal.yaml")
    screen.line("See what would run:       orc run --workflow workflow.yaml --rehearse rehearsal.yaml --plan")
    screen.line(f"Run it with an agent:     {with_agent}")
    screen.line(f"Or without these files:   orc run {shlex.quote(task or 'what is to be done')}")
    if task is not None and any(name.startswith("prompts/") for name in kept):
        screen.line()
        screen.line("The task does not stand in prompts that were kept: edit them, or move them away and run `orc init` again.")
    return 0


def _next_command(settings: Settings) -> str:
    """Return the command that runs the starter with an agent that is installed here, or with any program."""
    from agent_orchestrator.config.defaults import read_configuration
    from agent_orchestrator.errors import OrcError
    from agent_orchestrator.runs.clients import choose_client

    found = read_configuration(settings)
    try:
        named = found.run.agent or choose_client(settings.environ, found.agents)[0].name
    except OrcError:
        return "orc run --workflow workflow.yaml --agent-command 'my-agent --yes'   (`orc doctor` looks for agents)"
    flag = "" if found.run.agent is not None else f" --agent {named}"
    return f"orc run --workflow workflow.yaml{flag}"


def _write_starter(home: Path, task: str | None) -> tuple[list[str], list[str]]:
    from agent_orchestrator.errors import Unavailable
    from agent_orchestrator.surfaces.cli import workflow
    from agent_orchestrator.surfaces.cli.commands.schema import read_schema

    starter = Path(workflow.__file__).parent / "starter"
    written: list[str] = []
    kept: list[str] = []
    try:
        for source in sorted(path for path in starter.rglob("*") if path.is_file()):
            name = str(source.relative_to(starter))
            text = source.read_text("utf-8").replace(TASK, task.strip() if task is not None else ANY_TASK)
            (written if _write_new(home / name, text) else kept).append(name)
        for schema, name in SCHEMAS.items():
            (written if _renew(home / name, read_schema(schema)) else kept).append(name)
        (written if _ignore(home / ".gitignore") else kept).append(f".gitignore: {', '.join(IGNORED)}")
    except OSError as error:
        raise Unavailable(detail=f"{error.filename} cannot be written: {error.strerror}.") from error
    return written, kept


def _write_new(target: Path, text: str) -> bool:
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        with target.open("x", encoding="utf-8") as out:
            out.write(text)
    except FileExistsError:
        return False
    return True


def _renew(target: Path, schema: str) -> bool:
    """Write a schema where there is none, or an older one of ours; returns False where it is there already or is not ours."""
    import json

    new = json.loads(schema)
    try:
        found = json.loads(target.read_text("utf-8"))
    except (OSError, ValueError):
        return _write_new(target, schema)
    if found == new or not isinstance(found, dict) or found.get("$id") != new["$id"]:
        return False
    target.write_text(schema, "utf-8")
    return True


def _ignore(file: Path) -> bool:
    lines = file.read_text("utf-8", "replace").splitlines() if file.exists() else []
    missing = [one for one in IGNORED if not {one, f"/{one}", ".agents/", "/.agents/"} & set(lines)]
    if not missing:
        return False
    with file.open("a", encoding="utf-8") as out:
        out.write(("\n" if lines and lines[-1] else "") + "\n".join(["# state of orc's runs", *missing]) + "\n")
    return True
