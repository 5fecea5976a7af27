"""A scripted model that plays several agents: which part a call belongs to is read from the prompt in it.

`Cast([Part("qa", "You are the QA expert", script=[…]), …])` is a lane that any number of clients may use at once. A
conversation is given the first part that is free and whose words are all in its prompt, and every part is played once: an
agent that is launched twice for the same thing finds nobody left to play it. How far a conversation has come is counted in
the conversation itself, so that a client that outlives its orchestrator goes on where it was.

A client that cannot be held to a schema writes a `Reply` to the file that its prompt names, and ends.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator, Sequence
from typing import Any

from agent_orchestrator.testing.model_server import Behaviour, Held, Lane, Refuse, Reply, Say, Write

_SHOWN_CHARS = 4_000
_REPORT_FILE = re.compile(r"write one JSON object to this file:\s+(\S+)")

_RESULTS = ("tool_result", "function_call_output", "custom_tool_call_output", "functionResponse")
_CALLS = ("function_call", "custom_tool_call", "local_shell_call")


class Part:
    """The model's part in one conversation: one behaviour per call, the last one for ever."""

    def __init__(self, name: str, *words: str, script: Sequence[Behaviour]) -> None:
        assert words, f"{name} would be given any conversation"
        self.name, self.words, self.script = name, words, list(script)
        self.let_go = threading.Event()
        """Set it to let go a behaviour that is `Held`."""
        self.is_held = threading.Event()
        """Set when the conversation has come to such a behaviour."""
        self.prompt = ""
        """The prompt of the conversation that it was given; empty before."""
        self.calls = 0
        """How often the model was called in this conversation."""

    def is_for(self, prompt: str) -> bool:
        """Return True if a conversation that begins so may be given this part."""
        return not self.prompt and all(word in prompt for word in self.words)

    def __repr__(self) -> str:
        return self.name


class Cast(Lane):
    """A lane of parts."""

    def __init__(self, parts: Sequence[Part]) -> None:
        super().__init__([Refuse(400)])
        self.parts = list(parts)
        self.played: list[str] = []
        """The parts' names in the order in which their conversations began."""
        self.strangers: list[str] = []
        """The beginnings of prompts for which there was no part."""

    def __getitem__(self, name: str) -> Part:
        return next(part for part in self.parts if part.name == name)

    def next(self, request: dict[str, Any]) -> tuple[Behaviour, int]:
        """Return the behaviour for this call, by the part of its conversation, and its number."""
        prompt, said = last_prompt(request)
        with self._lock:
            self.requests.append(request)
            number = len(self.requests)
            part = self._part(prompt, said)
            if part is None:
                self.strangers.append(prompt[:_SHOWN_CHARS])
                return Refuse(400, "no part of the cast is for this prompt"), number
            part.calls += 1
            script = [one for behaviour in part.script for one in _spelled_out(behaviour, request, prompt)]
            behaviour = script[min(said, len(script) - 1)]
        if isinstance(behaviour, Held):
            part.is_held.set()
            part.let_go.wait()
            return behaviour.then, number
        return behaviour, number

    def release(self) -> None:
        """Let go of every part."""
        super().release()
        for part in self.parts:
            part.let_go.set()

    def left(self) -> list[str]:
        """Return the parts that nobody has asked for."""
        return [part.name for part in self.parts if not part.prompt]

    def _part(self, prompt: str, said: int) -> Part | None:
        if said:
            return next((part for part in reversed(self.parts) if part.prompt == prompt), None)
        part = next((part for part in self.parts if part.is_for(prompt)), None)
        if part is not None:
            part.prompt = prompt
            self.played.append(part.name)
        return part


def _spelled_out(behaviour: Behaviour, request: dict[str, Any], prompt: str) -> list[Behaviour]:
    """Return a reply as this client can give it; all else as it is."""
    match behaviour:
        case Held(then=Reply(report)):
            first, *rest = _spelled_out(Reply(report), request, prompt)
            assert isinstance(first, Reply | Write)
            return [Held(first), *rest]
        case Reply(report):
            file = _REPORT_FILE.search(prompt)
            return [Write(file[1], json.dumps(report)), Say("It is done.")] if file is not None else [behaviour]
    return [behaviour]


def last_prompt(request: dict[str, Any]) -> tuple[str, int]:
    """Return the last prompt of this conversation, and how often the model has spoken since."""
    prompt: list[str] = []
    said = 0
    for mine, text in _turns(request):
        if mine:
            said += 1
        elif said:
            prompt, said = [text], 0
        else:
            prompt.append(text)
    return "\n".join(prompt), said


def _turns(request: dict[str, Any]) -> Iterator[tuple[bool, str]]:
    """Return the turns: True for the model's, and the text. Results of tools are no turn, <tags> of clients are no text."""
    told = request.get("messages") or request.get("contents") or request.get("input") or ()
    for item in told:
        role, kind = item.get("role"), item.get("type")
        content = item.get("content") or item.get("parts") or ()
        blocks = [{"text": content}] if isinstance(content, str) else list(content)
        if role in ("assistant", "model") or kind in _CALLS:
            yield True, ""
        elif role == "user" and not any(block.get("type") in _RESULTS or "functionResponse" in block for block in blocks):
            texts = [str(block.get("text") or "") for block in blocks]
            yield False, "\n".join(text for text in texts if not text.startswith("<"))
