"""Turns the options of `orc team run` into the specification of a team.

Everything that could never work is refused here, before a team exists: no repository, an unknown agent or branch, a bad
number, no requirements.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import msgspec

from agent_orchestrator.agents.options import AgentSettings, resolve_agent
from agent_orchestrator.core.effects import AgentChoice
from agent_orchestrator.core.limits import SPEC_LIMIT_BYTES
from agent_orchestrator.core.units import read_count, read_duration_s
from agent_orchestrator.errors import InvalidValue, MissingPath, Unavailable, UsageError
from agent_orchestrator.git.branches import find_branch, find_merge_obstacle, list_branches
from agent_orchestrator.git.repository import top_level
from agent_orchestrator.runs.choices import (
    Permissions,
    check_agent,
    read_agent,
    read_env,
    read_idle_s,
    read_pairs,
    split_command,
)
from agent_orchestrator.runs.loop.options import detect_tests
from agent_orchestrator.systems.team.roles import Role
from agent_orchestrator.systems.team.spec import QaMode, TeamSpec, split_requirements


class TeamOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The options of `orc team run`, as given: None means not given."""

    text: str | None = None
    requirements: str | None = None
    """A file."""
    agent: str | None = None
    agent_command: str | None = None
    rehearse: str | None = None
    roles: tuple[str, ...] = ()
    """ROLE=NAME[:MODEL], or a command line"""
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
    idle_timeout: str | None = None
    env: tuple[str, ...] = ()
    allow_tools: tuple[str, ...] = ()
    permission_mode: str | None = None

    @property
    def permissions(self) -> Permissions:
        """What agents may do besides."""
        return Permissions(allow_tools=self.allow_tools, mode=self.permission_mode)

    def limits(self) -> dict[str, int]:
        """The limits that were really given."""
        names = ("max_parallel", "max_qa_rounds", "max_review_rounds", "max_attempts")
        given = {name: getattr(self, name) for name in names}
        return {name: read_count(value, _flag(name)) for name, value in given.items() if value is not None}


def prepare(options: TeamOptions, home: Path, configured: Mapping[str, AgentSettings] | None = None) -> TeamSpec:
    """The specification, or a sentence that says what is wrong; agents may be `configured`."""
    text = _requirements(options)
    agents = _agents(options, configured or {}, home)
    escalate = _chosen(options.escalate, "--escalate", configured or {}, home)
    given = options.permissions
    given.check((*agents.values(), *escalate.values()))
    into = _target(options.into, home)
    if options.check is not None and options.no_check:
        raise UsageError(detail="--check and --no-check exclude each other; give one.")
    if options.check is not None and not options.check.strip():
        raise UsageError(detail="--check is empty: give a command, or --no-check to merge without one.")
    detected = None if options.no_check else detect_tests(home)
    return TeamSpec(
        requirements=text,
        wanted=split_requirements(text),
        agents={role: given.given_to(choice) for role, choice in agents.items()},
        escalate={role: given.given_to(choice) for role, choice in escalate.items()},
        into=into,
        check=options.check if options.check is not None else detected,
        check_timeout_s=_duration(options.check_timeout, "--check-timeout"),
        testing=_testing(options.testing),
        taken_branches=list_branches(home),
        env=read_env(options.env),
        agent_timeout_s=_duration(options.agent_timeout, "--agent-timeout"),
        idle_timeout_s=read_idle_s(options.idle_timeout),
        **options.limits(),
    )


def _requirements(options: TeamOptions) -> str:
    if options.text is not None and options.requirements is not None:
        raise UsageError(detail="The requirements are given twice: as text and with --requirements; give one.")
    text = options.text
    if options.requirements is not None:
        text = _read(Path(options.requirements).expanduser())
    if text is None or not text.strip():
        raise UsageError(detail="There are no requirements: give them as text or with --requirements FILE.")
    return text.strip("\n")


def _read(file: Path) -> str:
    try:
        if file.stat().st_size > SPEC_LIMIT_BYTES:
            raise UsageError(detail=f"The requirements file {file} is larger than {SPEC_LIMIT_BYTES} bytes.")
        return file.read_text("utf-8")
    except FileNotFoundError:
        raise MissingPath(what="The requirements file", path=file) from None
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(detail=f"The requirements file {file} cannot be read: {error}.") from None


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


def _agents(options: TeamOptions, configured: Mapping[str, AgentSettings], home: Path) -> dict[str, AgentChoice]:
    ways = [name for name in ("agent", "agent_command", "rehearse") if getattr(options, name) is not None]
    if len(ways) > 1:
        raise UsageError(detail=f"{_flag(ways[0])} and {_flag(ways[1])} exclude each other; give one.")
    chosen = _chosen(options.roles, "--role", configured, home)
    if options.agent is not None:
        chosen[""] = _checked(read_agent(options.agent), configured, home)
    if options.agent_command is not None:
        chosen[""] = _checked(_program(options.agent_command, home), configured, home)
    if options.rehearse is not None:
        script = str(Path(options.rehearse).expanduser().absolute())
        chosen[""] = _checked(AgentChoice(name="scripted", options={"script": script}), configured, home)
    missing = [role.value for role in Role if role.value not in chosen]
    if "" not in chosen and missing:
        ways_out = "--agent, --agent-command, --rehearse or --role ROLE=AGENT"
        raise UsageError(detail=f"Nobody would work as {', '.join(missing)}: give {ways_out}.")
    return chosen


def _program(command: str, home: Path) -> AgentChoice:
    """A command line; a program given by a relative path is the repository's own, wherever the agent works."""
    argv = split_command(command)
    if "/" in argv[0]:
        argv[0] = str(home / argv[0])
    return AgentChoice(name="command", options={"argv": argv})


def _chosen(given: tuple[str, ...], flag: str, configured: Mapping[str, AgentSettings], home: Path) -> dict[str, AgentChoice]:
    """ROLE=AGENT, each; an agent with a space in it is a command line."""
    found = {}
    for role, agent in read_pairs(given, flag).items():
        if role not in list(Role):
            raise InvalidValue(what=flag, value=role, expected=f"ROLE=AGENT with one of the roles {', '.join(Role)}")
        command = " " in agent or "/" in agent
        found[role] = _checked(_program(agent, home) if command else read_agent(agent), configured, home)
    return found


def _checked(choice: AgentChoice, configured: Mapping[str, AgentSettings], home: Path) -> AgentChoice:
    resolved = resolve_agent(choice, configured)
    check_agent(resolved, home)
    return resolved


def _testing(given: str | None) -> QaMode:
    if given is None:
        return QaMode.FULL
    if given not in list(QaMode):
        raise InvalidValue(what="--testing", value=given, expected=f"one of {', '.join(QaMode)}")
    return QaMode(given)


def _duration(value: str | None, flag: str) -> float | None:
    return None if value is None else read_duration_s(value, flag)


def _flag(name: str) -> str:
    return "--" + name.replace("_", "-")
