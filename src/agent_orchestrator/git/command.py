"""Git commands: as a person's own git would do them, but for programs that others named; their failures, and their locks.

A lock is a kernel lock on a file, inherited by every git that is started while it is held: a git that outlives us goes on
holding it, and whoever repeats our work after a crash waits until it is done.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import subprocess
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from agent_orchestrator.beneath import open_folder, open_own, remove_beneath, replace_file
from agent_orchestrator.bounded import read_bounded
from agent_orchestrator.errors import GitFailed, Shortage, Unavailable, says_shortage
from agent_orchestrator.git.checkouts import Checkout, find_checkout
from agent_orchestrator.git.environment import current_environment, start_variables
from agent_orchestrator.git.leftovers import begin_mark, clear_locks, end_mark
from agent_orchestrator.git.programs import FLAGS, PLAIN, LocalPrograms, as_variables, judge_settings
from agent_orchestrator.git.repository import common_dir, repository_folder, store_folder, top_level
from agent_orchestrator.git.settings import HOW, Listed, find_settings

TIMEOUT_S = 300.0
SAID_CHARS = 600
INTENT_BYTES_MAX = 64 * 1024 * 1024

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
    return _split_names(_run(where, arguments, env)[1])


def give_names(where: Path, *arguments: str, names: Iterable[str], env: Mapping[str, str] | None = None) -> None:
    """Give file names, or lines about them, to a git command that reads them with `-z --stdin`; raises GitFailed."""
    _run(where, arguments, env, given=b"".join(os.fsencode(name) + b"\0" for name in names))


def select_names(where: Path, *arguments: str, names: Iterable[str]) -> list[str]:
    """Give file names to a git command that repeats some of them and fails where it repeats none; raises GitFailed."""
    given = b"".join(os.fsencode(name) + b"\0" for name in names)
    _, said = _run(where, (*arguments, "-z", "--stdin"), None, answers=(0, 1), given=given)
    return _split_names(said)


def _split_names(said: bytes) -> list[str]:
    return [name for name in os.fsdecode(said).split("\0") if name]


def read_bytes(where: Path, *arguments: str) -> bytes:
    """Run a git command and return its output as it is; raises GitFailed."""
    return _run(where, arguments, None)[1]


def guard_variables(where: Path, given: Mapping[str, str]) -> dict[str, str]:
    """Return the variables under which a git of another program runs no program that only the repository names."""
    _, programs = _surround(where, "config")
    return as_variables(programs.settings, given) if programs.settings else {}


def _run(
    where: Path,
    arguments: tuple[str, ...],
    env: Mapping[str, str] | None,
    answers: tuple[int, ...] = (0,),
    given: bytes = b"",
) -> tuple[int, bytes]:
    variables, programs = _surround(where, arguments[0])
    done = _start(where, arguments, {**variables, **(env or {})}, given)
    if done.returncode not in answers:
        raise _failure(where, arguments[0], done, programs)
    return done.returncode, done.stdout


def find_setting(where: Path, key: str) -> str | None:
    """Return what git's settings say last of a key, in lower case, as it stands there; None where they say nothing."""
    checkout, _, base = _meet(where, "config")
    if checkout is None:
        return None
    return next((one.value for one in reversed(_list_settings(where, checkout, base)) if one.key == key), None)


def _meet(where: Path, command: str) -> tuple[Checkout | None, bool, dict[str, str]]:
    """Return the working tree around a folder, whether its own settings are trusted, and the variables of a git in it."""
    checkout = find_checkout(where, command)
    trusted = checkout is not None and current_environment().is_trusted(repository_folder(checkout.common))
    base = start_variables(checkout.top if checkout is not None else None, trusted)
    if checkout is not None and checkout.ours:
        # Whatever becomes of the tree's `.git` from now on: this is where git works.
        base |= {"GIT_DIR": str(checkout.own), "GIT_WORK_TREE": str(checkout.top)}
    return checkout, trusted, base


def _surround(where: Path, command: str) -> tuple[dict[str, str], LocalPrograms]:
    """Return the variables of a git in a folder, once it is known whose folder that is."""
    checkout, trusted, base = _meet(where, command)
    if checkout is None or trusted:
        return {**base, **as_variables(PLAIN, base)}, LocalPrograms()
    programs = judge_settings(_list_settings(where, checkout, base))
    if (
        programs.worktree is not None
        and not checkout.ours
        and (checkout.own / programs.worktree).resolve() != checkout.top.resolve()
    ):
        detail = f"core.worktree says that the files are in {programs.worktree}: orc works in {checkout.top} only"
        raise GitFailed(command=command, where=where, detail=detail)
    return {**base, **as_variables((*PLAIN, *programs.settings), base)}, programs


def _list_settings(where: Path, checkout: Checkout, variables: Mapping[str, str]) -> tuple[Listed, ...]:
    def read() -> bytes:
        done = _start(where, HOW, variables)
        if done.returncode:
            raise _failure(where, "config", done)
        return done.stdout

    return find_settings(checkout.common, checkout.own, variables, read)


def _failure(
    where: Path, command: str, done: subprocess.CompletedProcess[bytes], programs: LocalPrograms | None = None
) -> GitFailed | Shortage:
    """Return what went wrong with a git: a shortage of the machine says nothing about the repository."""
    said = done.stderr.decode("utf-8", "replace").strip() or f"exit code {done.returncode}"
    if says_shortage(said):
        return Shortage(detail=f"`git {command}` in {where} ran short of something: {said}")
    if (folder := DUBIOUS.search(said)) is not None:
        said = f"the folder belongs to another user; if you trust it: `git config --global --add safe.directory {folder[1]}`"
    return GitFailed(command=command, where=where, detail=said + (programs.explain(said) if programs is not None else ""))


def _start(
    where: Path, arguments: tuple[str, ...], variables: Mapping[str, str], given: bytes = b""
) -> subprocess.CompletedProcess[bytes]:
    try:
        return subprocess.run(
            ["git", "-C", str(where), arguments[0], *FLAGS.get(arguments[0], ()), *arguments[1:]],
            env=variables,
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


DUBIOUS = re.compile(r"dubious ownership in repository at '(.+)'")
"""Git's words where a folder, as a container mounts it, is not the user's own: four lines, of which one says what to do."""
LEADS_ELSEWHERE = frozenset(("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_PREFIX", "GIT_COMMON_DIR"))
"""Variables of whoever starts us, a hook perhaps, that mean another repository than ours."""


def own_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the user's environment for a program of his that works on a repository of our choice."""
    return {name: value for name, value in environ.items() if name not in LEADS_ELSEWHERE}


def run_program(where: Path, argv: tuple[str, ...], environ: Mapping[str, str], given: str = "") -> str:
    """Run a program that speaks to others, with the user's environment; returns its output. Raises Unavailable.

    It inherits the locks that are held: one that outlives us goes on holding them.
    """
    try:
        done = subprocess.run(
            argv,
            cwd=where,
            env=own_environment(environ) | guard_variables(where, environ),
            input=given.encode(),
            capture_output=True,
            timeout=TIMEOUT_S,
            pass_fds=held_locks(),
            check=False,
        )
    except FileNotFoundError:
        raise Unavailable(detail=f"{argv[0]} is not installed, or not on the PATH; install it.") from None
    except subprocess.TimeoutExpired:
        raise Unavailable(detail=f"{argv[0]} {argv[1]} did not answer within {TIMEOUT_S:g} s; try again.") from None
    said = [done.stderr.decode("utf-8", "replace").strip(), done.stdout.decode("utf-8", "replace").strip()]
    if done.returncode:
        told = " ".join(" ".join(said).split()) or f"exit code {done.returncode}"
        raise Unavailable(detail=f"{argv[0]} {argv[1]} failed in {where}: {told[:SAID_CHARS]}")
    return said[1]


class HeldLock:
    """A lock that is held, with the intent of whoever held it before and did not come to an end."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self.left: bytes | None = None
        with contextlib.suppress(FileNotFoundError):
            self.left = read_bounded(file, INTENT_BYTES_MAX, root=file.parents[1])

    def intend(self, intent: bytes) -> None:
        """Write down what is about to be done, durably, so that whoever comes next can finish or undo it."""
        with open_folder(self._file.parents[1], self._file.parent) as folder:
            replace_file(folder, self._file.name, f".{self._file.name}", intent, sync=True)

    def settle(self) -> None:
        """Forget the intent: what it said is done, or undone."""
        remove_beneath(self._file.parents[1], self._file)
        self.left = None


def find_intent(where: Path, what: str) -> bool:
    """Return True if an intent stands unfinished, without waiting for its lock."""
    return (store_folder(where) / "locks" / f"{what}.intent").exists()


@contextmanager
def hold_lock(where: Path, what: str) -> Iterator[HeldLock]:
    """Hold the lock called `what` of the repository around `where` until the end of the block.

    Lock files that a git of a killed holder left are removed first.
    """
    folder = store_folder(where) / "locks"
    lock = open_own(folder.parent, folder / what)
    before = held_locks()
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        _held.locks = (*before, lock)
        since_ns = begin_mark(lock)
        if since_ns is not None and (top := top_level(where)) is not None and (common := common_dir(top)) is not None:
            clear_locks(common, since_ns)
        held = HeldLock(folder / f"{what}.intent")
        yield held
        held.settle()
        end_mark(lock)
    finally:
        _held.locks = before
        os.close(lock)


def held_locks() -> tuple[int, ...]:
    """Return the locks that this thread holds, for the programs it starts."""
    locks: tuple[int, ...] = getattr(_held, "locks", ())
    return locks
