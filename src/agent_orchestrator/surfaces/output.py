"""The output of a launch, line by line while it writes: rendered as `orc logs` does, without secrets.

A launch's files are redacted when it ends; until then each line is, on its way out. Of a long file the last two megabytes are
shown, and the rest is had in ranges.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

from agent_orchestrator.agents.transcript import Item
from agent_orchestrator.bounded import open_launched
from agent_orchestrator.core.effects import AgentChoice
from agent_orchestrator.engine.redact import REDACTED, Redactor
from agent_orchestrator.surfaces.cli.transcripts import LaunchTranscript
from agent_orchestrator.surfaces.transcript import Line, TranscriptText

TAIL_BYTES = 2 * 1024 * 1024
RANGE_BYTES_MAX = 1024 * 1024
LOOK_BYTES = 512 * 1024
"""Read at one look: a program that writes without end must not fill the memory."""
WIDTH = 400

StreamName = Literal["out", "err", "both"]

_KEY_BEGINS = re.compile(rb"-----BEGIN [A-Z ]{0,32}PRIVATE KEY-----")
_KEY_ENDS = re.compile(rb"-----END [A-Z ]{0,32}PRIVATE KEY-----")


class LineRedactor:
    """Takes secrets out of lines as they come; a private key may take several."""

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor
        self._inside = False

    def clean(self, line: bytes) -> bytes:
        """Return a line without secrets."""
        line = self._redactor.redact_bytes(line)
        if self._inside:
            self._inside = _KEY_ENDS.search(line) is None
            return REDACTED
        if (found := _KEY_BEGINS.search(line)) is not None:
            self._inside = True
            return line[: found.start()] + REDACTED
        return line


class LaunchOutput:
    """The transcript of one launch for one reader, from a place on."""

    def __init__(
        self, folder: Path, stream: StreamName, choices: tuple[AgentChoice, ...], redactor: Redactor, place: str = ""
    ) -> None:
        self._folder, self._stream, self._choices, self._redactor = folder, stream, choices, redactor
        self._first = "err" if stream == "err" else "out"
        self._begin(place)

    def _begin(self, place: str) -> None:
        inode, start, out, err = _read_place(place)
        found = _inode_of(self._folder / self._first)
        self.resumed = bool(place) and inode == found
        self._start = start if self.resumed else find_start(self._folder / self._first)
        self.cut = self._start > 0
        log = 0 if self._first == "err" else find_start(self._folder / "err")
        clean = LineRedactor(self._redactor).clean
        self._transcript = LaunchTranscript(self._folder, self._stream, self._choices, (self._start, log), clean)
        self._text = TranscriptText(WIDTH, wrap=False)
        if self.resumed:  # What the reader has is read again, for the calls that are open.
            for _ in self._render(self._transcript.items(max(0, out - self._start), max(0, err - log))):
                pass

    @property
    def place(self) -> str:
        """The place up to which lines were read, for a reader that comes back."""
        out, log = self._transcript.out, self._transcript.log
        return f"{out.inode}.{self._start}.{out.place}.{log.place}"

    def is_anew(self) -> bool:
        """Tell whether the file was written anew, without its secrets, so that places in it mean nothing any more."""
        inode = self._transcript.out.inode
        return self._start > 0 and inode not in (0, _inode_of(self._folder / self._first))

    def begin_again(self) -> None:
        """Read it from the beginning."""
        self._begin("")

    def read(self) -> list[Line]:
        """Return the lines that were written since."""
        return list(self._render(self._transcript.items(LOOK_BYTES)))

    def close(self) -> list[Line]:
        """Return what is left of a launch that is over."""
        return [*self._render(self._transcript.items()), *self._render(self._transcript.close(ended=True))]

    def pending(self) -> dict[str, Any]:
        """Return the call that is running, and what was consumed up to now."""
        reader = self._transcript.reader
        usage = reader.usage
        return {
            "line": self._text.pending(reader.open.values(), usage),
            "tokens": usage.tokens if usage is not None else None,
            "cost_usd": usage.cost_usd if usage is not None else None,
        }

    def _render(self, items: Iterator[Item]) -> Iterator[Line]:
        for item in items:
            yield from self._text.lines(item)


def _read_place(text: str) -> tuple[int, int, int, int]:
    parts = text.split(".")
    if len(parts) != 4 or not all(part.isdecimal() and len(part) < 20 for part in parts):
        return -1, 0, 0, 0
    inode, start, out, err = map(int, parts)
    return inode, start, out, err


def _inode_of(path: Path) -> int:
    try:
        return path.lstat().st_ino
    except OSError:
        return 0


def find_start(path: Path) -> int:
    """Return where the first whole line of a file's last megabytes begins."""
    try:
        with open_launched(path) as file:
            size = file.seek(0, 2)
            if size <= TAIL_BYTES:
                return 0
            file.seek(size - TAIL_BYTES)
            return size - TAIL_BYTES + len(file.readline(TAIL_BYTES))
    except OSError:
        return 0


def read_range(path: Path, begin: int, count: int, redactor: Redactor) -> dict[str, Any]:
    """Return whole lines of a file from about a byte on, as text without secrets."""
    count = max(1, min(count, RANGE_BYTES_MAX))
    try:
        with open_launched(path) as file:
            size = file.seek(0, 2)
            begin = max(0, min(begin, size))
            file.seek(max(0, begin - 1))
            begin += len(file.readline(count)) - 1 if begin else 0  # A half of a secret would not be known as one.
            file.seek(begin)
            raw = file.read(count)
    except OSError:
        return {"from": 0, "to": 0, "size": 0, "text": ""}
    if begin + len(raw) < size and (last := raw.rfind(b"\n")) >= 0:
        raw = raw[: last + 1]
    cleaned = LineRedactor(redactor)
    lines = [cleaned.clean(line) for line in raw.split(b"\n")]
    return {"from": begin, "to": begin + len(raw), "size": size, "text": b"\n".join(lines).decode("utf-8", "replace")}
