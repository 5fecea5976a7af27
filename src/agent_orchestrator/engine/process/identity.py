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
from collections.abc import Callable, Iterator
from pathlib import Path

from agent_orchestrator.engine.kinship import HAS_PROC, listed_by_ps, nonces_of
from agent_orchestrator.engine.process.folder import is_locked, read_birth

log = logging.getLogger(__name__)

HAS_PIDFD = HAS_PROC and hasattr(os, "pidfd_open")

_RETRY_S = 1.0
_SLICE = 256
"""Processes looked at before the event loop gets its turn again: about 2 ms."""


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
    living = {birth.nonce for birth in births if birth is not None}
    found = [(pid, nonce) for pid, nonces in _processes() for nonce in living.intersection(nonces)]
    return sum(signal_carrier(pid, nonce, signal.SIGTERM, pidfds=HAS_PIDFD) for pid, nonce in found)


class Sweep:
    """Finds all processes of launches by one pass over the process table, shared by everyone who asked before it began.

    The pass is cut into slices so that a thousand agents do not stall the loop.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._waiting: dict[str, Callable[[list[int]], None]] = {}
        self._asked: dict[str, Callable[[list[int]], None]] = {}
        self._found: dict[str, list[int]] = {}

    def ask(self, nonce: str, found: Callable[[list[int]], None]) -> None:
        """Calls `found` with the pids of that launch as they are from now on; asking twice is asking once."""
        self._waiting[nonce] = found
        if not self._asked:
            self._begin()

    def _begin(self) -> None:
        self._asked, self._waiting = {**self._asked, **self._waiting}, {}
        self._found = {nonce: [] for nonce in self._asked}
        self._loop.call_soon(self._go_on, _processes())

    def _go_on(self, rest: Iterator[tuple[int, list[str]]]) -> None:
        try:
            for looked, (pid, nonces) in enumerate(rest, 1):
                for nonce in nonces:
                    if nonce in self._found:
                        self._found[nonce].append(pid)
                if looked == _SLICE:
                    self._loop.call_soon(self._go_on, rest)
                    return
        except OSError as error:
            log.warning("The process table cannot be read (%s); trying again.", error)
            self._loop.call_later(_RETRY_S, self._begin)
            return
        asked, found, self._asked = self._asked, self._found, {}
        if self._waiting:
            self._begin()
        for nonce, answer in asked.items():
            answer(found[nonce])


def _processes() -> Iterator[tuple[int, list[str]]]:
    if not HAS_PROC:
        yield from listed_by_ps("-ax")
        return
    for name in os.listdir("/proc"):
        if name.isdecimal():
            yield int(name), nonces_of(int(name))
