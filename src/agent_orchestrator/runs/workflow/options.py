"""Turns a workflow file and the options of `orc run` into the specification of a run.

Everything that could never work is refused here, before a run exists: missing files, unknown agents, bad numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec

from agent_orchestrator.agents import ADAPTERS, find_agent
from agent_orchestrator.agents.options import AgentSettings, resolve_agent
from agent_orchestrator.core.budget import Amounts, Budget
from agent_orchestrator.core.effects import AgentChoice
from agent_orchestrator.core.limits import SPEC_LIMIT_BYTES
from agent_orchestrator.core.units import read_count, read_duration_s
from agent_orchestrator.errors import InvalidSpec, MissingPath, Problem, UsageError
from agent_orchestrator.runs.choices import (
    Permissions,
    check_agent,
    read_agent,
    read_env,
    read_idle_s,
    read_pairs,
    split_command,
)
from agent_orchestrator.systems.workflow.parse import env_names, parse
from agent_orchestrator.systems.workflow.spec import WorkflowSpec, with_prompts


class WorkflowOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The options of `orc run`, as given: None means not given."""

    workflow: str
    wrapper: str | None = None
    wrapper_args: tuple[str, ...] = ()
    agent: str | None = None
    agent_command: str | None = None
    rehearse: str | None = None
    roles: tuple[str, ...] = ()
    """ROLE=NAME[:MODEL]"""
    variables: tuple[str, ...] = ()
    """K=V"""
    env: tuple[str, ...] = ()
    """K=V"""
    max_parallel: str | int | None = None
    max_attempts: str | int | None = None
    max_iterations: str | int | None = None
    gate_state_file: str | None = None
    timeout: str | None = None
    idle_timeout: str | None = None
    allow_tools: tuple[str, ...] = ()
    permission_mode: str | None = None

    @property
    def permissions(self) -> Permissions:
        """What agents may do besides."""
        return Permissions(allow_tools=self.allow_tools, mode=self.permission_mode)

    def limits(self) -> dict[str, int]:
        """The limits that were really given: only these override what a run was created with."""
        given = {
            "max_parallel": self.max_parallel,
            "max_attempts": self.max_attempts,
            "max_iterations": self.max_iterations,
        }
        return {name: read_count(value, _flag(name)) for name, value in given.items() if value is not None}


class Prepared(msgspec.Struct, frozen=True, kw_only=True):
    """A specification ready to run, with what a person should know about the file."""

    spec: WorkflowSpec
    warnings: tuple[str, ...] = ()


def prepare(
    options: WorkflowOptions,
    home: Path,
    environ: Mapping[str, str],
    configured: Mapping[str, AgentSettings] | None = None,
    kept: Callable[[WorkflowSpec], Mapping[str, AgentChoice]] | None = None,
) -> Prepared:
    """Reads the file, finds its prompts, chooses its agents (as `configured`) and checks that they can start.

    `kept` says who performs what in the run that is taken up again, for roles that nobody else is chosen for.
    """
    file = Path(options.workflow).expanduser()
    parsed = parse(read_workflow(file), str(file))
    spec = msgspec.structs.replace(
        parsed.spec,
        agents=_resolved(parsed.spec, _agents(options), configured or {}, kept(parsed.spec) if kept is not None else {}),
        variables=read_pairs(options.variables, "--var"),
        env=read_env(options.env),
        when_env={name: environ[name] for name in env_names(parsed.spec) if name in environ},
        gate_state_file=str(Path(options.gate_state_file).absolute()) if options.gate_state_file else None,
        timeout_s=read_duration_s(options.timeout, "--timeout") if options.timeout else None,
        idle_timeout_s=read_idle_s(options.idle_timeout),
        file=str(file.absolute()),
        **options.limits(),
    )
    spec = with_prompts(_permitted(spec, options.permissions), find_prompts(spec, file, home))
    _check_agents(spec, home)
    return Prepared(spec=spec, warnings=(*parsed.warnings, *_unplayed(spec, options)))


def add_step_budgets(budget: Budget, spec: WorkflowSpec) -> Budget:
    """The limits with those that steps have of their own: whatever is limited anywhere."""
    for step in spec.steps:
        own = Budget(step=step.budget or Amounts(), attempt=step.attempt_budget or Amounts())
        budget = budget.override(own) if own.is_set else budget
    return budget


def read_workflow(file: Path) -> str:
    """The text of a workflow file, or the sentence that says why there is none."""
    try:
        if file.stat().st_size > SPEC_LIMIT_BYTES:
            raise UsageError(detail=f"The workflow {file} is larger than {SPEC_LIMIT_BYTES} bytes; split it.")
        return file.read_text("utf-8")
    except FileNotFoundError:
        raise MissingPath(what="The workflow", path=file) from None
    except (IsADirectoryError, PermissionError, NotADirectoryError) as error:
        raise UsageError(detail=f"The workflow {file} cannot be read: {error.strerror}.") from None
    except UnicodeDecodeError as error:
        raise InvalidSpec(str(file), [Problem(f"the file is not UTF-8 text: {error.reason}")]) from None


def _agents(options: WorkflowOptions) -> dict[str, AgentChoice]:
    ways = [name for name in ("wrapper", "agent", "agent_command", "rehearse") if getattr(options, name) is not None]
    if len(ways) > 1:
        raise UsageError(detail=f"{_flag(ways[0])} and {_flag(ways[1])} exclude each other; give one.")
    chosen: dict[str, AgentChoice] = {}
    if options.wrapper is not None:
        path = str(Path(options.wrapper).expanduser().absolute())
        chosen[""] = AgentChoice(name="wrapper", options={"path": path, "args": list(options.wrapper_args)})
    elif options.wrapper_args:
        raise UsageError(detail="--wrapper-arg needs --wrapper.")
    if options.agent is not None:
        chosen[""] = read_agent(options.agent)
    if options.agent_command is not None:
        chosen[""] = AgentChoice(name="command", options={"argv": split_command(options.agent_command)})
    if options.rehearse is not None:
        script = str(Path(options.rehearse).expanduser().absolute())
        chosen[""] = AgentChoice(name="scripted", options={"script": script})
    else:
        for role, agent in read_pairs(options.roles, "--role").items():
            chosen[role] = read_agent(agent)
    return chosen


def _permitted(spec: WorkflowSpec, given: Permissions) -> WorkflowSpec:
    """The specification whose agents may do what is given; an agent that a step names itself becomes a choice for that."""
    if not given.allow_tools and given.mode is None:
        return spec
    named = {step.agent: spec.choice_for(step) for step in spec.steps if spec.choice_for(step).performer in ADAPTERS}
    given.check(named.values())
    agents = {role: choice for role, choice in {**named, **spec.agents}.items() if role in spec.agents or role == choice.name}
    return msgspec.structs.replace(spec, agents={role: given.given_to(choice) for role, choice in agents.items()})


def _unplayed(spec: WorkflowSpec, options: WorkflowOptions) -> list[str]:
    """Roles that were given an agent and that no step has: somebody mistyped one, or means another file."""
    known = dict.fromkeys(step.agent for step in spec.steps)
    given = read_pairs(options.roles, "--role")
    return [
        f"--role {role}={agent}: no step has this role; there are: {', '.join(known)}"
        for role, agent in given.items()
        if role not in known
    ]


def _resolved(
    spec: WorkflowSpec,
    chosen: dict[str, AgentChoice],
    configured: Mapping[str, AgentSettings],
    kept: Mapping[str, AgentChoice],
) -> dict[str, AgentChoice]:
    """The choices with their settings, over those that were kept; a step may name a configured agent as its role."""
    roles = {step.agent for step in spec.steps if step.agent in configured} if "" not in {**kept, **chosen} else set()
    named = {role: AgentChoice(name=role) for role in sorted(roles)}
    return {**kept, **{role: resolve_agent(choice, configured) for role, choice in {**named, **chosen}.items()}}


def find_prompts(spec: WorkflowSpec, file: Path, home: Path) -> dict[str, str]:
    """The prompt file of each step; raises InvalidSpec with every one that is missing."""
    paths: dict[str, str] = {}
    problems: list[Problem] = []
    beside = file.absolute().parent
    for step in spec.steps:
        written = Path(step.prompt)
        if written.is_absolute():
            places = [written]
        else:
            places = [home / ".agents" / "prompts" / written.name, beside / written, home / written]
        found = next((place for place in places if place.is_file()), None)
        if found is None:
            looked = " or ".join(dict.fromkeys(str(place) for place in places))
            problems.append(Problem(f"step {step.id}: the prompt {step.prompt} does not exist (looked for {looked})"))
        else:
            paths[step.id] = str(found)
    if problems:
        raise InvalidSpec(str(file), problems)
    return paths


def _check_agents(spec: WorkflowSpec, home: Path) -> None:
    checked: set[bytes] = set()
    for step in spec.steps:
        choice = spec.choice_for(step)
        key = msgspec.json.encode(choice)
        if key in checked:
            continue
        checked.add(key)
        if choice.name == step.agent and step.agent not in spec.agents and "" not in spec.agents and step.agent != "shell":
            _check_named(choice, step.agent)
        check_agent(choice, home)


def _check_named(choice: AgentChoice, role: str) -> None:
    try:
        find_agent(choice.name)
    except UsageError as error:
        ways = f"--wrapper, --agent, --agent-command, --rehearse or --role {role}=NAME"
        raise UsageError(detail=f"Nobody performs the role {role!r}: give {ways}.") from error


def _flag(name: str) -> str:
    return "--" + name.replace("_", "-")
