"""The launches of units at work, read while they are written: the tool in use or the last words, and what was consumed."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from agent_orchestrator.agents.events import Said
from agent_orchestrator.agents.output import readable
from agent_orchestrator.agents.transcript import CallBegan, CallEnded, Item, Reported, TextLine, describe_call
from agent_orchestrator.core.effects import AgentChoice, RunAgent, RunCheck
from agent_orchestrator.core.ids import EffectId, launch_folder
from agent_orchestrator.core.inputs import Usage
from agent_orchestrator.core.text import clip_line
from agent_orchestrator.engine.process.folder import read_birth
from agent_orchestrator.surfaces.cli.transcripts import LaunchTranscript
from agent_orchestrator.surfaces.transcript import CALL_TONES, MARK, Span

BYTES_PER_LOOK = 1024 * 1024
"""More is read at the next look: a picture must not wait for a program that writes without end."""
SHOWN_CHARS = 300

_SENTENCE_END = re.compile(r"(?<=[.!?:])\s+(?=\S)")


class LaunchActivity:
    """One launch at work."""

    def __init__(self, folder: Path, choices: tuple[AgentChoice, ...]) -> None:
        self._folder = folder
        self._transcript = LaunchTranscript(folder, "both", choices)
        self._started_us: int | None = None
        self.now: tuple[Span, ...] = ()

    @property
    def started_us(self) -> int | None:
        """The time at which it was started; None as long as it was not."""
        if self._started_us is None:
            birth = read_birth(self._folder)
            self._started_us = birth.started_us if birth is not None else None
        return self._started_us

    @property
    def usage(self) -> Usage | None:
        """The consumption up to now; None where nothing is known."""
        return self._transcript.reader.usage

    def look(self) -> None:
        """Read on, as far as one look may."""
        shown: tuple[Span, ...] = ()
        for item in self._transcript.items(BYTES_PER_LOOK):
            shown = show_item(item) or shown
        self.now = show_calls(self._transcript) or shown or self.now


def show_calls(transcript: LaunchTranscript) -> tuple[Span, ...]:
    """Return the newest call that is running; nothing without one."""
    running = list(transcript.reader.open.values())
    if not running:
        return ()
    return _call(running[-1].tool, describe_call(running[-1].given), "blue")


def show_item(item: Item) -> tuple[Span, ...]:
    """Return an item in one line; nothing for one that says nothing about the work."""
    match item:
        case Said():
            return _words(_last_sentence(item.text))
        case TextLine():
            return _words(item.text)
        case CallEnded():
            return (*_call(item.tool, item.about, CALL_TONES[item.state]), Span(f" · {item.state.value}", CALL_TONES[item.state]))
        case CallBegan():
            return _call(item.tool, item.about, "blue")
        case Reported():
            said = item.report.get("summary")
            return _words(said) if isinstance(said, str) else ()
        case _:
            return ()


def _last_sentence(text: str) -> str:
    lines = [line for line in readable(text).splitlines() if line.strip()]
    return _SENTENCE_END.split(lines[-1].strip())[-1] if lines else ""


def _words(text: str) -> tuple[Span, ...]:
    shown = clip_line(readable(text), SHOWN_CHARS)
    return (Span(shown),) if shown else ()


def _call(tool: str, about: str, tone: str) -> tuple[Span, ...]:
    name = clip_line(readable(tool), SHOWN_CHARS) or "a tool"
    subject = clip_line(readable(about), SHOWN_CHARS)
    return (Span(MARK, tone), Span(f" {name}", "bold"), *((Span(f" {subject}"),) if subject else ()))


class Activities:
    """The launches that are looked at, by effect; those that are over are forgotten."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._launches: dict[EffectId, LaunchActivity] = {}

    def look_at(self, effects: Iterable[object], choices: Iterable[AgentChoice]) -> dict[EffectId, LaunchActivity]:
        """Return the launches of those effects that are programs, read on; the run's agents may have prices."""
        wanted = [effect.id for effect in effects if isinstance(effect, RunAgent | RunCheck)]
        known, priced = self._launches, tuple(choices)
        self._launches = {
            effect: known.get(effect) or LaunchActivity(self._root / launch_folder(effect), priced) for effect in wanted
        }
        for launch in self._launches.values():
            launch.look()
        return self._launches
