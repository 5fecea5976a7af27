"""A real terminal: a tmux server of a test's own with one window of a given size, in which one command runs."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.acceptance.rig import wait_until

MODES = 'stty -a | tr " ;" "\\n\\n" | grep -Fx -e echo -e -echo -e icanon -e -icanon'
AFTER = f'trap : INT; "$@"; code=$?; echo "ended with $code" $({MODES}); exec cat'
"""Runs a command, says how it ended and in which modes it left the terminal."""


class Terminal:
    """One window."""

    def __init__(self, columns: int = 80, rows: int = 24) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="orc-tmux-"))  # the name of a socket is short
        self._socket = self._folder / "s"
        self._size = ("-x", str(columns), "-y", str(rows))

    def start(self, argv: Sequence[str], cwd: Path, environ: Mapping[str, str]) -> None:
        """Start the command; what it leaves behind stays to be seen."""
        shell = ("sh", "-c", AFTER, "sh", *argv)
        gone = ("TMUX", "TMUX_PANE", "COLUMNS", "LINES")
        env = {name: value for name, value in environ.items() if name not in gone} | {"TERM": "xterm-256color"}
        self._tmux("-f", "/dev/null", "new-session", "-d", *self._size, "-s", "t", "-c", str(cwd), *shell, env=env)

    def screen(self, *, colours: bool = False) -> str:
        """Return what stands there, without the empty lines at the end."""
        return self._tmux("capture-pane", "-p", *(("-e",) if colours else ()), "-t", "t").rstrip("\n ")

    def all(self) -> str:
        """Return the same with what scrolled out."""
        return self._tmux("capture-pane", "-p", "-J", "-S", "-2000", "-t", "t")

    def wait_for(self, text: str) -> str:
        """Wait until this stands there, and return everything that does."""
        wait_until(lambda: text in self.screen() or "ended with" in self.screen())
        assert text in self.screen(), self.all()
        return self.screen()

    def wait_for_end(self, code: int) -> str:
        """Wait until the command has ended, with this code and a terminal as it was; return everything that stands there."""
        return self.wait_for(f"ended with {code} icanon echo")

    def wait_without(self, text: str) -> str:
        """Wait until this does not stand there any more."""
        wait_until(lambda: text not in self.screen())
        return self.screen()

    def press(self, *keys: str) -> None:
        """Press keys, by the names that tmux has for them."""
        self._tmux("send-keys", "-t", "t", *keys)

    def type(self, text: str) -> None:
        """Type a text."""
        self._tmux("send-keys", "-t", "t", "-l", text)

    def paste(self, text: str) -> None:
        """Paste a text, marked as such where that is asked for."""
        self._tmux("set-buffer", text)
        self._tmux("paste-buffer", "-p", "-t", "t")

    def resize(self, columns: int, rows: int) -> None:
        """Make the window larger or smaller."""
        self._tmux("resize-window", "-t", "t", "-x", str(columns), "-y", str(rows))

    def pid(self) -> int:
        """The process of the shell."""
        return int(self._tmux("display-message", "-p", "-t", "t", "#{pane_pid}"))

    def title(self) -> str:
        """The window's title: an escape can change it."""
        return self._tmux("display-message", "-p", "-t", "t", "#{pane_title}").strip()

    def close(self) -> None:
        """End everything that runs there."""
        self._tmux("kill-server", check=False)
        shutil.rmtree(self._folder, ignore_errors=True)

    def _tmux(self, *arguments: str, env: Mapping[str, str] | None = None, check: bool = True) -> str:
        command = ["tmux", "-u", "-S", str(self._socket), *arguments]
        done = subprocess.run(command, env=env or os.environ, capture_output=True, text=True, check=False)
        assert not check or done.returncode == 0, (arguments, done.stderr)
        return done.stdout


def child_of(pid: int) -> int:
    """Return the newest child of a process."""
    found = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return int(found[-1])
