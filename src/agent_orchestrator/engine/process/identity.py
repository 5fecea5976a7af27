"""Which processes belong to a launch: those that carry its nonce in the environment they were started with.

A pid is only a hint. One nonce stands for what would otherwise be compared piece by piece (start ticks, boot id,
pid namespace): it is 128 random bits, so no other process carries it, after a reboot and in another namespace neither,
and unlike start ticks it is there before the process is. A zombie has no environment: it is dead.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from agent_orchestrator.engine.kinship import HAS_PROC, listed_by_ps, nonces_of, read_nonces, read_proc
from agent_orchestrator.engine.process.cgroups import list_members
from agent_orchestrator.engine.process.folder import Birth, is_locked, read_birth

log = logging.getLogger(__name__)

HAS_PIDFD = HAS_PROC and hasattr(os, "pidfd_open")

SETTLED_S = 1.0
"""A process that is older has become the program that it was made for, and what it was started with is known for good."""

AHEAD_S, AHEAD_PASSES = 2 * SETTLED_S, 2
"""After a start the table is gone through so often ahead of the next question, and so far apart: what is new there the first
time has settled the second time."""
_RETRY_S = 1.0
_SLICE_S, _SLICE = 0.002, 32
"""Time that a pass goes on before the event loop gets its turn again, and the processes after which the clock is read."""


def carries(pid: int, nonce: str) -> bool:
    """Say whether this living process was started for that launch."""
    if HAS_PROC:
        return nonce in nonces_of(pid)
    return any(nonce in nonces for found, nonces in listed_by_ps(f"-p{pid}") if found == pid)


def signal_carrier(pid: int, nonce: str, number: int, *, pidfds: bool) -> bool:
    """Signals the process if it is (still) of that launch; False when it is out of our reach."""
    try:
        if not pidfds:
            if carries(pid, nonce):
                os.kill(pid, number)
            return True
        pidfd = os.pidfd_open(pid)
        try:
            # Looked at only after the pidfd pins the process: the pid cannot change hands in between.
            if carries(pid, nonce):
                signal.pidfd_send_signal(pidfd, number)
        finally:
            os.close(pidfd)
    except ProcessLookupError:
        return True
    except PermissionError:
        return False
    return True


def signal_launches(run: Path) -> int:
    """Tell every process of a run's living launches to end, where nothing can be written; return how many were told."""
    births = [read_birth(folder) for folder in run.iterdir() if is_locked(folder)] if run.is_dir() else []
    found = list_carriers(birth for birth in births if birth is not None)
    return sum(signal_carrier(pid, nonce, signal.SIGTERM, pidfds=HAS_PIDFD) for pid, nonce in found)


def list_carriers(births: Iterable[Birth]) -> list[tuple[int, str]]:
    """Return the living processes of some launches, each with the nonce of its launch."""
    wanted = {birth.nonce: birth.cgroup for birth in births}
    if not wanted:
        return []
    found = {(pid, nonce) for pid, carried in ProcessTable().list_all() for nonce in wanted.keys() & carried}
    return sorted(found | {(pid, nonce) for nonce, cgroup in wanted.items() for pid in list_members(cgroup, nonce)})


_Seen = tuple[int, float, list[str] | None]
"""A process: the number of its folder in /proc, when it was first seen, and what it carries once it has settled."""
_NEW: _Seen = (-1, 0.0, None)


class ProcessTable:
    """The processes of the machine, and the nonces that each was started with.

    The environment of a process is read until it has settled; then it is known by its id and the number of its folder in
    /proc, which no other process with that id has. One that takes the nonces off later is still listed.
    """

    def __init__(self, now_s: Callable[[], float] = lambda: 0.0) -> None:
        self._now_s = now_s
        self._known: dict[str, _Seen] = {}

    def list_all(self) -> Iterator[tuple[int, list[str]]]:
        """Yield every living process and its nonces; none for one that is gone, a zombie, or somebody else's."""
        if not HAS_PROC:
            yield from listed_by_ps("-ax")
            return
        before, self._known = self._known, {}
        with os.scandir("/proc") as entries:
            for entry in entries:
                if (name := entry.name).isdecimal():
                    inode, first_s, nonces = before.get(name, _NEW)
                    if inode != entry.inode():
                        inode, first_s, nonces = entry.inode(), self._now_s(), None
                    if nonces is None:
                        nonces, settled = self._read(name, first_s)
                        self._known[name] = (inode, first_s, nonces if settled else None)
                    else:
                        self._known[name] = (inode, first_s, nonces)
                    yield int(name), nonces

    def _read(self, name: str, first_s: float) -> tuple[list[str], bool]:
        """The nonces of a process, and whether they are known for good."""
        environ = read_proc(f"/proc/{name}/environ") or b""
        return read_nonces(environ), self._now_s() - first_s >= SETTLED_S and bool(environ.strip(b"\0"))


class Sweep:
    """Finds all processes of launches by one pass over the process table, shared by everyone who asked before it began.

    The pass is cut into slices so that a thousand agents do not stall the loop. To read the environments of two thousand
    processes takes 50 ms all the same: after a start they are read ahead, while nobody waits for an answer.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._table = ProcessTable(loop.time)
        self._waiting: dict[str, Callable[[list[int]], None]] = {}
        self._asked: dict[str, Callable[[list[int]], None]] = {}
        self._found: dict[str, list[int]] = {}
        self._under_way = False
        self._ahead = 0
        self._timer: asyncio.TimerHandle | None = None

    def ask(self, nonce: str, found: Callable[[list[int]], None]) -> None:
        """Calls `found` with the pids of that launch as they are from now on; asking twice is asking once."""
        self._waiting[nonce] = found
        if not self._under_way:
            self._begin()

    def expect(self) -> None:
        """Something was started, and its end will be asked about."""
        self._ahead = AHEAD_PASSES if HAS_PROC else 0  # What `ps` lists is not remembered.
        self._look_ahead_later()

    def close(self) -> None:
        """Looks ahead no more."""
        self._ahead = 0
        if self._timer is not None:
            self._timer.cancel()

    def _look_ahead_later(self) -> None:
        if self._ahead and self._timer is None:
            self._timer = self._loop.call_later(AHEAD_S, self._look_ahead)

    def _look_ahead(self) -> None:
        self._timer = None
        self._ahead -= 1
        self._look_ahead_later()
        if not self._under_way:
            self._begin()

    def _begin(self) -> None:
        self._under_way = True
        self._asked, self._waiting = {**self._asked, **self._waiting}, {}
        self._found = {nonce: [] for nonce in self._asked}
        self._loop.call_soon(self._go_on, self._table.list_all())

    def _go_on(self, rest: Iterator[tuple[int, list[str]]]) -> None:
        until_s = self._loop.time() + _SLICE_S
        try:
            for looked, (pid, nonces) in enumerate(rest, 1):
                for nonce in nonces:
                    if nonce in self._found and (not HAS_PROC or carries(pid, nonce)):
                        self._found[nonce].append(pid)
                if looked % _SLICE == 0 and self._loop.time() >= until_s:
                    self._loop.call_soon(self._go_on, rest)
                    return
        except OSError as error:
            log.warning("The process table cannot be read (%s); trying again.", error)
            self._loop.call_later(_RETRY_S, self._begin)
            return
        self._under_way = False
        asked, found, self._asked = self._asked, self._found, {}
        if self._waiting:
            self._begin()
        for nonce, answer in asked.items():
            answer(found[nonce])
