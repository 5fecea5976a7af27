"""Turns the options of `orc team run` into the specification of a team.

Everything that could never work is refused here, before a team exists: no repository, an unknown agent or branch, a bad
number, no requirements.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

from agent_orchestrator.agents.options import AgentSettings, resolve_agent
from agent_orchestrator.core.effects import AgentChoice
from agent_orchestrator.errors import InvalidValue, Unavailable, UsageError
from agent_orchestrator.git.branches import find_branch, find_merge_obstacle, list_branches
from agent_orchestrator.git.repository import top_level
from agent_orchestrator.runs.choices import (
    NOBODY,
    AgentOptions,
    check_agents,
    choose_agents,
    choose_for_roles,
    read_env,
    read_idle_s,
)
from agent_orchestrator.runs.detection import detect_tests
from agent_orchestrator.runs.inputs import read_counts, read_given_duration, read_text
from agent_orchestrator.runs.start import Prepared
from agent_orchestrator.systems.team.roles import Role
from agent_orchestrator.systems.team.spec import QaMode, TeamSpec, split_requirements


class TeamOptions(AgentOptions, frozen=True, kw_only=True):
    """The options of `orc team run`, as given: None means not given."""

    system: ClassVar[str] = "team"
    text: str | None = None
    requirements: str | None = None
    """A file."""
    escalate: tuple[str, ...] = ()
    into: str | None = None
    check: str | None = None
    no_check: bool = False
    check_timeout: str | None = None
    testing: str | None = None
    max_parallel: str | int | None = None
    max_qa_rounds: str | int | None = None
    max_review_rounds: str | int | None = None
    max_attempts: str | int | None = None
    agent_timeout: str | None = None


UNKNOWN = AgentChoice(name="unknown")
"""Whoever worked in a team that has ended elsewhere, where nobody is named."""


def prepare(
    options: TeamOptions, home: Path, configured: Mapping[str, AgentSettings] = NOBODY, *, may_be_over: bool = False
) -> Prepared[TeamSpec]:
    """Return the specification, or say in a sentence what is wrong; agents may be `configured`.

    In a team that `may_be_over` nobody has to be named: `refuse_nobody` says so if it is not.
    """
    text = _requirements(options)
    agents = choose_agents(options, home, configured, list(Role))
    if may_be_over and _find_missing(agents):
        agents = {**agents, "": UNKNOWN}
    _refuse_missing(agents)
    escalate = choose_for_roles(options.escalate, "--escalate", home, list(Role))
    into = _target(options.into, home)
    if options.check is not None and options.no_check:
        raise UsageError(detail="--check and --no-check exclude each other; give one.")
    if options.check is not None and not options.check.strip():
        raise UsageError(detail="--check is empty: give a command, or --no-check to merge without one.")
    detected = None if options.no_check else options.usual.check or detect_tests(home)
    spec = TeamSpec(
        requirements=text,
        wanted=split_requirements(text),
        agents=agents,
        escalate={role: resolve_agent(choice, configured) for role, choice in escalate.items()},
        into=into,
        check=options.check if options.check is not None else detected,
        check_timeout_s=read_given_duration(options.check_timeout, "--check-timeout"),
        testing=_testing(options.testing),
        taken_branches=list_branches(home),
        env=read_env(options.env),
        agent_timeout_s=read_given_duration(options.agent_timeout, "--agent-timeout"),
        idle_timeout_s=read_idle_s(options.idle_timeout),
        **read_counts(options, "max_parallel", "max_qa_rounds", "max_review_rounds", "max_attempts"),
    )
    warnings = ("no check is known: merges are made without one; --check gives one.",)
    return Prepared(
        spec=spec if UNKNOWN in agents.values() else spec.with_assigned(check_agents(spec.assigned, home, options.permissions)),
        warnings=warnings if spec.check is None and not options.no_check else (),
    )


def _requirements(options: TeamOptions) -> str:
    if options.text is not None and options.requirements is not None:
        raise UsageError(detail="The requirements are given twice: as text and with --requirements; give one.")
    text = options.text
    if options.requirements is not None:
        text = read_text(Path(options.requirements).expanduser(), "The requirements file")
    if text is None or not text.strip():
        raise UsageError(detail="There are no requirements: give them as text or with --requirements FILE.")
    return text.strip("\n")


def _target(given: str | None, home: Path) -> str:
    """The branch that groups merge into: the one given, else the one that is checked out."""
    if top_level(home) is None:
        raise Unavailable(detail=f"A team needs a git repository, and {home} is none; run `git init` and commit first.")
    known = list_branches(home)
    if not known:
        raise Unavailable(detail=f"A team needs a commit to start from, and {home} has none; commit first.")
    why = find_merge_obstacle(home)
    if why is not None:
        raise UsageError(detail=f"A team cannot work here: {why}.")
    branch = given if given is not None else find_branch(home)
    if branch is None:
        raise UsageError(detail=f"{home} is on no branch; say with --into which one groups are merged into.")
    if branch not in known:
        raise InvalidValue(what="--into", value=branch, expected=f"a branch of {home}, one of: {', '.join(known[:10])}")
    return branch


def refuse_nobody(spec: TeamSpec) -> None:
    """Raise where a team has work left, and nobody was named for it."""
    _refuse_missing({role: choice for role, choice in spec.agents.items() if choice != UNKNOWN})


def _refuse_missing(chosen: Mapping[str, AgentChoice]) -> None:
    if missing := _find_missing(chosen):
        ways = "--agent, --agent-command, --rehearse or --role ROLE=AGENT"
        raise UsageError(detail=f"Nobody would work as {', '.join(missing)}: give {ways}.")


def _find_missing(chosen: Mapping[str, AgentChoice]) -> list[str]:
    return [] if "" in chosen else [role.value for role in Role if role.value not in chosen]


def _testing(given: str | None) -> QaMode:
    if given is None:
        return QaMode.FULL
    if given not in list(QaMode):
        raise InvalidValue(what="--testing", value=given, expected=f"one of {', '.join(QaMode)}")
    return QaMode(given)
