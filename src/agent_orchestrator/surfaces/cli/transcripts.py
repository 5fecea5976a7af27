"""Prints the transcripts of launches from their files: also while they are written."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Literal, NamedTuple

from agent_orchestrator.agents.transcript import Item, TextLine, TranscriptReader
from agent_orchestrator.bounded import open_launched
from agent_orchestrator.core.effects import AgentChoice
from agent_orchestrator.core.ids import EffectId, launch_folder
from agent_orchestrator.core.limits import LINE_LIMIT_BYTES
from agent_orchestrator.surfaces.cli.screen import WIDTH_MAX, Screen
from agent_orchestrator.surfaces.cli.streams import StreamPrinter, head_of
from agent_orchestrator.surfaces.transcript import Line, TranscriptText

BLOCK_BYTES = 256 * 1024
BATCH_LINES = 200
CLEAR_LINE = "\r\x1b[K"

Stream = Literal["out", "err", "both"]


class LogOptions(NamedTuple):
    """The ways in which a person asks for what launches wrote."""

    follow: bool = False
    err: bool = False
    raw: bool = False
    attempt: str | None = None


def make_printer(
    root: Path, environ: Mapping[str, str], choices: tuple[AgentChoice, ...], options: LogOptions, *, headed: bool
) -> StreamPrinter | TranscriptPrinter:
    """Return the printer of transcripts, or of the streams as they are, of launches below a root."""
    stream: Stream = "err" if options.err else "out"
    if options.raw:
        return StreamPrinter(root, stream, headed=headed)
    screen = Screen(environ)
    return TranscriptPrinter(root, screen, choices, stream=stream, headed=headed, live=options.follow)


class GrowingLines:
    """The lines of a file that grows: each once, whole ones only until the end is asked for.

    From `start` on, where a line begins; each as `clean` leaves it.
    """

    def __init__(self, path: Path, start: int = 0, clean: Callable[[bytes], bytes] | None = None) -> None:
        self._path, self._clean = path, clean
        self._offset, self.inode, self._lines = start, 0, 0
        self._rest, self._too_long = b"", False

    @property
    def place(self) -> int:
        """The byte up to which whole lines were read."""
        return self._offset - len(self._rest)

    def read(self, most: int | None = None) -> Iterator[bytes | None]:
        """Return the lines that have come since, of about `most` bytes; None for one that is too long."""
        try:
            file = open_launched(self._path)
        except OSError:
            return
        with file:
            skip = self._find_place(os.fstat(file.fileno()).st_ino)
            file.seek(self._offset)
            end = None if most is None else self._offset + most
            while block := file.read(BLOCK_BYTES if end is None else min(BLOCK_BYTES, end - self._offset)):
                self._offset += len(block)
                for line in self._split(block):
                    if skip:
                        skip -= 1
                    else:
                        self._lines += 1
                        yield line if line is None or self._clean is None else self._clean(line)

    def end(self) -> Iterator[bytes | None]:
        """Return the last line, if it has no end: nobody will end it now."""
        rest, too_long = self._rest, self._too_long
        self._rest, self._too_long = b"", False
        if rest or too_long:
            yield None if too_long else rest if self._clean is None else self._clean(rest)

    def _find_place(self, inode: int) -> int:
        """Return the lines to pass over: all that were read, where the file was written anew without its secrets."""
        anew = self.inode not in (0, inode)
        self.inode = inode
        if not anew:
            return 0
        self._offset, self._rest, self._too_long = 0, b"", False
        return self._lines

    def _split(self, block: bytes) -> Iterator[bytes | None]:
        *whole, last = block.split(b"\n")
        for line in whole:
            yield None if self._too_long or len(self._rest) + len(line) > LINE_LIMIT_BYTES else self._rest + line
            self._rest, self._too_long = b"", False
        self._rest = b"" if self._too_long else self._rest + last
        if len(self._rest) > LINE_LIMIT_BYTES:
            self._rest, self._too_long = b"", True


class LaunchTranscript:
    """The transcript of one launch: its files, and how far they are read."""

    def __init__(
        self,
        folder: Path,
        stream: Stream,
        choices: tuple[AgentChoice, ...],
        starts: tuple[int, int] = (0, 0),
        clean: Callable[[bytes], bytes] | None = None,
    ) -> None:
        self.reader = TranscriptReader(choices)
        self.closed = False
        self._err, self._both = stream == "err", stream == "both"
        self.out = GrowingLines(folder / ("err" if self._err else "out"), starts[0], clean)
        self.log = GrowingLines(folder / "err", starts[1], clean)

    def items(self, most: int | None = None, most_of_log: int | None = None) -> Iterator[Item]:
        """Return what was written since the last call, at most so many bytes of each file."""
        yield from self._of_out(self.out.read(most))
        for line in self.log.read(most if most_of_log is None else most_of_log) if not self._err else ():
            if self._both and line is not None and not self.reader.of_client:
                yield TextLine(text=line.decode("utf-8", "replace"))
            else:
                yield from self.reader.read_log(line)

    def close(self, *, ended: bool) -> Iterator[Item]:
        """Return what is left when nothing follows."""
        self.closed = True
        yield from self._of_out(self.out.end())
        yield from self.reader.close(ended=ended)

    def _of_out(self, lines: Iterable[bytes | None]) -> Iterator[Item]:
        for line in lines:
            if self._err and line is not None:
                yield TextLine(text=line.decode("utf-8", "replace"))
            else:
                yield from self.reader.read(line)


class TranscriptPrinter:
    """Prints launches' transcripts, each from where it stopped.

    Of a `live` one at a terminal also the call that is running; of `both` streams the error output only where the program is
    no client. The `choices` are the run's agents, which may have prices.
    """

    def __init__(
        self,
        root: Path,
        screen: Screen,
        choices: tuple[AgentChoice, ...] = (),
        *,
        stream: Stream = "out",
        headed: bool = False,
        live: bool = False,
    ) -> None:
        self._root, self._screen, self._choices = root, screen, choices
        self._stream, self._headed = stream, headed
        self._live = live and screen.colour
        self._launches: dict[EffectId, LaunchTranscript] = {}
        self._texts: dict[EffectId, TranscriptText] = {}
        self._current = ""
        self._pending = ""
        self.wrote = False

    def print_new(self, effect: EffectId, *, ended: bool = False) -> None:
        """Print what was written since the last call, and the rest if the launch has ended."""
        launch = self._launches.get(effect)
        if launch is None:
            folder = self._root / launch_folder(effect)
            launch = self._launches[effect] = LaunchTranscript(folder, self._stream, self._choices)
            self._texts[effect] = self._make_text()
        if not launch.closed:
            self._print(effect, launch.items())
            if ended:
                self._print(effect, launch.close(ended=True))
        self._screen.out.flush()

    def draw(self) -> None:
        """Draw the newest call that is running, at a terminal that is followed."""
        running = [effect for effect, one in self._launches.items() if not one.closed and one.reader.open]
        if not self._live or not running:
            return
        launch = self._launches[running[-1]]
        line = self._screen.paint_line(self._texts[running[-1]].pending(launch.reader.open.values(), launch.reader.usage))
        if line != self._pending:
            self.erase()
            self._screen.out.write(line)
            self._screen.out.flush()
            self._pending = line

    def close(self) -> None:
        """Print what is left of launches that have not ended."""
        for effect, launch in self._launches.items():
            if not launch.closed:
                self._print(effect, launch.close(ended=False))
        self._screen.out.flush()

    def _make_text(self) -> TranscriptText:
        """Words are wrapped for a terminal alone: in a pipe somebody may search for them."""
        terminal = self._screen.terminal
        return TranscriptText(self._screen.width if terminal else WIDTH_MAX, wrap=terminal)

    def _print(self, effect: EffectId, items: Iterable[Item]) -> None:
        write, text = self._screen.out.write, self._texts[effect]
        for lines in _batches(line for item in items for line in text.lines(item)):
            self.erase()
            if self._headed and effect != self._current:
                write(head_of(effect, first=not self._current))
            self._current, self.wrote = effect, True
            write("".join(self._screen.paint_line(line) + "\n" for line in lines))

    def erase(self) -> None:
        """Erase the call that was drawn, for whatever is printed next."""
        if self._pending:
            self._screen.out.write(CLEAR_LINE)
            self._screen.out.flush()
            self._pending = ""


def _batches(lines: Iterator[Line]) -> Iterator[list[Line]]:
    """Return the lines some hundreds at a time: each write may be a call of the system."""
    while batch := list(islice(lines, BATCH_LINES)):
        yield batch
