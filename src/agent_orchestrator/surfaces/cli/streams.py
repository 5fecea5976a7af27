"""The streams of launches, copied from their files: also while they are written."""

from __future__ import annotations

import codecs
import re
import sys
from pathlib import Path
from typing import Any, TextIO

from agent_orchestrator.bounded import open_launched
from agent_orchestrator.core.ids import EffectId, launch_folder, split_effect_id

JSON_TAIL_BYTES = 1024 * 1024
LAUNCH = re.compile(r"i(\d+)\.a(\d+)\.l(\d+)(?:-\d+)?\.(\w+)\Z")

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")


def launch_facts(root: Path, launch: dict[str, Any]) -> dict[str, Any]:
    """A launch as data, with the end of what it wrote."""
    _, unit, name = split_effect_id(launch["effect"])
    match = LAUNCH.search(name)
    assert match is not None
    folder = root / launch_folder(launch["effect"])
    texts = {stream: _tail(folder / stream) for stream in ("out", "err")}
    numbers = {"iteration": int(match[1]), "attempt": int(match[2]), "launch": int(match[3]), "kind": match[4]}
    return {**launch, "step": unit, **numbers, "folder": str(folder), **texts}


def _tail(path: Path) -> str:
    try:
        with open_launched(path) as file:
            size = file.seek(0, 2)
            file.seek(max(0, size - JSON_TAIL_BYTES))
            return file.read(JSON_TAIL_BYTES).decode("utf-8", "replace")
    except OSError:
        return ""


class StreamPrinter:
    """Copies launches' files to the output, each from where it stopped: byte for byte, but for a terminal.

    There control characters are shown, as `cat -v` does, and not obeyed.
    """

    def __init__(self, root: Path, stream: str, *, headed: bool, out: TextIO | None = None) -> None:
        self._root, self._stream, self._headed = root, stream, headed
        self._out = out or sys.stdout
        self._positions: dict[str, int] = {}
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace") if self._out.isatty() else None
        self._current = ""
        self.wrote = False

    def print_new(self, effect: EffectId, *, ended: bool = False) -> None:
        """Copy what was written since the last call."""
        try:
            file = open_launched(self._root / launch_folder(effect) / self._stream)
        except OSError:
            return
        with file:
            file.seek(self._positions.get(effect, 0))
            while block := file.read(64 * 1024):
                if self._headed and effect != self._current:
                    self._out.write(head_of(effect, first=not self._current))
                self._current, self.wrote = effect, True
                self._write(block)
            self._positions[effect] = file.tell()
        self._out.flush()

    def draw(self) -> None:
        """Draw nothing: a stream has no call that is running."""

    def erase(self) -> None:
        """Erase nothing: nothing was drawn."""

    def close(self) -> None:
        """Leave it at that: all that there is was copied."""

    def _write(self, block: bytes) -> None:
        if self._decoder is not None:
            self._out.write(_CONTROL.sub(_show_control, self._decoder.decode(block)))
        else:
            self._out.flush()
            self._out.buffer.write(block)


def head_of(effect: EffectId, *, first: bool) -> str:
    """Return the line above what a launch wrote, where there are several."""
    _, unit, name = split_effect_id(effect)
    return f"{'' if first else chr(10)}==> {unit} {name} <==\n"


def _show_control(found: re.Match[str]) -> str:
    code = ord(found[0])
    return f"^{chr(code ^ 0x40)}" if code < 0x80 else f"<U+{code:04X}>"
