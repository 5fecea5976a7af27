"""`command`: any program, with the contract in its environment; `--agent-command`, or `command` in a configuration file.

Options: `argv`, run as it stands and never by a shell; how it gets its prompt; what its output is. A report is optional
unless the step needs its words.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from agent_orchestrator import typed
from agent_orchestrator.agents.adapter import AgentTask, Ending, Invocation, Reading, Verdict
from agent_orchestrator.agents.environment import build_environment
from agent_orchestrator.agents.events import Consumed, SessionBegan, StreamEvent
from agent_orchestrator.agents.options import PROGRAM, AgentSettings, settings_of
from agent_orchestrator.agents.report import ask_for_report
from agent_orchestrator.agents.stream import StreamMeter, at, count_at, json_lines, money_at, read_transcript, text_at
from agent_orchestrator.agents.verdict import judge
from agent_orchestrator.core.effects import AgentChoice
from agent_orchestrator.core.inputs import Usage
from agent_orchestrator.core.limits import PROGRAM_IDLE_S
from agent_orchestrator.errors import AgentMissing, InvalidValue

PROMPT_WORD, FILE_WORD, MODEL_WORD = "{prompt}", "{prompt_file}", "{model}"
"""Words of a command that stand for the prompt, its file and the model."""

_COUNTS = {
    "input": "input_tokens",
    "output": "output_tokens",
    "cache_read": "cache_read_tokens",
    "cache_write": "cache_write_tokens",
}


class CommandAgent:
    """An adapter for plain programs."""

    name = "command"
    appends_feedback = True
    idle_timeout_s = PROGRAM_IDLE_S

    def preflight(self, choice: AgentChoice) -> None:
        """Check that the program is there; one inside the working tree is checked where the tree is known."""
        program = _argv(choice, settings_of(choice, PROGRAM))[0]
        if "/" not in program:
            if shutil.which(program) is None:
                raise AgentMissing(agent=program, why="it was not found on the PATH")
        elif Path(program).is_absolute():
            if not Path(program).is_file():
                raise AgentMissing(agent=program, why="there is no such file")
            if not os.access(program, os.X_OK):
                raise AgentMissing(agent=program, why="it is not executable; `chmod +x` makes it so")

    def ask_for_report(self, task: AgentTask) -> str:
        """Ask for a file if the settings say so or the prompt is not a person's, which a program may take as it likes."""
        asked = task.effect.prompt_text is not None or settings_of(task.effect.agent, PROGRAM).output != "text"
        return ask_for_report(task, task.report) if asked else ""

    def plan(self, task: AgentTask) -> Invocation:
        """Return the command with its prompt: as its input, as a word, or as a file."""
        choice = task.effect.agent
        settings = settings_of(choice, PROGRAM)
        prompt = task.prompt
        env = {**build_environment(task), **settings.env, **task.effect.env}
        argv = _argv(choice, settings)
        if choice.adapter:  # an agent of the configuration; `--agent-command` is run as it stands
            argv = _fill_words(argv, prompt, choice.model, settings.prompt_mode)
        return Invocation(argv=argv, env=env, stdin=prompt if settings.prompt_mode == "stdin" else None)

    def meter(self, task: AgentTask, out: Path, err: Path) -> Callable[[], Reading]:
        """Read what its lines say that it consumed, where the settings tell how."""
        settings = settings_of(task.effect.agent, PROGRAM)
        if settings.output != "json-lines":
            return lambda: Reading(calls=0)
        reader = json_lines(lambda document: _read_usage(document, settings))
        return StreamMeter(out, reader, task.effect.agent, totals=True)

    def judge(self, task: AgentTask, ending: Ending) -> Verdict:
        """Judge by exit code and report; read what it consumed as the settings say."""
        verdict = judge(task, ending)
        settings = settings_of(task.effect.agent, PROGRAM)
        if settings.output != "json-lines":
            return verdict
        said = verdict.report.summary if verdict.report is not None else None
        seen = read_transcript(ending.out, lambda document: _read_usage(document, settings))
        used = seen.usage or Usage()
        usage = msgspec.structs.replace(used, session=seen.session, model=used.model or task.effect.agent.model)
        return msgspec.structs.replace(verdict, usage=usage, session=seen.session, said=said)


def _argv(choice: AgentChoice, settings: AgentSettings) -> tuple[str, ...]:
    if not settings.argv or not settings.argv[0]:
        given = choice.options.get("argv")
        raise InvalidValue(what="The agent's command", value=given, expected="a list of strings, the program first")
    return settings.argv


def _fill_words(argv: tuple[str, ...], prompt: Path, model: str | None, mode: str) -> tuple[str, ...]:
    """Replace words in braces, whole; a prompt that the command does not place comes last."""
    told = {FILE_WORD: str(prompt), MODEL_WORD: model or ""}
    if mode == "argv":
        told[PROMPT_WORD] = prompt.read_text("utf-8").replace("\0", "")
    word = {"argv": PROMPT_WORD, "file": FILE_WORD}.get(mode)
    words = argv if word is None or word in argv else (*argv, word)
    return tuple(told.get(one, one) for one in words)


def _read_usage(document: dict[str, Any], settings: AgentSettings) -> Iterator[StreamEvent]:
    paths = {name: path.split(".") for name, path in settings.usage.items()}
    if "session" in paths and (session := text_at(document, *paths["session"])):
        yield SessionBegan(session=session)
    counts = {
        field: count_at(document, *paths[name])
        for name, field in _COUNTS.items()
        if name in paths and at(document, *paths[name]) is not None
    }
    cost = money_at(document, *paths["cost_usd"]) if "cost_usd" in paths else None
    if counts or cost is not None:
        model = text_at(document, *paths["model"]) or None if "model" in paths else None
        yield Consumed(
            usage=typed.convert({"model": model, "cost_usd": cost, **counts}, Usage), total=settings.usage_counts == "last"
        )


AGENT = CommandAgent()
