"""Plays trials in processes of their own, each trial in an empty folder; one that does not end is ended, and counts as broken.

An error raised by an alarm is not enough: an event loop catches what a callback raises and goes on. So the clock is kept
out here, and a process that is over its time is killed with everything in its group.
"""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
import time
import traceback
from collections.abc import Callable, Iterable, Iterator
from contextlib import nullcontext, suppress
from functools import partial
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from pathlib import Path

from proof.broken import broken
from proof.kinds import KINDS
from proof.trial import Outcome, Trial

FAULT_CHARS = 4_000
MEMORY = Path("/dev/shm")
"""A file system in memory: what is simulated needs no disk, and is twice as quick without."""
GRACE_S = 5.0
PlayTrial = Callable[[Trial, Path], int]


def play_trial(trial: Trial, folder: Path, broken_by: str = "") -> int:
    """Play one trial in a folder that does not exist yet, with an engine that is broken on purpose if one is named."""
    with broken(broken_by) if broken_by else nullcontext():
        return KINDS[trial.kind].play(trial, folder)


def play(trial: Trial, play_one: PlayTrial = play_trial) -> Outcome:
    """Play one trial here; whatever it raises is its fault."""
    in_memory = KINDS[trial.kind].in_memory and os.access(MEMORY, os.W_OK)
    folder = Path(tempfile.mkdtemp(prefix="proof-", dir=MEMORY if in_memory else None))
    try:
        return Outcome(trial, play_one(trial, folder / "trial"))
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt):
            raise
        return Outcome(trial, 1, traceback.format_exc()[-FAULT_CHARS:])
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _work(orders: Connection, play_one: PlayTrial) -> None:
    """Play what is ordered until there is no more."""
    os.setpgid(0, 0)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    orders.send(None)
    with suppress(EOFError, BrokenPipeError):
        while True:
            orders.send(play(orders.recv(), play_one))


class _Worker:
    """A process that plays one trial after another."""

    def __init__(self, play_one: PlayTrial) -> None:
        self.orders, theirs = get_context("spawn").Pipe()
        self._process = get_context("spawn").Process(target=_work, args=(theirs, play_one))
        self._process.start()
        theirs.close()
        self.orders.recv()  # It is there: what it took to come is no trial's time.
        self.trial: Trial | None = None
        self.max_s = self.deadline_s = 0.0

    def give(self, trial: Trial, max_s: float) -> None:
        """Let it play a trial."""
        self.trial, self.max_s, self.deadline_s = trial, max_s, time.monotonic() + max_s
        self.orders.send(trial)

    def take(self) -> Outcome:
        """Take the outcome of its trial; a process that died without a word is one, too."""
        trial, self.trial = self.trial, None
        assert trial is not None
        try:
            outcome: Outcome = self.orders.recv()
        except (EOFError, OSError):
            self._process.join()
            return Outcome(trial, 1, f"the process that played it died: exit code {self._process.exitcode}")
        return outcome

    @property
    def alive(self) -> bool:
        """Return True while it can be given a trial."""
        return self._process.is_alive()

    def end(self) -> None:
        """End it and everything in its group."""
        self.orders.close()
        if self.trial is None:
            self._process.join(GRACE_S)
        if self._process.is_alive() and self._process.pid is not None:
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.kill()
        self._process.join()


def play_all(
    trials: Iterable[Trial], workers: int | None = None, play_one: PlayTrial = play_trial, max_s: float | None = None
) -> Iterator[Outcome]:
    """Play the trials and yield their outcomes as they come."""
    rest = iter(trials)
    staff: list[_Worker] = []
    try:
        while True:
            staff = [worker for worker in staff if worker.alive or worker.trial]
            idle = [worker for worker in staff if worker.trial is None]
            while (idle or len(staff) < (workers or os.cpu_count() or 1)) and (trial := next(rest, None)) is not None:
                if not idle:
                    idle.append(_Worker(play_one))
                    staff += idle
                idle.pop().give(trial, max_s or KINDS[trial.kind].max_s)
            if not any(worker.trial for worker in staff):
                return
            yield from _collect(staff)
    finally:
        for worker in staff:
            worker.end()


def _collect(staff: list[_Worker]) -> Iterator[Outcome]:
    """Wait for the next outcomes; whoever is over its time is ended."""
    busy = {worker.orders: worker for worker in staff if worker.trial}
    left_s = min(worker.deadline_s for worker in busy.values()) - time.monotonic()
    ready = wait(list(busy), max(0.0, left_s))
    yield from (busy[connection].take() for connection in busy if connection in ready)
    for worker in busy.values():
        if worker.trial is not None and time.monotonic() >= worker.deadline_s:
            yield Outcome(worker.trial, 1, f"it did not end within {worker.max_s:g} s")
            worker.end()
            worker.trial = None


def play_broken(name: str) -> PlayTrial:
    """Return a way to play trials with an engine that is broken on purpose."""
    return partial(play_trial, broken_by=name)
