"""Turns a task document and the options of `orc phases run` into the specification of a run.

Everything that could never work is refused here, before a run exists: a document with faults, an unknown agent, a bad
number.
"""

from __future__ import annotations

import shlex
import shutil
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import ClassVar

import msgspec

from agent_orchestrator import typed
from agent_orchestrator.agents.options import AgentSettings, resolve_agent
from agent_orchestrator.bounded import read_bounded
from agent_orchestrator.core.effects import AgentChoice
from agent_orchestrator.core.limits import REPORT_LIMIT_BYTES
from agent_orchestrator.core.units import read_count
from agent_orchestrator.errors import UsageError
from agent_orchestrator.projections.inspection import EDIT_LIMIT_BYTES
from agent_orchestrator.runs.choices import (
    NOBODY,
    AgentOptions,
    check_agents,
    choose_agents,
    read_env,
    read_idle_s,
    read_pairs,
    read_performer,
)
from agent_orchestrator.runs.inputs import read_given_duration, read_text
from agent_orchestrator.runs.start import Prepared
from agent_orchestrator.systems.phases.bounds import change_bounds
from agent_orchestrator.systems.phases.commands import SHELL_WORDS
from agent_orchestrator.systems.phases.documents import LEARNINGS
from agent_orchestrator.systems.phases.parse import ParsedPlan, parse_document
from agent_orchestrator.systems.phases.spec import ATTEMPTS, PLANNER, ROLES, Lesson, PhasesPlan, PhasesSpec, branch_of

LESSONS_KEPT = 200
"""Of what earlier runs learned, the newest."""


class PhasesOptions(AgentOptions, frozen=True, kw_only=True):
    """The options of `orc phases run`, as given: None means not given."""

    system: ClassVar[str] = "phases"
    document: str
    variables: tuple[str, ...] = ()
    yes: bool = False
    plan_with: str | None = None
    max_parallel: str | int | None = None
    max_attempts: str | int | None = None
    max_iterations: str | int | None = None
    budget_usd: str | None = None
    max_time: str | None = None
    no_supervisor: bool = False
    no_outer_ralph: bool = False
    timeout: str | None = None


def read_document(file: Path, home: Path) -> ParsedPlan:
    """Read the plan in a task document, or say every problem that it has; commands will run in `home`."""
    if file.exists() and not file.is_file() and not file.is_dir():  # Reading a pipe may never end.
        raise UsageError(detail=f"The task document {file} is not a regular file; write it to one.")
    text = read_text(file, "The task document", REPORT_LIMIT_BYTES)
    return parse_text(text, file, home)


def parse_text(text: str, file: Path, home: Path) -> ParsedPlan:
    """Read the plan in the text of a task document."""
    parsed = parse_document(text, str(file), partial(_exists, home))
    return msgspec.structs.replace(parsed, warnings=(*parsed.warnings, *_doubtful(parsed.plan, home)))


def _exists(home: Path, name: str) -> bool:
    """Tell whether there is a program: a word of the shell, one in the PATH, or one at a path of the repository."""
    return name in SHELL_WORDS or shutil.which(str(home / name) if "/" in name else name) is not None


def _doubtful(plan: PhasesPlan, home: Path) -> list[str]:
    """Say which commands will be run though their program is not here."""
    found = []
    for where, criteria in [("the whole", plan.criteria), *((f"task {task.id}", task.criteria) for task in plan.tasks)]:
        for one in criteria:
            word = _program(one.command) if one.command is not None else None
            if word is not None and not _exists(home, word):
                found.append(f"{where}: `{one.command}` will be run, and there is no program {word!r} here")
    return found


def _program(command: str) -> str | None:
    try:
        words = shlex.split(command)
    except ValueError:
        return None
    return next((word for word in words if "=" not in word and word not in ("!", "(")), None)


def prepare(options: PhasesOptions, home: Path, configured: Mapping[str, AgentSettings] = NOBODY) -> Prepared[PhasesSpec]:
    """Read the document, choose the agents (as `configured`) and check that they can start; the branch is made later."""
    file = Path(options.document).expanduser().absolute()
    parsed = read_document(file, home)
    plan = _with_options(parsed.plan, options)
    spec = PhasesSpec(
        document=str(file),
        plan=plan,
        agents=_agents(options, home, configured),
        branch=branch_of(plan),
        yes=options.yes,
        plan_with=options.plan_with is not None,
        env=read_env(options.env),
        variables=read_pairs(options.variables, "--var"),
        timeout_s=read_given_duration(options.timeout, "--timeout"),
        idle_timeout_s=read_idle_s(options.idle_timeout),
        earlier=earlier_lessons(home),
        max_parallel=read_count(1 if options.max_parallel is None else options.max_parallel, "--max-parallel"),
        max_attempts=read_count(ATTEMPTS if options.max_attempts is None else options.max_attempts, "--max-attempts"),
    )
    return Prepared(spec=spec, warnings=parsed.warnings)


def _with_options(plan: PhasesPlan, options: PhasesOptions) -> PhasesPlan:
    given = {"max_iterations": options.max_iterations, "max_cost": options.budget_usd, "max_time": options.max_time}
    bounds = change_bounds(plan.bounds, {name: value for name, value in given.items() if value is not None})
    plan = msgspec.structs.replace(plan, bounds=bounds)
    if options.no_supervisor:
        plan = msgspec.structs.replace(plan, supervision=msgspec.structs.replace(plan.supervision, enabled=False))
    return msgspec.structs.replace(plan, outer_ralph=False) if options.no_outer_ralph else plan


def _agents(options: PhasesOptions, home: Path, configured: Mapping[str, AgentSettings]) -> dict[str, AgentChoice]:
    chosen = choose_agents(options, home, configured, ROLES)
    if options.plan_with is not None:
        chosen[PLANNER] = resolve_agent(read_performer(options.plan_with, home, "--plan-with"), configured)
    if "" not in chosen:
        raise UsageError(detail="Nobody would work: give --agent, --agent-command or --rehearse.")
    return check_agents(chosen, home, options.permissions)


def earlier_lessons(home: Path) -> tuple[Lesson, ...]:
    """Read what earlier runs learned, as far as their lines can be read."""
    try:
        lines = read_bounded(home / LEARNINGS, EDIT_LIMIT_BYTES, root=home).splitlines()[-LESSONS_KEPT:]
    except OSError:
        return ()
    found = []
    for line in lines:
        try:
            found.append(typed.decode(line, Lesson))
        except (msgspec.DecodeError, UnicodeDecodeError):
            continue  # Another tool's line is left where it is.
    return tuple(found)
