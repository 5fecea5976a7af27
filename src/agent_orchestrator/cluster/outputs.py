"""Ships what the programs of a run write to the store, whole lines without secrets, so that every host can read it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

from agent_orchestrator.bounded import open_launched
from agent_orchestrator.core.ids import EffectId, RunId, launched_in
from agent_orchestrator.engine.redact import Redactor
from agent_orchestrator.errors import Fenced, OrcError
from agent_orchestrator.store.postgres.outputs import OutputPiece, PostgresOutputs

SHIP_S = 1.0
KEPT_BYTES = 4 * 1024 * 1024
"""Of each stream of a launch; the whole is on the run's host for as long as its home is."""
PIECE_BYTES = 256 * 1024
STREAMS = ("out", "err")
CUT = b"\norc: what was written after this is on the host of the run only\n"


class OutputShipper(threading.Thread):
    """The thread that ships the outputs of one run."""

    def __init__(
        self, outputs: PostgresOutputs, run: RunId, launches: Path, redactor: Redactor, say: Callable[[str], None]
    ) -> None:
        super().__init__(name=f"outputs of {run}", daemon=True)
        self._outputs, self._run, self._launches, self._redactor, self._say = outputs, run, launches, redactor, say
        self._shipped: dict[tuple[EffectId, str], int] = {}
        self._known = False
        self._closed = threading.Event()

    def run(self) -> None:
        """Ship what is new, once a second."""
        while not self._closed.wait(SHIP_S):
            if not self._try(last=False):
                return

    def finish(self) -> None:
        """Ship the rest, with lines that are not whole."""
        self._closed.set()
        self.join()
        self._try(last=True)

    def _try(self, *, last: bool) -> bool:
        """Ship what is new; False when the run is somebody else's."""
        try:
            self._ship(last=last)
        except Fenced:
            return False
        except (OrcError, OSError) as error:
            if last:
                self._say(f"run {self._run}: not all output could be shipped: {error}")
        return True

    def _ship(self, *, last: bool) -> None:
        if not self._known:
            self._shipped, self._known = self._outputs.list_shipped(self._run), True
        for folder in sorted(self._launches.glob("*~*")):
            effect = launched_in(self._run, folder.name)
            for stream in STREAMS:
                while (piece := self._read(effect, folder / stream, last=last)) is not None:
                    self._outputs.ship(self._run, piece)
                    self._shipped[effect, stream] = piece.at + piece.size

    def _read(self, effect: EffectId, file: Path, *, last: bool) -> OutputPiece | None:
        at = self._shipped.get((effect, file.name), 0)
        if at >= KEPT_BYTES:
            return None
        try:
            with open_launched(file) as opened:
                opened.seek(at)
                found = opened.read(PIECE_BYTES)
        except OSError:
            return None
        lines = found.rfind(b"\n") + 1  # Of a line that is cut, a secret would be told in two halves.
        if lines or (not last and len(found) < PIECE_BYTES):
            found = found[:lines] if not last or len(found) == PIECE_BYTES else found
        if not found:
            return None
        body = self._redactor.redact_bytes(found)
        cut = CUT if at + len(found) >= KEPT_BYTES else b""
        return OutputPiece(effect, file.name, at, len(found), body + cut)
