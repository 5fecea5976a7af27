"""Bare tasks: `orc run TASK` without a workflow file. The workflow, the check and the agent are found, and said.

The built-in workflow is an ordinary one, in `built_in/`. Whatever workflow a task is run with, `{task}` in its prompts and
`{check}` in its checks are filled in when the run is made.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from agent_orchestrator.agents import ADAPTERS
from agent_orchestrator.agents.options import AgentSettings
from agent_orchestrator.errors import InvalidValue, UsageError
from agent_orchestrator.runs.choices import read_pairs
from agent_orchestrator.runs.clients import choose_client
from agent_orchestrator.runs.detection import detect_check
from agent_orchestrator.runs.inputs import read_text
from agent_orchestrator.systems.workflow.spec import WorkflowSpec

if TYPE_CHECKING:
    from agent_orchestrator.runs.workflow.options import WorkflowOptions

BUILT_IN = Path(__file__).parent / "built_in"
TASK, CHECK = "task", "check"
NAME_CHARS = 60
"""The most of a task's first line that a run is named after."""
_HOLE = "{check}"


class TaskFile(msgspec.Struct, frozen=True, kw_only=True):
    """The workflow file of a run, what fills its holes, and what a person should know about the choice."""

    file: Path
    variables: dict[str, str] = {}
    notes: tuple[str, ...] = ()


def find_file(options: WorkflowOptions, home: Path) -> TaskFile:
    """Find the workflow that is given, or that a task is run with; raise a UsageError where nothing is to be done."""
    if options.task is None:
        if options.check is not None or options.no_check:
            raise UsageError(detail="--check and --no-check are for a TASK; a workflow file says itself what is checked.")
        if options.workflow is None:
            raise UsageError(detail='What is to be done? Give a task, as in `orc run "fix the login bug"`, or --workflow FILE.')
        return TaskFile(file=Path(options.workflow).expanduser())
    task = _read_task(options.task, home)
    given = Path(options.workflow).expanduser() if options.workflow is not None else None
    if given is not None and options.check is None and _HOLE not in read_text(given, "The workflow"):
        return TaskFile(file=given, variables={TASK: task, CHECK: ""})
    check, notes = _find_check(options, home)
    named = options.usual.task_file
    if given is not None:
        file = given
    elif named is not None:
        file = home / Path(named).expanduser()
        notes = (f"workflow: {named} ({options.usual.origins['task_file']})", *notes)
    else:
        file = BUILT_IN / ("task.yaml" if check else "unchecked.yaml")
    return TaskFile(file=file, variables={TASK: task, CHECK: check}, notes=notes)


def refuse_unread(task: str, prompts: Iterable[str], file: Path) -> None:
    """Raise where no prompt of the workflow has a place for the task."""
    if not any("{task}" in read_text(Path(prompt), "The prompt") for prompt in prompts):
        told = f"{task!r} would reach nobody: no prompt of {file} has {{task}} in it"
        raise UsageError(detail=f"{told}; leave it out, or write {{task}} where it belongs.")


def _read_task(text: str, home: Path) -> str:
    if not text.strip():
        raise InvalidValue(what="TASK", value=text, expected="what is to be done, in words")
    if text.endswith((".yaml", ".yml")) and " " not in text and Path(text).is_file():
        raise UsageError(detail=f"{text} is a file: `orc run --workflow {text}` runs it.")
    return text.strip()


def _find_check(options: WorkflowOptions, home: Path) -> tuple[str, tuple[str, ...]]:
    """Return the command that says whether the task is done, "" for none, and why it is this one."""
    if options.check is not None and options.no_check:
        raise UsageError(detail="--check and --no-check exclude each other; give one.")
    if options.check is not None:
        if not options.check.strip():
            raise UsageError(detail="--check is empty: give a command, or --no-check to go without one.")
        return options.check, ()
    if options.no_check:
        return "", ("no check: nothing verifies what the agent does.",)
    if options.usual.check is not None:
        return options.usual.check, (f"check: {options.usual.check} ({options.usual.origins['check']})",)
    found = detect_check(home)
    if found is None:
        none = f"Nothing would verify the work: no check is configured, and none was recognised in {home}"
        raise UsageError(detail=f"{none}; give --check 'CMD', or --no-check to go without one.")
    return found.command, (f"check: {found.command} (detected: {found.why}); --check or `run.check` says otherwise",)


def with_task(spec: WorkflowSpec, variables: Mapping[str, str]) -> WorkflowSpec:
    """Return the workflow named after its task, with the check filled in; as it is where it has none."""
    if not {TASK, CHECK} <= variables.keys():
        return spec
    command = variables[CHECK]
    steps = tuple(
        msgspec.structs.replace(step, check=step.check.replace(_HOLE, command) if command else None)
        if step.check is not None and _HOLE in step.check
        else step
        for step in spec.steps
    )
    line = variables[TASK].splitlines()[0]
    name = line if len(line) <= NAME_CHARS else f"{line[: NAME_CHARS - 1].rstrip()}…"
    return msgspec.structs.replace(spec, name=name, steps=steps)


def with_client(
    spec: WorkflowSpec, options: WorkflowOptions, environ: Mapping[str, str], configured: Mapping[str, AgentSettings]
) -> tuple[WorkflowOptions, tuple[str, ...]]:
    """Return the options with an agent for the roles that nobody plays, and why it is this one."""
    known = {*read_pairs(options.roles, "--role"), *options.usual.roles, *configured, *ADAPTERS}
    if options.names_somebody or options.usual.agent is not None or all(step.agent in known for step in spec.steps):
        return options, ()
    client, why = choose_client(environ, configured)
    return msgspec.structs.replace(options, agent=client.name), (f"agent: {client.name} ({why})",)
