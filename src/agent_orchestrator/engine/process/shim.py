"""The constant `sh` text that stands between the engine and a program, and the one place that spawns it.

Nothing is ever interpolated into the text; directory, limit, paths and the program come as positional parameters.
"""

from __future__ import annotations

import errno
import fcntl
import os
import resource
import signal
import sys
from contextlib import suppress
from functools import cache
from pathlib import Path

from agent_orchestrator.engine.kinship import NONCE_VARIABLE
from agent_orchestrator.engine.process import pane
from agent_orchestrator.engine.process.cgroups import PROCESSES

SHIM = """\
trap : TERM INT HUP
cd -- "$1" || exit
echo $$ >>lock
echo 0 >"$6"
ulimit -S -n "$2"
(cd -P -- "$4" || exit 126; test "$PWD" = "$4" || { echo "orc: $PWD is not $4" >&2; exit 126; }
shift 6; exec "$@") 2>>err >>out <"$3"
code=$?
true >"exit.$code" || mv lock "exit.$code"
exit $code
"""
"""The reason for each line:

- Without the trap, TERM to the group kills the shim at once and the exit code is lost while the agent still cleans up.
  A trap with a command is reset in the subshell, so the agent itself gets the default.
- The shim names its own pid, below its birth in the lock file (one file more costs a start more than the line does): a
  record written by the engine after spawning would be missing if the engine died between the two. Liveness needs no
  pid, and a pid is believed only if its process carries the nonce (`identity.py`).
- `0` is the shim itself, and `$6` the list of its cgroup, or /dev/null: what it starts from then on is in the cgroup, too.
- `cd -P` says in PWD where it really led: a link that was planted after the engine looked is seen there.
- `2>>err` comes first, so that whatever else cannot be opened is said there.
- The exit code is a file *name*: it cannot be torn. Creating it is a builtin (an `mv` costs a fork and an exec between
  an agent's end and the next one's start); where the disk is too full for a new file, a rename still succeeds.
  `true` and not `:`, because a failed redirection of a special builtin ends the shell.
- The shim ends with the same code: its parent knows from the kernel which mark is the shim's own, whoever else makes one.
- `$5`, the nonce, is there to be seen in the process list, where a system does not show environments.
"""

SHIM_NAME = "orc"
"""The shim's `$0`: how its messages about a program that cannot be executed begin."""

_SHELL = "/bin/sh"
_LOCK_FD = pane.LOCK_FD
"""The descriptor at which shim and agent find the lock: out of the way of the descriptors that scripts use by number."""

_RESET = (signal.SIGPIPE, signal.SIGXFSZ, signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
"""Signals that Python or a `nohup` may ignore; they are not to be ignored by agents."""


@cache
def prepare_engine() -> str:
    """Once per process: takes all descriptors the system allows, and keeps those we inherited from our agents.

    Returns the soft limit that children get back, as `ulimit` spells it.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with suppress(ValueError, OSError):  # macOS refuses an unlimited soft limit; the one we have has to do
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    for name in os.listdir("/dev/fd"):
        if int(name) > 2:
            with suppress(OSError):  # the listing's own descriptor is closed by now
                os.set_inheritable(int(name), False)
    return "unlimited" if soft == resource.RLIM_INFINITY else str(soft)


def chained_nonce(env: dict[str, str], nonce: str) -> str:
    """The nonce after those of the launches that we ourselves run in: stopping one of them reaches our agents too."""
    outer = env.get(NONCE_VARIABLE)
    return f"{outer}:{nonce}" if outer else nonce


def spawn(
    folder: Path,
    lock: int,
    nonce: str,
    *,
    argv: tuple[str, ...],
    env: dict[str, str],
    cwd: Path,
    stdin: Path | None,
    cgroup: str = "",
    terminal: str | None = None,
) -> int | None:
    """Starts the shim in its own session with nothing but the lock, and returns its pid. Raises OSError or ValueError.

    With a terminal it is started in that tmux session instead, and names its pid itself when it is there: None for now.
    """
    inherited = lock if lock != _LOCK_FD else fcntl.fcntl(lock, fcntl.F_DUPFD_CLOEXEC, _LOCK_FD + 1)
    source = str(stdin) if stdin is not None else os.devnull
    given = [prepare_engine(), source, str(cwd), nonce, f"{cgroup}/{PROCESSES}" if cgroup else os.devnull, *argv]
    words = ["sh", "-c", SHIM, SHIM_NAME, str(folder), *given]
    if terminal is not None:
        words = ["sh", "-c", '"$@" &', SHIM_NAME, sys.executable, "-I", pane.__file__, "start", str(folder), terminal, *given]
    try:
        pid = os.posix_spawn(
            _SHELL,
            words,
            {**env, NONCE_VARIABLE: chained_nonce(env, nonce)},
            file_actions=(
                (os.POSIX_SPAWN_DUP2, inherited, _LOCK_FD),
                (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDWR, 0),
                (os.POSIX_SPAWN_DUP2, 0, 1),
                (os.POSIX_SPAWN_DUP2, 0, 2),
            ),
            setsid=True,
            setsigmask=(),
            setsigdef=_RESET,
        )
        if terminal is None:
            return pid
        os.waitpid(pid, 0)  # It only went to the background: gone in a moment.
        return None
    except OSError as error:
        if error.errno == errno.EBADF:  # The number of the lock is beyond the limit of descriptors: a shortage like any other.
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE)) from error
        raise
    finally:
        if inherited != lock:
            os.close(inherited)
