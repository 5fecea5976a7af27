"""What launches wrote, copied from their files: also while they write."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any, BinaryIO, TextIO

from agent_orchestrator.core.ids import EffectId, launch_folder, split_effect_id

JSON_TAIL_BYTES = 1024 * 1024
LAUNCH = re.compile(r"i(\d+)\.a(\d+)\.l(\d+)\.(\w+)\Z")


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
        with path.open("rb") as file:
            size = file.seek(0, 2)
            file.seek(max(0, size - JSON_TAIL_BYTES))
            return file.read(JSON_TAIL_BYTES).decode("utf-8", "replace")
    except OSError:
        return ""


class StreamPrinter:
    """Copies launches' files to the output, each from where it stopped."""

    def __init__(self, root: Path, stream: str, *, headed: bool, out: TextIO | None = None) -> None:
        self._root, self._stream, self._headed = root, stream, headed
        self._out = out or sys.stdout
        self._positions: dict[str, int] = {}
        self._current = ""
        self.wrote = False

    def print_new(self, effect: EffectId) -> None:
        """What was written since the last call."""
        try:
            file: BinaryIO = (self._root / launch_folder(effect) / self._stream).open("rb")
        except OSError:
            return
        with file:
            file.seek(self._positions.get(effect, 0))
            while block := file.read(64 * 1024):
                self._head(effect)
                self._out.buffer.write(block)
                self.wrote = True
            self._positions[effect] = file.tell()
        self._out.flush()

    def _head(self, effect: EffectId) -> None:
        if self._headed and effect != self._current:
            _, unit, name = split_effect_id(effect)
            self._out.write(f"{chr(10) if self._current else ''}==> {unit} {name} <==\n")
            self._out.flush()
        self._current = effect
