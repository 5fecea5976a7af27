"""`orc validate`: every fault of a workflow file or a state file, each with its place."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from agent_orchestrator.core.units import say_count
from agent_orchestrator.errors import InvalidSpec, MissingPath, Problem, UsageError
from agent_orchestrator.surfaces.cli.options import command as make_command

if TYPE_CHECKING:
    import yaml

    from agent_orchestrator.systems.workflow.parse import ParsedWorkflow

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
    from agent_orchestrator.runs.workflow.options import read_workflow
    from agent_orchestrator.surfaces.cli.screen import Screen, print_json, warn

    path = Path(file).expanduser()
    if not path.exists():
        raise MissingPath(what="The file", path=path)
    if not path.is_file():
        raise UsageError(detail=f"{path} is not a file; give a workflow file or a run_state.json.")
    settings = load_settings(repo)
    text = read_workflow(path)
    is_state = _is_state(path, text)
    kind = "task-document" if path.suffix == ".md" else "run-state" if is_state else "workflow"
    warnings: tuple[str, ...] = ()
    try:
        if is_state:
            facts = _check_state(text, str(path))
        elif kind == "task-document":
            facts, warnings = _check_document(text, str(path))
        else:
            parsed = _check_workflow(text, path, settings.home if repo is not None else None)
            warnings = parsed.warnings
            facts = f"workflow {parsed.spec.name}, {say_count(len(parsed.spec.steps), 'step')}"
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


def _is_state(path: Path, text: str) -> bool:
    """By its name, or because it is JSON with what only a state file has."""
    return path.suffix == ".json" or (text.lstrip().startswith("{") and '"run_id"' in text)


def _check_document(text: str, file: str) -> tuple[str, tuple[str, ...]]:
    from agent_orchestrator.systems.phases.parse import parse_document

    parsed = parse_document(text, file)
    plan = parsed.plan
    size = f"{say_count(len(plan.phases), 'phase')}, {say_count(len(plan.tasks), 'task')}"
    return f"task document {plan.name}, {size}", parsed.warnings


def _check_workflow(text: str, path: Path, home: Path | None) -> ParsedWorkflow:
    from agent_orchestrator.runs.workflow.options import find_prompts
    from agent_orchestrator.systems.workflow.parse import parse

    parsed = parse(text, str(path))
    if home is not None:
        try:
            find_prompts(parsed.spec, path, home)
        except InvalidSpec as error:
            lines = _prompt_lines(text, str(path))
            raise InvalidSpec(str(path), [_placed(one, lines) for one in error.problems]) from None
    return parsed


def _placed(problem: Problem, lines: dict[str, tuple[int, int]]) -> Problem:
    place = next((lines[unit] for unit in lines if problem.message.startswith(f"step {unit}: ")), (None, None))
    return Problem(problem.message, *place)


def _prompt_lines(text: str, file: str) -> dict[str, tuple[int, int]]:
    """Where each step's prompt stands in a valid workflow file."""
    from agent_orchestrator.systems.workflow.nodes import compose

    found: dict[str, tuple[int, int]] = {}
    for step in _children(_children(compose(text, file)).get("steps")).values():
        keys = _children(step)
        mark = keys["prompt"].start_mark
        found[str(keys["id"].value)] = (mark.line + 1, mark.column + 1)
    return found


def _children(node: yaml.Node | None) -> dict[str, Any]:
    import yaml

    if isinstance(node, yaml.MappingNode):
        return {str(key.value): value for key, value in node.value}
    return {str(at): value for at, value in enumerate(node.value)} if isinstance(node, yaml.SequenceNode) else {}


def _check_state(text: str, file: str) -> str:
    import json

    from agent_orchestrator.systems.loop.decide.edits import check_state_document as check_loop_document
    from agent_orchestrator.systems.phases.decide.edits import is_old_format, read_state_document
    from agent_orchestrator.systems.team.decide.people import check_document, team_file
    from agent_orchestrator.systems.workflow.decide.edits import check_state_document

    try:
        document = json.loads(text)
    except json.JSONDecodeError as error:
        raise InvalidSpec(file, [Problem(f"this is not JSON: {error.msg}", error.lineno, error.colno)]) from None
    except RecursionError:
        raise InvalidSpec(file, [Problem("this is not JSON: it is nested too deeply")]) from None
    if (team := team_file(file)) is not None:
        problems = check_document(team, document)
        if problems:
            raise InvalidSpec(file, [Problem(problem) for problem in problems])
        return f"{team} of a team"
    is_loop = isinstance(document, dict) and "loop_id" in document
    is_phases = isinstance(document, dict) and ("orchestrator" in document or is_old_format(document))
    faults = check_loop_document(document) if is_loop else check_state_document(document) if not is_phases else []
    if is_phases and isinstance(read := read_state_document(document), list):
        faults = read
    if faults:
        root = _compose_json(text, file)
        raise InvalidSpec(file, [Problem(fault, *_place(root, fault.split(": ", 1)[0])) for fault in faults])
    if is_phases:
        where = document["orchestrator"]
        return f"the state of a run of phases, {where['status']}, {say_count(len(document['completed_tasks']), 'task')} completed"
    if is_loop:
        made = say_count(document["iteration"], "iteration")
        return f"the state of loop {document['loop_id']}, {document['status']} after {made}"
    return f"the state of run {document['run_id']}, {say_count(len(document['steps']), 'step')}"


def _compose_json(text: str, file: str) -> yaml.Node | None:
    """JSON is YAML but for its tabs, which may only stand between tokens."""
    from agent_orchestrator.systems.workflow.nodes import compose

    try:
        return compose(text.replace("\t", " "), file)
    except InvalidSpec:
        return None


def _place(root: yaml.Node | None, path: str) -> tuple[int | None, int | None]:
    """The place of the deepest part of a dotted path that exists; ids may have dots in them."""
    node, rest = root, path
    while rest:
        keys = _children(node)
        name = max((key for key in keys if rest == key or rest.startswith(key + ".")), key=len, default=None)
        if name is None:
            break
        node, rest = keys[name], rest[len(name) + 1 :]
    return (node.start_mark.line + 1, node.start_mark.column + 1) if node is not None else (None, None)
