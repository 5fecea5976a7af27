"""A program that is measured, as a child process: asked in one line, answers in one line, ended with all that it started."""

from __future__ import annotations

import contextlib
import json
import os
import re
import selectors
import signal
import subprocess
import sys
from pathlib import Path
from types import TracebackType
from typing import Any, Self

ROOT = Path(__file__).resolve().parents[1]
PATIENCE_S = 240.0
TOLD_LINES = 3
FOLDERS = re.compile(r"/(?:[^\s/\"']+/)+")
"""The folders of this machine are nobody's business."""


class SubjectFailed(Exception):
    """A program that was asked ended or did not answer; says its last words."""


class Subject:
    """One process, in a session of its own; its stderr is kept beside its data."""

    def __init__(
        self, module: str, folder: Path, *arguments: str, python: str = sys.executable, wrapped: tuple[str, ...] = ()
    ) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder, self._said = folder, folder / "stderr.txt"
        environ = {name: os.environ[name] for name in ("PATH", "LANG", "TMPDIR") if name in os.environ}
        environ |= {"HOME": str(folder), "PYTHONDONTWRITEBYTECODE": ""}
        with self._said.open("ab") as said:
            try:
                self._process = subprocess.Popen(
                    [*wrapped, python, "-m", module, *arguments],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=said,
                    cwd=ROOT,
                    env=environ,
                    start_new_session=True,
                )
            except OSError as error:
                raise SubjectFailed(f"it could not be started: {error.strerror}") from error

    def ask(self, do: str, patience_s: float = PATIENCE_S, **given: object) -> Any:
        """Ask, and return the answer; raise SubjectFailed where none comes."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            self._process.stdin.write(json.dumps({"do": do, **given}).encode() + b"\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            raise SubjectFailed(self._last_words("it ended")) from None
        with selectors.DefaultSelector() as selector:
            selector.register(self._process.stdout, selectors.EVENT_READ)
            if not selector.select(patience_s):
                raise SubjectFailed(f"no answer to {do} within {patience_s:g} s")
        line = self._process.stdout.readline()
        if not line:
            raise SubjectFailed(self._last_words(f"it ended when asked for {do}"))
        return json.loads(line)

    def interrupt(self, earlier: int) -> None:
        """Ask it to end itself in the middle of its work, and see that it did."""
        with contextlib.suppress(SubjectFailed):
            self.ask("interrupt", earlier=earlier)
        if self._process.wait(PATIENCE_S) != 0:
            raise SubjectFailed(self._last_words("it could not be interrupted"))

    def _last_words(self, what: str) -> str:
        lines = self._said.read_text("utf-8", "replace").strip().splitlines()
        said = " / ".join(FOLDERS.sub("", line.strip()) for line in lines[-TOLD_LINES:])
        return f"{what}: {said}" if lines else what

    def close(self) -> None:
        """Let it end by itself, then end whatever is left of its session."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(20)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._process.stdout.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()
