"""Turns the options of `orc loop run` into the specification of a loop.

Everything that could never work is refused here, before a loop exists: an unknown agent, a bad number, a criterion that
nobody can judge.
"""

from __future__ import annotations

import getpass
import re
import shlex
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import msgspec

from agent_orchestrator import typed
from agent_orchestrator.agents.options import AgentSettings, resolve_agent
from agent_orchestrator.core.effects import AgentChoice
from agent_orchestrator.core.ids import ID_LENGTH_MAX
from agent_orchestrator.errors import InvalidValue, UsageError
from agent_orchestrator.git.repository import top_level
from agent_orchestrator.runs.budget import abilities_of
from agent_orchestrator.runs.choices import (
    NOBODY,
    AgentOptions,
    check_agent,
    check_agents,
    choose_agents,
    read_env,
    read_idle_s,
    read_performer,
)
from agent_orchestrator.runs.detection import detect_tests
from agent_orchestrator.runs.inputs import read_given_count, read_given_duration, read_text
from agent_orchestrator.runs.start import Prepared
from agent_orchestrator.systems.loop.spec import MEMORY, MEMORY_MAX, ExecutionMode, LoopSpec, is_loop_id, named_loop

_VERDICT = re.compile(r"\s+(?:passes|succeeds|exits (?:with )?0)\.?\s*\Z", re.I)
_VERDICT_WITHIN = re.compile(r"\s(?:passes|succeeds|exits (?:with )?0)\s", re.I)
_SHELL_WORDS = frozenset(
    (
        *("!", "(", "[", "[[", "{", ".", ":", "cd", "command", "eval", "exec", "export", "for", "if", "set", "source", "test"),
        *("true", "false", "until", "while"),
    )
)
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")


class LoopOptions(AgentOptions, frozen=True, kw_only=True):
    """The options of `orc loop run`, as given: None means not given."""

    system: ClassVar[str] = "loop"
    task: str | None = None
    task_file: str | None = None
    until: str | None = None
    completion: str | None = None
    confirm_with: str | None = None
    test_command: str | None = None
    max_iterations: str | int | None = None
    timeout: str | int | None = None
    interactive: bool | None = None
    auto_test: bool | None = None
    checkpoint_interval: str | int | None = None
    execution_mode: str | None = None
    seed: str | int | None = None
    continue_session: bool = False
    allow_fewer_tests: bool | None = None
    protect: tuple[str, ...] = ()
    commit: bool = False
    iteration_timeout: str | None = None
    memory: str | int | None = None


def prepare(options: LoopOptions, home: Path, configured: Mapping[str, AgentSettings] = NOBODY) -> Prepared[LoopSpec]:
    """Return the specification, or say in a sentence what is wrong; agents may be `configured`."""
    agent = choose_agent(options, home, configured)
    if agent is None:
        raise UsageError(detail="Nobody would work: give --agent, --agent-command or --rehearse.")
    completion, command = read_criterion(options, home)
    if options.confirm_with is not None and command is not None:
        raise UsageError(detail="--confirm-with is for a criterion in words; a command confirms itself.")
    mode, seed = _mode(options)
    git = top_level(home) is not None
    if options.commit and not git:
        raise UsageError(detail=f"--commit needs a git repository, and {home} is none.")
    spec = LoopSpec(
        task=_task(options),
        completion=completion,
        command=command,
        agent=agent,
        confirm_with=_confirmer(options.confirm_with, home, configured),
        test_command=options.test_command or options.usual.check or detect_tests(home),
        execution_mode=mode,
        seed=seed,
        continue_session=options.continue_session,
        protected=options.protect,
        commit=options.commit,
        git=git,
        owner=_owner(),
        env=read_env(options.env),
        iteration_timeout_s=read_given_duration(options.iteration_timeout, "--iteration-timeout"),
        idle_timeout_s=read_idle_s(options.idle_timeout),
        memory=_memory(options.memory),
    )
    spec = spec.with_assigned(check_agents(spec.assigned, home, options.permissions))
    refuse_unable(spec)
    changes = {name: value for name, value in changes_of(options).items() if name != "execution_mode"}
    return Prepared(spec=typed.convert(msgspec.to_builtins(spec) | changes, LoopSpec))


def _memory(given: str | int | None) -> int:
    told = read_given_count(given, "--memory", 0)
    if told is not None and told > MEMORY_MAX:
        raise InvalidValue(what="--memory", value=told, expected=f"a whole number from 0 to {MEMORY_MAX}")
    return MEMORY if told is None else told


def changes_of(options: LoopOptions) -> dict[str, Any]:
    """The options that were really given and that a loop which goes on takes over too."""
    given: dict[str, Any] = {
        "max_iterations": read_given_count(options.max_iterations, "--max-iterations"),
        "timeout_minutes": read_given_count(options.timeout, "--timeout"),
        "checkpoint_interval": read_given_count(options.checkpoint_interval, "--checkpoint-interval"),
        "interactive": options.interactive,
        "auto_test": options.auto_test,
        "execution_mode": read_mode(options.execution_mode).value if options.execution_mode is not None else None,
        "allow_fewer_tests": options.allow_fewer_tests or None,
        "test_command": options.test_command,
        "protected": list(options.protect) or None,
    }
    return {name: value for name, value in given.items() if value is not None}


def choose_agent(options: LoopOptions, home: Path, configured: Mapping[str, AgentSettings]) -> AgentChoice | None:
    """Return who works, checked; None when nobody was named."""
    choice = choose_agents(options, home, configured).get("")
    if choice is not None:
        check_agent(choice, home)
    return choice


def read_criterion(options: LoopOptions, home: Path) -> tuple[str, str | None]:
    """The criterion as given, and as a command where it is one."""
    if options.until is not None and options.completion is not None:
        raise UsageError(detail="--until and --completion both say when the loop is done; give one.")
    if options.until is not None:
        if not options.until.strip():
            raise InvalidValue(what="--until", value=options.until, expected="a command")
        return options.until, options.until
    if options.completion is None and options.usual.check is not None:
        return options.usual.check, options.usual.check
    if options.completion is None or not options.completion.strip():
        raise UsageError(detail="When is it done? Give --until with a command, or --completion with a command or a sentence.")
    return options.completion, as_command(options.completion, home)


def as_command(text: str, home: Path) -> str | None:
    """The text as a command: a trailing "passes" is dropped; None when its first word is no program, or more words follow."""
    command = _VERDICT.sub("", text.strip())
    if _VERDICT_WITHIN.search(command):
        return None
    try:
        words = shlex.split(command)
    except ValueError:
        return None
    word = next((one for one in words if not _ASSIGNMENT.match(one)), "")
    word = word.lstrip("(") or word
    program = str(home / word) if "/" in word else word
    return command if word in _SHELL_WORDS or (word and shutil.which(program) is not None) else None


def command_of(criteria: tuple[str, ...], home: Path) -> str | None:
    """Return the criteria as one command; None when any of them is words, or there is none."""
    commands = [as_command(text, home) for text in criteria]
    known = [command for command in commands if command is not None]
    if not known or len(known) < len(commands):
        return None
    return known[0] if len(known) == 1 else " && ".join(f"( {command} )" for command in known)


def read_loop_id(given: str) -> str:
    """Return the id unchanged, or the one of a loop with that name; raise for what names nothing."""
    if is_loop_id(given):
        return given
    if not re.search(r"[A-Za-z0-9]", given) or len(given) > ID_LENGTH_MAX or any(char.isspace() for char in given):
        expected = f"a name, or an id such as ralph-fix-tests-a1b2c3d4 (at most {ID_LENGTH_MAX} characters)"
        raise InvalidValue(what="--loop-id", value=given, expected=expected)
    return named_loop(given)


def read_mode(text: str) -> ExecutionMode:
    """One of the seed's four words."""
    if text not in list(ExecutionMode):
        raise InvalidValue(what="--execution-mode", value=text, expected=f"one of {', '.join(ExecutionMode)}")
    return ExecutionMode(text)


def _task(options: LoopOptions) -> str:
    if options.task is not None and options.task_file is not None:
        raise UsageError(detail="The task is given twice: as text and with --task-file; give one.")
    text = options.task
    if options.task_file is not None:
        text = read_text(Path(options.task_file).expanduser(), "The task file")
    if text is None or not text.strip():
        raise UsageError(detail="There is no task: give it as text or with --task-file.")
    return text


def _mode(options: LoopOptions) -> tuple[ExecutionMode, int | None]:
    mode = read_mode(options.execution_mode) if options.execution_mode is not None else ExecutionMode.DEFAULT
    seed = read_given_count(options.seed, "--seed", minimum=0)
    if mode in (ExecutionMode.SEEDED, ExecutionMode.STRICT):
        return mode, seed if seed is not None else 0
    if seed is not None:
        raise UsageError(detail="--seed needs --execution-mode seeded or strict.")
    return mode, None


def refuse_unable(spec: LoopSpec) -> None:
    """Raise a UsageError for what an agent cannot do: it is refused, not ignored."""
    for agent in spec.choices if spec.execution_mode is ExecutionMode.STRICT else ():
        if "temperature" not in abilities_of(agent):
            why = f"needs an agent with a temperature to set to 0; {agent.name} has none"
            raise UsageError(detail=f"--execution-mode strict {why}.")
    if spec.continue_session and spec.agent is not None and "session" not in abilities_of(spec.agent):
        raise UsageError(detail=f"--continue-session needs an agent that keeps sessions; {spec.agent.name} does not.")


def _confirmer(given: str | None, home: Path, configured: Mapping[str, AgentSettings]) -> AgentChoice | None:
    if given is None or given == "person":
        return None
    return resolve_agent(read_performer(given, home, "--confirm-with"), configured)


def _owner() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return ""
