"""Turns a task document and the options of `orc phases run` into the specification of a run.

Everything that could never work is refused here, before a run exists: a document with faults, an unknown agent, a bad
number.
"""

from __future__ import annotations

import shlex
import shutil
import stat
from collections.abc import Mapping
from pathlib import Path

import msgspec

from agent_orchestrator.agents.options import AgentSettings, resolve_agent
from agent_orchestrator.core.effects import AgentChoice
from agent_orchestrator.core.limits import REPORT_LIMIT_BYTES
from agent_orchestrator.core.units import read_count, read_duration_s
from agent_orchestrator.errors import InvalidSpec, InvalidValue, MissingPath, Problem, UsageError
from agent_orchestrator.runs.choices import (
    Permissions,
    check_agent,
    read_agent,
    read_env,
    read_idle_s,
    read_pairs,
    split_command,
)
from agent_orchestrator.systems.phases.bounds import change_bounds
from agent_orchestrator.systems.phases.documents import LEARNINGS
from agent_orchestrator.systems.phases.parse import ParsedPlan, parse_document
from agent_orchestrator.systems.phases.spec import ATTEMPTS, PLANNER, ROLES, Lesson, PhasesPlan, PhasesSpec, branch_of

LESSONS_KEPT = 200
"""Of what earlier runs learned, the newest."""
SHELL_WORDS = frozenset(("!", "[", "cd", "command", "exec", "export", "for", "if", "set", "test", "true", "false", "while", "."))


class PhasesOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The options of `orc phases run`, as given: None means not given."""

    document: str
    agent: str | None = None
    agent_command: str | None = None
    rehearse: str | None = None
    roles: tuple[str, ...] = ()
    variables: tuple[str, ...] = ()
    env: tuple[str, ...] = ()
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
    idle_timeout: str | None = None
    allow_tools: tuple[str, ...] = ()
    permission_mode: str | None = None

    @property
    def permissions(self) -> Permissions:
        """What agents may do besides."""
        return Permissions(allow_tools=self.allow_tools, mode=self.permission_mode)


def read_document(file: Path) -> ParsedPlan:
    """The plan in a task document, or every problem that it has."""
    try:
        found = file.stat()
        if not stat.S_ISREG(found.st_mode) and not stat.S_ISDIR(found.st_mode):  # Reading a pipe may never end.
            raise UsageError(detail=f"The task document {file} is not a regular file; write it to one.")
        if found.st_size > REPORT_LIMIT_BYTES:
            raise UsageError(detail=f"The task document {file} is larger than {REPORT_LIMIT_BYTES} bytes; split it.")
        text = file.read_text("utf-8-sig")
    except FileNotFoundError:
        raise MissingPath(what="The task document", path=file) from None
    except (IsADirectoryError, PermissionError, NotADirectoryError) as error:
        raise UsageError(detail=f"The task document {file} cannot be read: {error.strerror}.") from None
    except UnicodeDecodeError as error:
        raise InvalidSpec(str(file), [Problem(f"the file is not UTF-8 text: {error.reason}")]) from None
    parsed = parse_document(text, str(file))
    return msgspec.structs.replace(parsed, warnings=(*parsed.warnings, *_doubtful(parsed.plan, file.absolute().parent)))


def _doubtful(plan: PhasesPlan, home: Path) -> list[str]:
    """Commands that may be none: what stands in backticks is run."""
    found = []
    for where, criteria in [("the whole", plan.criteria), *((f"task {task.id}", task.criteria) for task in plan.tasks)]:
        for one in criteria:
            word = _program(one.command) if one.command is not None else None
            if word is not None and word not in SHELL_WORDS and "/" not in word and shutil.which(word) is None:
                found.append(f"{where}: `{one.command}` will be run, and there is no program {word!r} here")
    return found


def _program(command: str) -> str | None:
    try:
        words = shlex.split(command)
    except ValueError:
        return None
    return next((word for word in words if "=" not in word), None)


class Prepared(msgspec.Struct, frozen=True, kw_only=True):
    """A specification ready to run, with what a person should know about the document."""

    spec: PhasesSpec
    warnings: tuple[str, ...] = ()


def prepare(options: PhasesOptions, home: Path, configured: Mapping[str, AgentSettings] | None = None) -> Prepared:
    """Reads the document, chooses the agents (as `configured`) and checks that they can start; the branch is made later."""
    file = Path(options.document).expanduser().absolute()
    parsed = read_document(file)
    plan = _with_options(parsed.plan, options)
    spec = PhasesSpec(
        document=str(file),
        plan=plan,
        agents=_agents(options, configured or {}, home),
        branch=branch_of(plan),
        yes=options.yes,
        plan_with=options.plan_with is not None,
        env=read_env(options.env),
        variables=read_pairs(options.variables, "--var"),
        timeout_s=read_duration_s(options.timeout, "--timeout") if options.timeout is not None else None,
        idle_timeout_s=read_idle_s(options.idle_timeout),
        earlier=earlier_lessons(home),
        max_parallel=_count(options.max_parallel, "--max-parallel", 1),
        max_attempts=_count(options.max_attempts, "--max-attempts", ATTEMPTS),
    )
    return Prepared(spec=spec, warnings=parsed.warnings)


def _count(value: str | int | None, flag: str, default: int) -> int:
    return default if value is None else read_count(value, flag)


def _with_options(plan: PhasesPlan, options: PhasesOptions) -> PhasesPlan:
    given = {"max_iterations": options.max_iterations, "max_cost": options.budget_usd, "max_time": options.max_time}
    bounds = change_bounds(plan.bounds, {name: value for name, value in given.items() if value is not None})
    plan = msgspec.structs.replace(plan, bounds=bounds)
    if options.no_supervisor:
        plan = msgspec.structs.replace(plan, supervision=msgspec.structs.replace(plan.supervision, enabled=False))
    return msgspec.structs.replace(plan, outer_ralph=False) if options.no_outer_ralph else plan


def _agents(options: PhasesOptions, configured: Mapping[str, AgentSettings], home: Path) -> dict[str, AgentChoice]:
    ways = [name for name in ("agent", "agent_command", "rehearse") if getattr(options, name) is not None]
    if len(ways) > 1:
        first, second = (f"--{name.replace('_', '-')}" for name in ways[:2])
        raise UsageError(detail=f"{first} and {second} exclude each other; give one.")
    chosen: dict[str, AgentChoice] = {}
    if options.agent is not None:
        chosen[""] = read_agent(options.agent)
    if options.agent_command is not None:
        chosen[""] = AgentChoice(name="command", options={"argv": split_command(options.agent_command)})
    if options.rehearse is not None:
        chosen[""] = AgentChoice(name="scripted", options={"script": str(Path(options.rehearse).expanduser().absolute())})
    for role, agent in read_pairs(options.roles, "--role").items():
        if role not in ROLES:
            raise InvalidValue(what="--role", value=role, expected=f"one of {', '.join(ROLES)}")
        chosen[role] = read_agent(agent)
    if options.plan_with is not None:
        chosen[PLANNER] = _planner(options.plan_with)
    if "" not in chosen:
        raise UsageError(detail="Nobody would work: give --agent, --agent-command or --rehearse.")
    checked = {role: _checked(choice, configured, home) for role, choice in chosen.items()}
    options.permissions.check(checked.values())
    return {role: options.permissions.given_to(choice) for role, choice in checked.items()}


def _planner(text: str) -> AgentChoice:
    """NAME[:MODEL], or any program by its path or with its arguments."""
    if " " in text or "/" in text:
        return AgentChoice(name="command", options={"argv": split_command(text)})
    return read_agent(text)


def _checked(choice: AgentChoice, configured: Mapping[str, AgentSettings], home: Path) -> AgentChoice:
    resolved = resolve_agent(choice, configured)
    check_agent(resolved, home)
    return resolved


def earlier_lessons(home: Path) -> tuple[Lesson, ...]:
    """What earlier runs learned, as far as their lines can be read."""
    try:
        lines = (home / LEARNINGS).read_bytes().splitlines()[-LESSONS_KEPT:]
    except OSError:
        return ()
    found = []
    for line in lines:
        try:
            found.append(msgspec.json.decode(line, type=Lesson))
        except (msgspec.DecodeError, UnicodeDecodeError):
            continue  # Another tool's line is left where it is.
    return tuple(found)
