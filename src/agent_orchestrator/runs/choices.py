"""Reads what people write on a command line to choose agents and set values: the same for every system."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterable
from pathlib import Path

import msgspec

from agent_orchestrator.agents import find_agent
from agent_orchestrator.agents.environment import OWN
from agent_orchestrator.core.effects import AgentChoice
from agent_orchestrator.core.units import read_duration_s
from agent_orchestrator.errors import AgentMissing, InvalidValue, UsageError


def read_agent(text: str, what: str = "--agent") -> AgentChoice:
    """NAME or NAME:MODEL."""
    name, _, model = text.partition(":")
    if not name:
        raise InvalidValue(what=what, value=text, expected="NAME or NAME:MODEL, as in claude:opus")
    return AgentChoice(name=name, model=model or None)


class Permissions(msgspec.Struct, frozen=True, kw_only=True):
    """What agents may do beyond what they are allowed anyway, as given on a command line."""

    allow_tools: tuple[str, ...] = ()
    mode: str | None = None

    @property
    def any(self) -> bool:
        """Whether anything is given."""
        return bool(self.allow_tools) or self.mode is not None

    def given_to(self, choice: AgentChoice) -> AgentChoice:
        """The choice with what its adapter can follow of this; its configuration's list of tools stays."""
        options = dict(choice.options)
        if self.allow_tools and _follows(choice, "allowed_tools"):
            options["allowed_tools"] = list(dict.fromkeys((*(options.get("allowed_tools") or ()), *self.allow_tools)))
        if self.mode is not None and self.mode in _modes(choice):
            options["permission_mode"] = self.mode
        return msgspec.structs.replace(choice, options=options) if options != choice.options else choice

    def check(self, choices: Iterable[AgentChoice]) -> None:
        """Raises where nobody of them could follow: several agents may be at work, and a rule be meant for one."""
        agents = list({choice.name: choice for choice in choices}.values())
        names = ", ".join(choice.name for choice in agents)
        if self.allow_tools and not any(_follows(choice, "allowed_tools") for choice in agents):
            why = next((text for choice in agents if (text := getattr(find_agent(choice.performer), "instead", ""))), "")
            detail = f"--allow-tool: {names} cannot be told which tools may be used; {why or 'leave it out'}."
            raise UsageError(detail=detail)
        if self.mode is not None and not any(self.mode in _modes(choice) for choice in agents):
            known = "; ".join(f"{choice.name} has {', '.join(modes)}" for choice in agents if (modes := _modes(choice)))
            raise UsageError(detail=f"--permission-mode {self.mode}: {known or f'{names} has no such modes; leave it out'}.")


def _follows(choice: AgentChoice, setting: str) -> bool:
    return setting in getattr(find_agent(choice.performer), "understood", ())


def _modes(choice: AgentChoice) -> tuple[str, ...]:
    modes: tuple[str, ...] = getattr(find_agent(choice.performer), "modes", ())
    return modes


def check_agent(choice: AgentChoice, home: Path) -> None:
    """Raises when this agent could never start; a program given by a relative path is looked for where it will work."""
    find_agent(choice.performer).preflight(choice)
    argv, binary = choice.options.get("argv"), choice.options.get("binary")
    given = argv[0] if choice.performer == "command" and argv else binary or ""
    if "/" not in given or given.startswith("/"):
        return
    program = home / given
    if not program.is_file():
        raise AgentMissing(agent=given, why=f"there is no such file in {home}")
    if not os.access(program, os.X_OK):
        raise AgentMissing(agent=given, why="it is not executable; `chmod +x` makes it so")


def split_command(command: str) -> list[str]:
    """A command line as a program and its arguments; no shell will see it."""
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise InvalidValue(what="--agent-command", value=command, expected=f"a command line ({error})") from None
    if not words:
        raise InvalidValue(what="--agent-command", value=command, expected="a program and its arguments")
    return words


def read_pairs(given: tuple[str, ...], flag: str) -> dict[str, str]:
    """NAME=VALUE, each."""
    pairs: dict[str, str] = {}
    for text in given:
        name, equals, value = text.partition("=")
        if not equals or not name or "\0" in text:
            raise InvalidValue(what=flag, value=text, expected="NAME=VALUE")
        pairs[name] = value
    return pairs


def read_env(given: tuple[str, ...]) -> dict[str, str]:
    """NAME=VALUE, each, for agents; what orc itself tells them is not to be set."""
    pairs = read_pairs(given, "--env")
    for name, value in pairs.items():
        if name in OWN:
            raise InvalidValue(what="--env", value=f"{name}={value}", expected=f"another name; {name} is set by orc itself")
    return pairs


def read_idle_s(given: str | None) -> float | None:
    """The value of `--idle-timeout`: 0 for an agent that may be silent for ever, None where nothing was given."""
    if given is None:
        return None
    return 0.0 if given.strip().lower() in ("0", "none") else read_duration_s(given, "--idle-timeout")


def read_names(given: tuple[str, ...]) -> tuple[str, ...]:
    """NAME, each, of variables that agents may see."""
    for name in given:
        if not name or "=" in name:
            raise InvalidValue(what="--pass-env", value=name, expected="the NAME of a variable; --env sets NAME=VALUE")
    return given
