"""The agents that a command line chooses, and what it sets for them: the same rules for every system.

A program given by a relative path is one of the repository that the agent works on, wherever its working tree is.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import ClassVar

import msgspec

from agent_orchestrator.agents import find_agent
from agent_orchestrator.agents.environment import OWN
from agent_orchestrator.agents.options import AgentSettings, resolve_agent
from agent_orchestrator.config.defaults import NO_DEFAULTS, RunDefaults
from agent_orchestrator.core.effects import AgentChoice
from agent_orchestrator.core.sandbox import NONE
from agent_orchestrator.core.units import read_duration_s
from agent_orchestrator.errors import AgentMissing, InvalidValue, UsageError

NOBODY: Mapping[str, AgentSettings] = {}
"""A configuration without agents."""


class Permissions(msgspec.Struct, frozen=True, kw_only=True):
    """Tools and modes that agents get beyond what they are allowed anyway, as given on a command line."""

    allow_tools: tuple[str, ...] = ()
    mode: str | None = None
    all_tools: bool = False
    """Behind a wall: each client in the mode in which it asks for nothing."""
    usual_tools: tuple[str, ...] = ()
    """Those of the configuration, for agents that can follow them; so is the mode, where the agent has none of its own."""
    usual_mode: str | None = None

    @property
    def any(self) -> bool:
        """Tell whether anything is given."""
        given = self.allow_tools or self.usual_tools or self.all_tools
        return bool(given) or self.mode is not None or self.usual_mode is not None

    def given_to(self, choice: AgentChoice) -> AgentChoice:
        """Return the choice with what its adapter can follow of this; its configuration's list of tools stays."""
        options, tools = dict(choice.options), (*self.usual_tools, *self.allow_tools)
        if tools and _follows(choice, "allowed_tools"):
            options["allowed_tools"] = list(dict.fromkeys((*(options.get("allowed_tools") or ()), *tools)))
        if self.usual_mode is not None and self.usual_mode in _modes(choice):
            options.setdefault("permission_mode", self.usual_mode)
        if self.mode is not None and self.mode in _modes(choice):
            options["permission_mode"] = self.mode
        elif self.all_tools and (widest := getattr(find_agent(choice.performer), "widest", None)) is not None:
            options["permission_mode"] = widest
        return msgspec.structs.replace(choice, options=options) if options != choice.options else choice

    def check(self, choices: Iterable[AgentChoice]) -> None:
        """Raise where nobody of them could follow: several agents may be at work, and a rule be meant for one."""
        agents = list({choice.name: choice for choice in choices}.values())
        names = ", ".join(choice.name for choice in agents)
        if self.allow_tools and not any(_follows(choice, "allowed_tools") for choice in agents):
            why = next((text for choice in agents if (text := getattr(find_agent(choice.performer), "instead", ""))), "")
            detail = f"--allow-tool: {names} cannot be told which tools may be used; {why or 'leave it out'}."
            raise UsageError(detail=detail)
        if self.mode is not None and not any(self.mode in _modes(choice) for choice in agents):
            known = "; ".join(f"{choice.name} has {', '.join(modes)}" for choice in agents if (modes := _modes(choice)))
            raise UsageError(detail=f"--permission-mode {self.mode}: {known or f'{names} has no such modes; leave it out'}.")


NOTHING_MORE = Permissions()


def _follows(choice: AgentChoice, setting: str) -> bool:
    return setting in getattr(find_agent(choice.performer), "understood", ())


def _modes(choice: AgentChoice) -> tuple[str, ...]:
    modes: tuple[str, ...] = getattr(find_agent(choice.performer), "modes", ())
    return modes


class AgentOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The options that say who works and how, as given: None means not given. Each system's options add their own."""

    system: ClassVar[str]
    """The system that the options start a run of."""
    wrapper: str | None = None
    wrapper_args: tuple[str, ...] = ()
    command_template: str | None = None
    agent: str | None = None
    agent_command: str | None = None
    rehearse: str | None = None
    roles: tuple[str, ...] = ()
    """ROLE=NAME[:MODEL], or ROLE=COMMAND"""
    env: tuple[str, ...] = ()
    """K=V"""
    idle_timeout: str | None = None
    allow_tools: tuple[str, ...] = ()
    permission_mode: str | None = None
    sandbox: str | None = None
    yolo: bool = False
    usual: RunDefaults = NO_DEFAULTS
    """The configured defaults, for what is not given."""

    @property
    def permissions(self) -> Permissions:
        """Tools and modes that agents get besides."""
        usual = self.usual
        return Permissions(
            allow_tools=self.allow_tools,
            mode=self.permission_mode,
            all_tools=self.yolo or bool(usual.yolo and (self.sandbox or usual.sandbox or NONE) != NONE),
            usual_tools=usual.allow_tools,
            usual_mode=usual.permission_mode,
        )

    @property
    def names_somebody(self) -> bool:
        """Tell whether it is given who performs all roles that nobody else is named for."""
        return any(one is not None for one in (self.wrapper, self.agent, self.agent_command, self.rehearse))

    def refuse_both(self, *names: str) -> None:
        """Raise when two of these options are given."""
        ways = [f"--{name.replace('_', '-')}" for name in names if getattr(self, name) is not None]
        if len(ways) > 1:
            raise UsageError(detail=f"{ways[0]} and {ways[1]} exclude each other; give one.")


def choose_agents(
    options: AgentOptions, home: Path, configured: Mapping[str, AgentSettings] = NOBODY, roles: Collection[str] | None = None
) -> dict[str, AgentChoice]:
    """Return who performs each role, "" for all others, with the settings of the configuration.

    What is given for everybody is meant for every role that the configuration names, too. `roles` are those that there are;
    None where any may be named. Whether an agent could start is asked by `check_agent`.
    """
    options.refuse_both("wrapper", "command_template", "agent", "agent_command", "rehearse")
    if options.wrapper_args and options.wrapper is None and options.command_template is None:
        raise UsageError(detail="--wrapper-arg needs --wrapper or --command-template.")
    given = choose_stand_in(options, home)
    if options.agent is not None:
        given = read_agent(options.agent)
    usual = options.usual if not options.names_somebody else NO_DEFAULTS
    if given is None and usual.agent is not None:
        given = read_agent(usual.agent, "run.agent")
    chosen = {"": given} if given is not None else {}
    chosen |= {
        role: read_performer(agent, home, f"run.roles.{role}")
        for role, agent in usual.roles.items()
        if roles is None or role in roles
    }
    named = choose_for_roles(options.roles, "--role", home, roles)
    chosen |= named if options.rehearse is None else {}  # A rehearsal plays every role.
    return {role: resolve_agent(choice, configured) for role, choice in chosen.items()}


def choose_for_roles(
    given: tuple[str, ...], flag: str, home: Path, roles: Collection[str] | None = None
) -> dict[str, AgentChoice]:
    """Read ROLE=AGENT, each; `roles` are those that there are."""
    pairs = read_pairs(given, flag)
    for role in pairs:
        if roles is not None and role not in roles:
            raise InvalidValue(what=flag, value=role, expected=f"ROLE=AGENT with one of the roles {', '.join(roles)}")
    return {role: read_performer(agent, home, flag) for role, agent in pairs.items()}


def choose_stand_in(options: AgentOptions, home: Path) -> AgentChoice | None:
    """Return the program or the script that works in place of a coding agent; None when none is given."""
    if options.wrapper is not None:
        return AgentChoice(name="wrapper", options={"path": _from_here(options.wrapper), "args": list(options.wrapper_args)})
    if options.command_template is not None:
        words = _split_command(options.command_template, home, "--command-template")
        return AgentChoice(name="wrapper", options={"template": words, "args": list(options.wrapper_args)})
    if options.agent_command is not None:
        return _choose_program(options.agent_command, home, "--agent-command")
    if options.rehearse is not None:
        return AgentChoice(name="scripted", options={"script": _from_here(options.rehearse)})
    return None


def stand_in(choice: AgentChoice, other: AgentChoice) -> AgentChoice:
    """Return an agent under its own name, performed by another."""
    return msgspec.structs.replace(choice, adapter=other.name, options=other.options)


def read_performer(text: str, home: Path, flag: str) -> AgentChoice:
    """Read NAME, NAME:MODEL, or a command: one has a space in it, or a slash before any colon."""
    if " " in text or "/" in text.partition(":")[0]:
        return _choose_program(text, home, flag)
    choice = read_agent(text, flag)
    if choice.name == "scripted" and choice.model is not None:
        return AgentChoice(name="scripted", options={"script": _from_here(choice.model)})
    return choice


def read_agent(text: str, what: str = "--agent") -> AgentChoice:
    """Read NAME or NAME:MODEL."""
    name, _, model = text.partition(":")
    if not name:
        raise InvalidValue(what=what, value=text, expected="NAME or NAME:MODEL, as in claude:opus")
    return AgentChoice(name=name, model=model or None)


def check_agents(choices: Mapping[str, AgentChoice], home: Path, given: Permissions) -> dict[str, AgentChoice]:
    """Return the choices with what they are permitted besides; raise when one of them could never start."""
    for choice in choices.values():
        check_agent(choice, home)
    given.check(choices.values())
    return {role: given.given_to(choice) for role, choice in choices.items()}


def check_agent(choice: AgentChoice, home: Path) -> None:
    """Raise when this agent could never start; a program given by a relative path is looked for where it will work."""
    find_agent(choice.performer).preflight(choice)
    argv, binary = choice.options.get("argv"), choice.options.get("binary")
    _find_program(argv[0] if choice.performer == "command" and argv else binary or "", home)


def _choose_program(command: str, home: Path, flag: str) -> AgentChoice:
    return AgentChoice(name="command", options={"argv": _split_command(command, home, flag)})


def _split_command(command: str, home: Path, flag: str) -> list[str]:
    """Split a command line into a program and its arguments; no shell will see it."""
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise InvalidValue(what=flag, value=command, expected=f"a command line ({error})") from None
    if not words:
        raise InvalidValue(what=flag, value=command, expected="a program and its arguments")
    return [_find_program(words[0], home), *words[1:]]


def _find_program(given: str, home: Path) -> str:
    """Return a program with its whole path where it is given by a relative one; raise AgentMissing when it cannot be started."""
    if "/" not in given or given.startswith("/"):
        return given
    program = home / given
    if not program.is_file():
        raise AgentMissing(agent=given, why=f"there is no such file in {home}")
    if not os.access(program, os.X_OK):
        raise AgentMissing(agent=given, why="it is not executable; `chmod +x` makes it so")
    return str(program)


def _from_here(path: str) -> str:
    return str(Path(path).expanduser().absolute())


def read_pairs(given: tuple[str, ...], flag: str) -> dict[str, str]:
    """Read NAME=VALUE, each."""
    pairs: dict[str, str] = {}
    for text in given:
        name, equals, value = text.partition("=")
        if not equals or not name or "\0" in text:
            raise InvalidValue(what=flag, value=text, expected="NAME=VALUE")
        pairs[name] = value
    return pairs


def read_env(given: tuple[str, ...]) -> dict[str, str]:
    """Read NAME=VALUE, each, for agents; what orc itself tells them is not to be set."""
    pairs = read_pairs(given, "--env")
    for name, value in pairs.items():
        if name in OWN:
            raise InvalidValue(what="--env", value=f"{name}={value}", expected=f"another name; {name} is set by orc itself")
    return pairs


def read_idle_s(given: str | None) -> float | None:
    """Read `--idle-timeout`: 0 for an agent that may be silent for ever, None where nothing was given."""
    if given is None:
        return None
    return 0.0 if given.strip().lower() in ("0", "none") else read_duration_s(given, "--idle-timeout")


def read_names(given: tuple[str, ...]) -> tuple[str, ...]:
    """Read NAME, each, of variables that agents may see."""
    for name in given:
        if not name or "=" in name:
            raise InvalidValue(what="--pass-env", value=name, expected="the NAME of a variable; --env sets NAME=VALUE")
    return given
