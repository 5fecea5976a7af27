"""`orc web` as a program, in an environment of its own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import tempfile
from pathlib import Path

from tests.acceptance.rig import ORC, ROOT, WAIT_S


def environment(home: Path) -> dict[str, str]:
    """Return the environment of programs: nothing of whoever runs the tests but the store that they are run with."""
    own = {"HOME": str(home), "LANG": "C.UTF-8", "PYTHONPATH": str(ROOT / "src"), "ORC_TRUSTED_PATHS": tempfile.gettempdir()}
    store = {name: value for name, value in os.environ.items() if name.startswith("ORC_STORE")}
    return {"PATH": os.environ["PATH"], **own, **store}


class Server:
    """`orc web`, as a program."""

    def __init__(self, home: Path, *repos: Path, arguments: tuple[str, ...] = ()) -> None:
        self._home, self._repos, self._arguments = home, repos, arguments
        self.port = 0
        self.start()

    def start(self) -> None:
        """Start it, on the port that it had before."""
        words = [*ORC, "web", *map(str, self._repos), "--json", "--port", str(self.port), *self._arguments]
        self.process = subprocess.Popen(
            words, cwd=self._home, env=environment(self._home), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True
        )
        assert self.process.stdout is not None
        said = json.loads(self.process.stdout.readline())
        self.url, self.port = said["url"], said["port"]
        self.base = f"http://127.0.0.1:{self.port}"

    def stop(self, number: signal.Signals = signal.SIGTERM) -> None:
        """End it."""
        self.process.send_signal(number)
        self.process.wait(WAIT_S)
        if self.process.stdout is not None:
            self.process.stdout.close()
