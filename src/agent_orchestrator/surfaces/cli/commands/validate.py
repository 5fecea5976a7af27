"""`orc validate`: every fault of a file that runs are made of, or of a state file, each with its place."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from agent_orchestrator.errors import InvalidSpec, MissingPath, Problem, UsageError
from agent_orchestrator.surfaces.cli.options import command as make_command
from agent_orchestrator.systems import SYSTEMS, about

if TYPE_CHECKING:
    import yaml

EXAMPLE = """
orc validate workflow.yaml --repo .
orc validate task.md
orc validate .agents/runs/f8c1a491/run_state.json
"""


@make_command("validate", EXAMPLE)
@click.argument("file", type=click.Path())
def command(file: str, repo: str | None, as_json: bool) -> int:
    """Check a workflow file, a task document or a state file.

    Says every fault with its line. With --repo the prompts of a workflow must be found, too.
    """
    from agent_orchestrator.config import load_settings
    from agent_orchestrator.runs.inputs import read_text
    from agent_orchestrator.surfaces.cli.screen import Screen, print_json, warn

    path = Path(file).expanduser()
    if not path.exists():
        raise MissingPath(what="The file", path=path)
    if not path.is_file():
        raise UsageError(detail=f"{path} is not a file; give a workflow file or a run_state.json.")
    settings = load_settings(repo)
    text = read_text(path, "The file")
    system, kind = _kind_of(path, text)
    warnings: tuple[str, ...] = ()
    try:
        if system is None:
            facts = _check_state(text, str(path))
        else:
            facts, warnings = _check_source(system, text, path, settings.home if repo is not None else None)
    except InvalidSpec as error:
        if as_json:
            problems = [{"line": one.line, "column": one.column, "message": one.message} for one in error.problems]
            print_json({"file": str(path), "kind": kind, "valid": False, "problems": problems, "warnings": []})
            return error.exit_code
        raise
    for warning in warnings:
        warn(warning)
    if as_json:
        print_json({"file": str(path), "kind": kind, "valid": True, "problems": [], "warnings": list(warnings)})
    else:
        Screen(settings.environ).line(f"{path} is valid: {facts}.")
    return 0


def _kind_of(path: Path, text: str) -> tuple[str | None, str]:
    """Return the system whose runs are made of such a file, None for a state file, and the kind of file."""
    if path.suffix == ".json" or (text.lstrip().startswith("{") and '"run_id"' in text):
        return None, "run-state"
    # Backwards: the first system takes what the others do not know.
    kinds = ((system, source) for system in reversed(SYSTEMS) if (source := about(system).source) is not None)
    return next((system, source.kind) for system, source in kinds if path.name.endswith(source.suffix))


def _check_source(system: str, text: str, path: Path, home: Path | None) -> tuple[str, tuple[str, ...]]:
    from agent_orchestrator.surfaces.cli.words import words_of

    check = words_of(system).check_source
    assert check is not None, f"{system} has source files and checks none"
    return check(text, path, home)


def _check_state(text: str, file: str) -> str:
    import json

    from agent_orchestrator.surfaces.cli.words import words_of

    try:
        document = json.loads(text)
    except json.JSONDecodeError as error:
        raise InvalidSpec(file, [Problem(f"this is not JSON: {error.msg}", error.lineno, error.colno)]) from None
    except RecursionError:
        raise InvalidSpec(file, [Problem("this is not JSON: it is nested too deeply")]) from None
    except ValueError:  # Python reads no number of more than 4,300 digits
        raise InvalidSpec(file, [Problem("a number in it is too long to be read")]) from None
    checks = (check for system in reversed(SYSTEMS) if (check := words_of(system).check_state) is not None)
    found = next(found for check in checks if (found := check(file, document)) is not None)
    if isinstance(found, str):
        return found
    root = _compose(text)
    raise InvalidSpec(file, [Problem(fault, *_place(root, fault.split(": ", 1)[0])) for fault in found])


def _compose(text: str) -> yaml.Node | None:
    """Return the nodes of a JSON text with their places; it is YAML but for its tabs, which may only stand between tokens."""
    import yaml

    try:
        root: yaml.Node | None = yaml.compose(text.replace("\t", " "), Loader=yaml.CSafeLoader)
    except (yaml.YAMLError, RecursionError):
        return None
    return root


def children(node: yaml.Node | None) -> dict[str, Any]:
    """Return the nodes in a node of a YAML document, by key or number."""
    import yaml

    if isinstance(node, yaml.MappingNode):
        return {str(key.value): value for key, value in node.value}
    return {str(at): value for at, value in enumerate(node.value)} if isinstance(node, yaml.SequenceNode) else {}


def _place(root: yaml.Node | None, path: str) -> tuple[int | None, int | None]:
    """The place of the deepest part of a dotted path that exists; ids may have dots in them."""
    node, rest = root, path
    while rest:
        keys = children(node)
        name = max((key for key in keys if rest == key or rest.startswith(key + ".")), key=len, default=None)
        if name is None:
            break
        node, rest = keys[name], rest[len(name) + 1 :]
    return (node.start_mark.line + 1, node.start_mark.column + 1) if node is not None else (None, None)
