"""Facts that the system tells about processes: the marks of launches they carry, their parents and their sessions.

`/proc` where there is one, `ps` where there is none (macOS). It imports no event loop: `orc approve` asks it too.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from typing import NamedTuple

HAS_PROC = os.path.exists("/proc/self/environ")

NONCE_VARIABLE = "ORC_LAUNCH"
"""In the environment of everything a launch starts; nested orchestrators append theirs after a colon."""

CGROUP = "orc-"
"""Begins the name of a launch's cgroup, where it has one; its nonce follows."""

ANCESTORS_MAX = 256

_MARK = f"{NONCE_VARIABLE}=".encode()
_READ_LIMIT_BYTES = 4 * 1024 * 1024
_OUT_OF_SIGHT = (FileNotFoundError, ProcessLookupError, PermissionError)
"""Gone, or somebody else's. Anything else (no descriptors left) must not pass for "not there"."""


class Relative(NamedTuple):
    """A process that this one descends from, or that leads its session or group, and every word that could be a nonce."""

    pid: int
    nonces: list[str]


def nonces_of(pid: int) -> list[str]:
    """The nonces in the environment that a process was started with, and those of its cgroups, which no `env -i` takes off.

    None when it is gone or a zombie; of somebody else's, only those of its cgroups.
    """
    return [*read_nonces(read_proc(f"/proc/{pid}/environ") or b""), *_cgroup_nonces(pid)]


def _cgroup_nonces(pid: int) -> list[str]:
    told = (read_proc(f"/proc/{pid}/cgroup") or b"").decode("utf-8", "replace")
    path = next((line for line in told.splitlines() if line.startswith("0::")), "")
    found = [part.removeprefix(CGROUP) for part in path.split("/") if part.startswith(CGROUP)]
    return found if found and _state(pid) not in ("", "X", "Z") else []


def read_nonces(environ: bytes) -> list[str]:
    """The nonces in an environment as the kernel shows it."""
    start = 0 if environ.startswith(_MARK) else environ.find(b"\0" + _MARK) + 1
    if start == 0 and not environ.startswith(_MARK):
        return []
    value = environ[start + len(_MARK) :].split(b"\0", 1)[0]
    return value.decode("ascii", "replace").split(":")


def relatives(of: int | None = None) -> Iterator[Relative]:
    """A process, this one without another, those it descends from, and the leaders of its session and group, while they live.

    Their arguments count too: the shim's name its nonce, and are seen where the environment is another user's.
    """
    if not HAS_PROC:
        yield from _relatives_by_ps()
        return
    pid, seen = of or os.getpid(), set[int]()
    while pid > 0 and len(seen) < ANCESTORS_MAX:
        seen.add(pid)
        yield Relative(pid, [*nonces_of(pid), *_arguments(pid)])
        pid = _parent(pid)
    for leader in _leaders(of or 0) - seen:
        yield Relative(leader, [*nonces_of(leader), *_arguments(leader)])


def _leaders(pid: int) -> set[int]:
    try:
        return {os.getsid(pid), os.getpgid(pid)}
    except OSError:
        return set()


def leaderless_session(of: int = 0) -> int | None:
    """The id of a process' session when the process that made it is gone; None while it lives."""
    try:
        session = os.getsid(of)
    except OSError:
        return None
    try:
        os.kill(session, 0)
    except ProcessLookupError:
        return session
    except PermissionError:
        return None
    return session if HAS_PROC and _state(session) == "Z" else None


def listed_by_ps(which: str) -> Iterator[tuple[int, list[str]]]:
    """Return where there is no /proc: `ps` shows arguments (the shim's nonce) and, of most programs, the environment."""
    return read_ps(_ps(which, "pid=,command="))


def read_ps(listing: str) -> Iterator[tuple[int, list[str]]]:
    """The pid and every word that could be a nonce, line by line."""
    for line in listing.splitlines():
        pid, _, command = line.strip().partition(" ")
        if pid.isdecimal():
            yield int(pid), _words(command)


def _relatives_by_ps() -> Iterator[Relative]:
    parents, words = dict[int, int](), dict[int, list[str]]()
    for line in _ps("-ax", "pid=,ppid=,command=").splitlines():
        number, parent, *rest = line.split(None, 2)
        if number.isdecimal() and parent.isdecimal():
            parents[int(number)], words[int(number)] = int(parent), _words(rest[0] if rest else "")
    pid, seen = os.getpid(), set[int]()
    while pid in words and pid not in seen:
        seen.add(pid)
        yield Relative(pid, words[pid])
        pid = parents[pid]
    for leader in {os.getsid(0), os.getpgrp()} - seen:
        yield Relative(leader, words.get(leader, []))


def _ps(which: str, columns: str) -> str:
    listing = subprocess.run(["ps", which, "-wwE", "-o", columns], capture_output=True, check=False)
    return listing.stdout.decode("utf-8", "replace")


def _words(command: str) -> list[str]:
    words = (word.removeprefix(f"{NONCE_VARIABLE}=") for word in command.split())
    return [part for word in words for part in word.split(":")]


def _arguments(pid: int) -> list[str]:
    return (read_proc(f"/proc/{pid}/cmdline") or b"").decode("utf-8", "replace").split("\0")


def _stat(pid: int) -> list[str]:
    """The fields of /proc/PID/stat from the state on; the name before them may hold anything."""
    return (read_proc(f"/proc/{pid}/stat") or b"").decode("utf-8", "replace").rpartition(")")[2].split()


def _state(pid: int) -> str:
    return next(iter(_stat(pid)), "")


def _parent(pid: int) -> int:
    fields = _stat(pid)
    return int(fields[1]) if len(fields) > 1 else 0


def read_proc(path: str) -> bytes | None:
    """Read a file of /proc; None when its process is gone, or somebody else's."""
    try:
        opened = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except _OUT_OF_SIGHT:
        return None
    try:
        parts = []
        size = 0
        while size < _READ_LIMIT_BYTES and (part := os.read(opened, 131_072)):
            parts.append(part)
            size += len(part)
        return b"".join(parts)
    except _OUT_OF_SIGHT:
        return None
    finally:
        os.close(opened)
