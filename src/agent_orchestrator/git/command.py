"""Git commands, with nothing of the caller's environment but what they need, their failures as a sentence, and their locks.

A lock is a kernel lock on a file, inherited by every git that is started while it is held: a git that outlives us goes on
holding it, and whoever repeats our work after a crash waits until it is done.
"""

from __future__ import annotations

import fcntl
import os
import subprocess
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from agent_orchestrator.errors import GitFailed
from agent_orchestrator.git.repository import store_folder

TIMEOUT_S = 300.0

_held = threading.local()


def git(where: Path, *arguments: str, env: Mapping[str, str] | None = None) -> str:
    """Run a git command and return its trimmed output; raises GitFailed."""
    return ask_git(where, *arguments, env=env)[1]


def ask_git(
    where: Path, *arguments: str, env: Mapping[str, str] | None = None, answers: tuple[int, ...] = (0,)
) -> tuple[int, str]:
    """Run a git command; return its exit code, one of `answers`, and its trimmed output. Any other code raises GitFailed."""
    code, out = _run(where, arguments, env, answers)
    return code, out.decode("utf-8", "replace").rstrip("\n")


def list_names(where: Path, *arguments: str, env: Mapping[str, str] | None = None) -> list[str]:
    """Run a git command with `-z` and return the file names it prints, whatever their bytes; raises GitFailed."""
    return [os.fsdecode(name) for name in _run(where, arguments, env)[1].split(b"\0") if name]


def give_names(where: Path, *arguments: str, names: Iterable[str], env: Mapping[str, str] | None = None) -> None:
    """Give file names, or lines about them, to a git command that reads them with `-z --stdin`; raises GitFailed."""
    _run(where, arguments, env, given=b"".join(os.fsencode(name) + b"\0" for name in names))


def _run(
    where: Path,
    arguments: tuple[str, ...],
    env: Mapping[str, str] | None,
    answers: tuple[int, ...] = (0,),
    given: bytes = b"",
) -> tuple[int, bytes]:
    base = {"PATH": "/usr/local/bin:/usr/bin:/bin:/opt/homebrew/bin", "LC_ALL": "C", "GIT_OPTIONAL_LOCKS": "0"}
    try:
        done = subprocess.run(
            ["git", "-C", str(where), *arguments],
            env={**base, **(env or {})},
            input=given,
            capture_output=True,
            timeout=TIMEOUT_S,
            pass_fds=held_locks(),
            check=False,
        )
    except FileNotFoundError as error:
        raise GitFailed(command=arguments[0], where=where, detail="git is not installed") from error
    except subprocess.TimeoutExpired as error:
        raise GitFailed(command=arguments[0], where=where, detail=f"no answer within {TIMEOUT_S:g} s") from error
    if done.returncode not in answers:
        detail = done.stderr.decode("utf-8", "replace").strip() or f"exit code {done.returncode}"
        raise GitFailed(command=arguments[0], where=where, detail=detail)
    return done.returncode, done.stdout


@contextmanager
def hold_lock(where: Path, what: str) -> Iterator[None]:
    """Hold the lock called `what` of the repository around `where` until the end of the block."""
    folder = store_folder(where) / "locks"
    folder.mkdir(parents=True, exist_ok=True)
    lock = os.open(folder / what, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    before = held_locks()
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        _held.locks = (*before, lock)
        yield
    finally:
        _held.locks = before
        os.close(lock)


def held_locks() -> tuple[int, ...]:
    """Return the locks that this thread holds, for the programs it starts."""
    locks: tuple[int, ...] = getattr(_held, "locks", ())
    return locks
