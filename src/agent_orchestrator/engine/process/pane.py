"""Puts a launch into a tmux session. A program of its own, run as a file: it imports nothing of the package.

`start` is spawned by the engine in the place of the shim and holds the launch's lock; it makes the session, whose pane runs
`join`; the two meet at a socket in the launch's directory, over which the lock itself is handed on, with the program and
its environment. So the lock is held at every instant, by whatever of the launch lives, and tmux never has a part in that.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys

SHIM = """\
trap : TERM INT
trap '' HUP
cd -- "$1" || exit
echo $$ >>lock
echo 0 >"$6"
ulimit -S -n "$2"
stty -ixon 2>/dev/null
mkfifo pane.out pane.err || exit
(trap '' TERM INT PIPE; exec tee -a out <pane.out >&9) &
(trap '' TERM INT PIPE; exec tee -a err <pane.err >&9) &
exec 9>&-
(cd -P -- "$4" || exit 126; test "$PWD" = "$4" || { echo "orc: $PWD is not $4" >&2; exit 126; }
shift 6; exec "$@") 2>pane.err >pane.out <"$3"
code=$?
rm -f pane.out pane.err
true >"exit.$code" || mv lock "exit.$code"
"""
"""The shim of a pane, as constant as the other one (see shim.py), and different in this:

- What the program writes goes through a pipe and `tee -a` to the files and to the view. The two `tee` hold the lock:
  the launch is over when all is written. They outlive the view, which only shows what stands in the files.
- HUP is ignored, by the program too: killing the session takes the terminal away and nothing else.
- The `tee` ignore TERM and INT: they end when the program has, not before, so that its last words are kept.
- Nobody can stop the program by stopping the terminal's output (`stty -ixon`).
"""

VIEW = """\
trap '' HUP INT TERM
"$@" || cat
exec cat >/dev/null
"""
"""Shows the launch in its pane; where that fails, as it is written. It holds no lock and reads to the end, whatever happens."""

VIEWER = """\
import runpy, sys
sys.path.insert(0, sys.argv.pop(1))
runpy.run_module("agent_orchestrator.surfaces.cli.pane", run_name="__main__")
"""
"""A surface's program, and only named here: nothing below the surfaces depends on it."""

LOCK_FD = 97
VIEW_FD = 9
SOCKET = "pane.sock"
JOIN_S = 20.0
MESSAGE_BYTES = 64 * 1024
CANNOT_START = 126


def start(folder: str, session: str, arguments: list[str]) -> None:
    """Makes the session and hands the launch over to its pane."""
    os.chdir(folder)
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as door:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(SOCKET)
        door.bind(SOCKET)  # relative: a path may be longer than a socket's name
        door.listen(1)
        door.settimeout(JOIN_S)
        _open_session(session, folder)
        pane, _ = door.accept()
        os.unlink(SOCKET)
    with pane:
        pane.settimeout(JOIN_S)
        body = json.dumps({"arguments": arguments, "env": dict(os.environ)}).encode("utf-8", "surrogateescape")
        socket.send_fds(pane, [len(body).to_bytes(8, "big")], [LOCK_FD])
        pane.sendall(body)
        pane.recv(1)


def _open_session(session: str, folder: str) -> None:
    """A session of that name, or a window more in the one that a person kept open."""
    environ = {name: value for name, value in os.environ.items() if name not in ("TMUX", "TMUX_PANE", "ORC_LAUNCH")}
    pane = ["-c", folder, sys.executable, "-I", os.path.abspath(__file__), "join", folder]
    there = ["tmux", "has-session", "-t", f"={session}"]
    known = subprocess.run(there, env=environ, capture_output=True, check=False, close_fds=True).returncode == 0
    first = ["new-window", "-d", "-t", f"={session}:"] if known else ["new-session", "-d", "-s", session, "-x", "200", "-y", "50"]
    done = subprocess.run(["tmux", *first, *pane], env=environ, capture_output=True, text=True, check=False, close_fds=True)
    if done.returncode != 0:
        raise OSError(done.stderr.strip() or f"tmux exited with code {done.returncode}")


def join(folder: str) -> None:
    """In the pane: takes the launch over and becomes its shim."""
    os.chdir(folder)
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as door:
        door.settimeout(JOIN_S)
        door.connect(SOCKET)
        head, descriptors, _, _ = socket.recv_fds(door, 8, 1)
        body = b""
        while len(body) < int.from_bytes(head, "big"):
            part = door.recv(MESSAGE_BYTES)
            if not part:
                return  # Whoever had the launch is gone: it was stopped before it began.
            body += part
        _open_view(folder)  # before the lock is there: the view must not hold it
        os.dup2(descriptors[0], LOCK_FD, inheritable=True)
        os.close(descriptors[0])
        door.sendall(b".")
    told = json.loads(body.decode("utf-8", "surrogateescape"))
    environ = {**told["env"], **{name: os.environ[name] for name in ("TERM", "TMUX", "TMUX_PANE") if name in os.environ}}
    for number in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_DFL)
    os.execve("/bin/sh", ["sh", "-c", SHIM, "orc", folder, *told["arguments"]], environ)


def _open_view(folder: str) -> None:
    """Start what shows the launch in the pane, and leave the way to it at its descriptor."""
    source, sink = os.pipe()
    root = os.path.abspath(f"{os.path.dirname(__file__)}/../../..")
    viewer = [sys.executable, "-I", "-c", VIEWER, root, folder, os.environ.get("NO_COLOR", "")]
    try:
        subprocess.Popen(["sh", "-c", VIEW, "orc", *viewer], stdin=source)
        os.dup2(sink, VIEW_FD, inheritable=True)
    except OSError:
        os.dup2(1, VIEW_FD, inheritable=True)
    os.close(source)
    os.close(sink)


def main() -> int:
    """One of the two parts."""
    part, folder, *rest = sys.argv[1:]
    if part == "join":
        join(folder)
        return 0
    try:
        start(folder, rest[0], rest[1:])
    except OSError as error:
        # Nothing was started: said like a shell that cannot execute a program.
        with open("err", "a", encoding="utf-8") as err:
            err.write(f"tmux session {rest[0]} cannot be used: {error}\n")
        with open(f"exit.{CANNOT_START}", "w", encoding="ascii"):
            pass
    return 0


if __name__ == "__main__":
    sys.exit(main())
