"""Turns a workflow file and the options of `orc run` into the specification of a run.

Everything that could never work is refused here, before a run exists: missing files, unknown agents, bad numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import ClassVar

import msgspec

from agent_orchestrator.agents import ADAPTERS, find_agent
from agent_orchestrator.agents.options import AgentSettings, resolve_agent
from agent_orchestrator.core.budget import Amounts, Budget
from agent_orchestrator.core.effects import AgentChoice
from agent_orchestrator.errors import InvalidSpec, InvalidValue, Problem, UsageError
from agent_orchestrator.git.repository import top_level
from agent_orchestrator.runs.choices import (
    AgentOptions,
    Permissions,
    check_agent,
    choose_agents,
    read_env,
    read_idle_s,
    read_pairs,
)
from agent_orchestrator.runs.inputs import read_counts, read_given_duration, read_text
from agent_orchestrator.runs.start import Prepared
from agent_orchestrator.runs.workflow.task import BUILT_IN, find_file, refuse_unread, with_client, with_task
from agent_orchestrator.systems.workflow.effects import ISSUE
from agent_orchestrator.systems.workflow.parse import env_names, parse
from agent_orchestrator.systems.workflow.spec import WorkflowSpec, with_prompts


class WorkflowOptions(AgentOptions, frozen=True, kw_only=True):
    """The options of `orc run`, as given: None means not given."""

    system: ClassVar[str] = "workflow"
    workflow: str | None = None
    task: str | None = None
    """In place of a workflow, or for one: it fills `{task}`."""
    check: str | None = None
    """The command that says whether the task is done."""
    no_check: bool = False
    variables: tuple[str, ...] = ()
    """K=V"""
    max_parallel: str | int | None = None
    max_attempts: str | int | None = None
    max_iterations: str | int | None = None
    gate_state_file: str | None = None
    timeout: str | None = None
    issue_number: str | None = None

    def limits(self) -> dict[str, int]:
        """Return the limits that were really given: only these override what a run was created with."""
        return read_counts(self, "max_parallel", "max_attempts", "max_iterations")


def prepare(
    options: WorkflowOptions,
    home: Path,
    environ: Mapping[str, str],
    configured: Mapping[str, AgentSettings] | None = None,
    kept: Callable[[WorkflowSpec], Mapping[str, AgentChoice]] | None = None,
) -> Prepared[WorkflowSpec]:
    """Read the file, find its prompts, choose its agents (as `configured`) and check that they can start.

    `kept` says who performs what in the run that is taken up again, for roles that nobody else is chosen for.
    """
    found = find_file(options, home)
    file, variables = found.file, found.variables | read_pairs(options.variables, "--var")
    parsed = parse(read_workflow(file), str(file))
    plain = with_task(parsed.spec, variables)
    held = kept(plain) if kept is not None else {}
    notes: tuple[str, ...] = ()
    if options.task is not None and not held:
        options, notes = with_client(plain, options, environ, configured or {})
    spec = msgspec.structs.replace(
        plain,
        agents=_choose(plain, options, home, configured or {}, held),
        variables=variables,
        env=_with_issue(read_env(options.env), options.issue_number),
        when_env={name: environ[name] for name in env_names(parsed.spec) if name in environ},
        gate_state_file=str(Path(options.gate_state_file).absolute()) if options.gate_state_file else None,
        timeout_s=read_given_duration(options.timeout, "--timeout"),
        idle_timeout_s=read_idle_s(options.idle_timeout),
        file=str(file.absolute()),
        **options.limits(),
    )
    prompts = find_prompts(spec, file, home)
    if options.task is not None:
        refuse_unread(options.task, prompts.values(), file)
    spec = with_prompts(_permitted(spec, options.permissions), prompts)
    _check_agents(spec, home)
    alone = options.task is not None and top_level(home) is not None
    if options.task is not None and not alone:
        notes = (*notes, f"{home} is no git repository: the agent works in it directly, and nothing can be taken back.")
    warnings = (*parsed.warnings, *_unplayed(spec, options), *notes, *found.notes)
    return Prepared(spec=spec, warnings=warnings, worktree=alone)


def _with_issue(env: dict[str, str], number: str | None) -> dict[str, str]:
    if number is None:
        return env
    if not number.isdecimal():
        raise InvalidValue(what="--issue-number", value=number, expected="a number, as in 42")
    return {ISSUE: number, **env}


def add_step_budgets(budget: Budget, spec: WorkflowSpec) -> Budget:
    """Return the budget with those that steps have of their own: whatever is limited anywhere."""
    for step in spec.steps:
        own = Budget(step=step.budget or Amounts(), attempt=step.attempt_budget or Amounts())
        budget = budget.override(own) if own.is_set else budget
    return budget


def read_workflow(file: Path) -> str:
    """Read the text of a workflow file."""
    return read_text(file, "The workflow")


def _permitted(spec: WorkflowSpec, given: Permissions) -> WorkflowSpec:
    """Return the specification whose agents may do what is given; an agent that a step names itself becomes a choice for that."""
    if not given.any:
        return spec
    named = {step.agent: spec.choice_for(step) for step in spec.steps if spec.choice_for(step).performer in ADAPTERS}
    given.check(named.values())
    agents = {role: choice for role, choice in {**named, **spec.agents}.items() if role in spec.agents or role == choice.name}
    return msgspec.structs.replace(spec, agents={role: given.given_to(choice) for role, choice in agents.items()})


def _unplayed(spec: WorkflowSpec, options: WorkflowOptions) -> list[str]:
    """Say which roles were given an agent and no step has: somebody mistyped one, or means another file."""
    known = dict.fromkeys(step.agent for step in spec.steps)
    given = read_pairs(options.roles, "--role")
    return [
        f"--role {role}={agent}: no step has this role; there are: {', '.join(known)}"
        for role, agent in given.items()
        if role not in known
    ]


def _choose(
    spec: WorkflowSpec,
    options: WorkflowOptions,
    home: Path,
    configured: Mapping[str, AgentSettings],
    kept: Mapping[str, AgentChoice],
) -> dict[str, AgentChoice]:
    """Return the choices over those that were kept; a step may name a configured agent as its role."""
    given, played = read_pairs(options.roles, "--role"), {"", *(step.agent for step in spec.steps)}
    chosen = {role: one for role, one in choose_agents(options, home, configured).items() if role in given or role in played}
    roles = {step.agent for step in spec.steps if step.agent in configured} if "" not in {**kept, **chosen} else set()
    named = {role: resolve_agent(AgentChoice(name=role), configured) for role in sorted(roles)}
    return {**kept, **named, **chosen}


def find_prompts(spec: WorkflowSpec, file: Path, home: Path) -> dict[str, str]:
    """Find the prompt file of each step; raises InvalidSpec with every one that is missing."""
    paths: dict[str, str] = {}
    problems: list[Problem] = []
    beside = file.absolute().parent
    for step in spec.steps:
        written = Path(step.prompt)
        if written.is_absolute():
            places = [written]
        elif beside == BUILT_IN:  # Its script is not to be replaced by a file that came with a clone.
            places = [beside / written]
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
