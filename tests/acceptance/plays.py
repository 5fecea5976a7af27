"""Performs an example on its stage, with a person beside it who says yes when one is asked."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import threading
from collections.abc import Sequence
from fnmatch import fnmatchcase
from typing import NamedTuple

from tests.acceptance.examples import Example
from tests.acceptance.rig import WAIT_S, wait_until
from tests.acceptance.stages import PATIENCE_S, Home

UNKNOWN = re.compile(r"\b(8c1f0a2b|v4_20250106_100000)\b")
"""Ids that nobody can choose: they stand for that of what goes on beside the example."""
_ASKS = re.compile(r"^ +approve: +(orc approve .+)$")


class Play(NamedTuple):
    """The performance of an example."""

    stage: str
    code: int = 0
    """The exit code that is documented for it."""
    before: str = ""
    """The commands typed first, where a stage is not enough."""
    beside: str = ""
    """The commands that run meanwhile, with agents that are held until the example has ended."""
    follows: bool = False
    """The example ends when what goes on beside it does: agents are let go at once."""
    serves: str = ""
    """The words after which an example that serves until Ctrl-C gets it."""
    after: str = ""
    """The commands typed then, so that what it left in the background comes to its end."""
    names: tuple[tuple[str, str], ...] = ()
    """The words of the example that stand for something of the stage."""


Plays = Sequence[tuple[str, Play]]


def play_for(example: Example, plays: Plays) -> Play | None:
    """The first one whose pattern is that of the line."""
    return next((play for pattern, play in plays if fnmatchcase(example.line, pattern)), None)


def idle_patterns(examples: Sequence[Example], plays: Plays) -> list[str]:
    """Patterns that no example is performed by."""
    used = {id(play_for(example, plays)) for example in examples}
    return [pattern for pattern, play in plays if id(play) not in used]


class Watched:
    """A command whose output is read while it runs; whoever it asks for an approval is answered."""

    def __init__(self, home: Home, line: str) -> None:
        self.home, self.line, self.said = home, line, ""
        self.process = home.type(line)
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for said in self.process.stdout:
            self.said += said
            if (asks := _ASKS.match(said)) and "--no-wait" not in self.line:
                self.home.type(asks[1]).communicate(timeout=WAIT_S)

    def end(self) -> int:
        """Its exit code."""
        try:
            code = self.process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise AssertionError(f"{self.line}\nit does not end:\n{self.said}") from None
        self._reader.join(WAIT_S)
        assert self.process.stdout is not None
        self.process.stdout.close()
        return code


def check_example(home: Home, example: Example, play: Play) -> str:
    """Performs it: it ends as it is documented, without a traceback, and leaves no process behind. Returns what it said."""
    line = example.line
    for name, meant in play.names:
        line = line.replace(name, meant)
    if play.before:
        home.do(play.before)
    beside = None
    if play.beside:
        home.hold()
        beside = Watched(home, play.beside)
        wait_until(lambda: list(home.folder.glob("at-work*")) or beside.process.poll() is not None)
        line = UNKNOWN.sub(beside.said.split()[1], line)
    typed = Watched(home, line)
    if play.follows:
        wait_until(lambda: typed.said or typed.process.poll() is not None)
        home.let_go()
    if play.serves:
        wait_until(lambda: play.serves in typed.said or typed.process.poll() is not None)
        typed.process.send_signal(signal.SIGINT)
    code = typed.end()
    home.let_go()
    if beside is not None:
        beside.end()
    if play.after:
        home.do(play.after)
    wait_until(lambda: not home.busy(), PATIENCE_S)
    assert code == play.code, f"{example.where}: {line}\nexit code {code}, not {play.code}\n{typed.said}"
    assert "Traceback" not in typed.said, typed.said
    if "--detach" in line:
        assert [run["status"] for run in json.loads(home.do("orc list --json"))["runs"]] == ["completed"]
    return typed.said
