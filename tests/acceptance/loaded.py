"""An `orc` that is loaded once and forked for each command: the same program, without loading its modules again.

Started with `python -m tests.acceptance.loaded`, it reads commands and answers each with two JSON lines: the process that runs
it, and how it ended.
"""

from __future__ import annotations

import atexit
import importlib
import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import threading
from functools import cache
from pathlib import Path
from typing import IO, Any, NamedTuple

ROOT = Path(__file__).resolve().parents[2]
LOADED = ("runs.drive", "runs.takeup", "runs.world", "runs.start", "runs.digest", "runs.merge", "engine.engine", "engine.process")
"""The modules that commands which drive runs have in common; the rest is loaded by the command that needs it."""

ENDS_WITHIN_S = 10.0


class Ended(NamedTuple):
    """The end of a command."""

    code: int
    out: str
    err: str


class LoadedOrc:
    """The process that forks, as tests talk to it: one command at a time."""

    def __init__(self) -> None:
        self._free = threading.Lock()
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.acceptance.loaded"],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            bufsize=1,
        )
        atexit.register(self._end)

    def run(self, arguments: tuple[str, ...], cwd: Path, environment: dict[str, str], patience_s: float) -> Ended | None:
        """Run a command to its end; None while another thread runs one here."""
        if not self._free.acquire(blocking=False):
            return None
        try:
            pid = self._ask([str(cwd), environment, arguments])
            assert self._process.stdout is not None
            if not select.select([self._process.stdout], [], [], patience_s)[0]:
                os.kill(pid, signal.SIGKILL)
                self._read()
                raise subprocess.TimeoutExpired(["orc", *arguments], patience_s)
            return Ended(*self._read())
        finally:
            self._free.release()

    def _end(self) -> None:
        try:
            self._process.communicate(timeout=ENDS_WITHIN_S)
        except subprocess.TimeoutExpired:
            self._process.kill()

    def _ask(self, given: list[Any]) -> int:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(given) + "\n")
        return int(self._read())

    def _read(self) -> Any:
        assert self._process.stdout is not None
        return json.loads(self._process.stdout.readline())


@cache
def loaded_orc() -> LoadedOrc:
    """Return the one of this process."""
    return LoadedOrc()


def _read_all(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read().decode("utf-8")


def _serve() -> int:
    """Answer until nobody asks any more; in a forked process, return the exit code of its command."""
    from agent_orchestrator.surfaces.cli.main import main

    for name in LOADED:
        importlib.import_module(f"agent_orchestrator.{name}")
    for line in sys.stdin:
        cwd, environment, arguments = json.loads(line)
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            child = os.fork()
            if child == 0:
                os.environ.clear()
                os.environ.update(environment)
                os.chdir(cwd)
                for number, file in enumerate((os.open(os.devnull, os.O_RDONLY), out.fileno(), err.fileno())):
                    os.dup2(file, number)
                sys.argv = ["orc", *arguments]
                return main()
            print(child, flush=True)
            code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
            print(json.dumps([code, _read_all(out), _read_all(err)]), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(_serve())
