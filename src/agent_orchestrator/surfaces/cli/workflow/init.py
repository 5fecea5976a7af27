"""`orc init`: writes a starter workflow. It never overwrites anything."""

from __future__ import annotations

from pathlib import Path

from agent_orchestrator.surfaces.cli.options import command as make_command

EXAMPLE = """
orc init
orc run --workflow workflow.yaml --rehearse rehearsal.yaml
"""

IGNORED = (".agents/runs/", ".agents/worktrees/", ".agents/orc/")


@make_command("init", EXAMPLE)
def command(repo: str | None, as_json: bool) -> int:
    """Write a starter workflow with its prompts.

    workflow.yaml, prompts/*.md, a rehearsal that plays it without a model, and entries in .gitignore. What is there
    already stays as it is.
    """
    from agent_orchestrator.config import load_settings
    from agent_orchestrator.surfaces.cli.screen import Screen, print_json

    settings = load_settings(repo)
    written, kept = _write_starter(settings.home)
    if as_json:
        print_json({"repo": str(settings.home), "written": written, "kept": kept})
        return 0
    screen = Screen(settings.environ)
    for name in written:
        screen.line(f"wrote  {name}")
    for name in kept:
        screen.line(f"kept   {name} (it is there already)")
    screen.line()
    screen.line("Try it without a model:   orc run --workflow workflow.yaml --rehearse rehearsal.yaml")
    screen.line("See what would run:       orc run --workflow workflow.yaml --rehearse rehearsal.yaml --plan")
    return 0


def _write_starter(home: Path) -> tuple[list[str], list[str]]:
    from agent_orchestrator.errors import Unavailable
    from agent_orchestrator.surfaces.cli import workflow

    starter = Path(workflow.__file__).parent / "starter"
    written: list[str] = []
    kept: list[str] = []
    try:
        for source in sorted(path for path in starter.rglob("*") if path.is_file()):
            name = str(source.relative_to(starter))
            (written if _copy_new(source, home / name) else kept).append(name)
        (written if _ignore(home / ".gitignore") else kept).append(f".gitignore: {', '.join(IGNORED)}")
    except OSError as error:
        raise Unavailable(detail=f"{error.filename} cannot be written: {error.strerror}.") from error
    return written, kept


def _copy_new(source: Path, target: Path) -> bool:
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        with target.open("x", encoding="utf-8") as out:
            out.write(source.read_text("utf-8"))
    except FileExistsError:
        return False
    return True


def _ignore(file: Path) -> bool:
    lines = file.read_text("utf-8", "replace").splitlines() if file.exists() else []
    missing = [one for one in IGNORED if not {one, f"/{one}", ".agents/", "/.agents/"} & set(lines)]
    if not missing:
        return False
    with file.open("a", encoding="utf-8") as out:
        out.write(("\n" if lines and lines[-1] else "") + "\n".join(["# state of orc's runs", *missing]) + "\n")
    return True
