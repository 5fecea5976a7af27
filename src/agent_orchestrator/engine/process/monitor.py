"""Watches all launches of a process with one timer: their ends, their limits, what they leave behind.

A launch is over when its lock is free and nothing that carries its nonce is left to stop; never because a pid is gone.
It runs on the event loop and blocks it for microseconds per launch; a thousand quiet agents cost a few stats a second.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
import os
import signal
from collections.abc import Callable
from functools import partial
from pathlib import Path

from agent_orchestrator.agents.adapter import Ending
from agent_orchestrator.core.failure import Failure, FailureKind
from agent_orchestrator.core.ids import EffectId
from agent_orchestrator.core.limits import LINGER_GRACE_S
from agent_orchestrator.core.units import say_duration
from agent_orchestrator.engine.clock import Clock
from agent_orchestrator.engine.process import folder as folders
from agent_orchestrator.engine.process.agenda import Agenda
from agent_orchestrator.engine.process.cgroups import remove_cgroup
from agent_orchestrator.engine.process.identity import Sweep
from agent_orchestrator.engine.process.watched import Watched, WatchPhase

log = logging.getLogger(__name__)

LOOK_MIN_S, LOOK_MAX_S = 0.02, 2.0
"""Between two looks at a launch's output: `yes` writes 800 MB/s, an agent that thinks writes nothing for minutes."""
LOOKS_PER_S = 150
"""More than this many looks a second are not spent on quiet launches, however many there are."""
POLL_MAX_S = 0.25
"""The same where only the lock can tell that a launch is over."""
STOP_LOOK_MIN_S, STOP_LOOK_MAX_S = 0.02, 0.5
STUBBORN_S = 10.0
"""After this long with KILL the log says that something cannot be ended; its unit stays occupied."""


class Monitor:
    """All launches under watch on one event loop."""

    def __init__(self, clock: Clock, boot: str, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self._clock, self._boot = clock, boot
        self._sweep = Sweep(loop)
        self._agenda = Agenda(clock, loop, self._look)
        self._watched: dict[str, Watched] = {}

    def add(self, watched: Watched) -> None:
        """Takes a launch under watch; its end is noticed at the earliest in the loop's next turn."""
        assert watched.effect not in self._watched, f"{watched.effect} is watched twice"
        self._watched[watched.effect] = watched
        self._sweep.expect()
        watched.interval_s = LOOK_MIN_S
        if watched.shim.pidfd is not None:
            self._follow(watched)
            self._agenda.set(watched, LOOK_MIN_S)
        else:
            self.loop.call_soon(self._look, watched)

    def stop(self, effect: EffectId, cause: Failure) -> None:
        """Begins the stop ladder; a launch that ended by itself a moment ago keeps its own ending."""
        watched = self._watched.get(effect)
        if watched is None or watched.phase is WatchPhase.STOPPING:
            return
        # A mark alone proves nothing while its shim lives: the program may have made it.
        over = watched.shim.ended or not folders.is_locked(watched.folder)
        if not over or not folders.read_marks(watched.folder).exit_codes:
            watched.cause = cause
        self._begin_stop(watched)

    def births(self) -> list[tuple[EffectId, folders.Birth]]:
        """Launches that are watched, and when they began, as far as that is known."""
        known = [(watched.effect, watched.shim.birth) for watched in self._watched.values()]
        return [(effect, birth) for effect, birth in known if birth is not None]

    def close(self) -> None:
        """Stops watching; the launches live on."""
        self._agenda.close()
        self._sweep.close()
        for watched in self._watched.values():
            watched.over = True
            self._unfollow(watched)
            watched.shim.release()
        self._watched.clear()

    # One look at one launch

    def _look(self, watched: Watched) -> None:
        self._try(watched, partial(self._look_closely, watched))

    def _try(self, watched: Watched, act: Callable[[], None]) -> None:
        """No shortage of the machine (descriptors, disk) may make us forget a launch."""
        if watched.over:
            return
        try:
            act()
        except OSError as error:
            log.warning("%s cannot be looked at (%s); trying again.", watched.effect, error)
            self._agenda.set(watched, LOOK_MAX_S)

    def _look_closely(self, watched: Watched) -> None:
        now_s = self._clock.monotonic_s()
        if watched.shim.pidfd is None and not watched.shim.gone:
            if watched.shim.find(watched.folder):
                self._follow(watched)
            elif not watched.shim.child and not folders.is_locked(watched.folder):
                watched.shim.gone = True
        if watched.phase is WatchPhase.STOPPING:
            self._go_on_stopping(watched, now_s)
        elif watched.shim.gone:
            self._settle(watched, now_s)
        else:
            self._check_limits(watched, now_s)

    def _check_limits(self, watched: Watched, now_s: float) -> None:
        size, limits = folders.output_bytes(watched.files), watched.limits
        grown, watched.size = size - watched.size, size
        if grown > 0:
            watched.grew_s = now_s
            watched.finished = limits.finished is not None and limits.finished()
            if limits.grew is not None and (why := limits.grew()) is not None:
                self.stop(watched.effect, why)
                return
        wait_s = min(_left_s(watched, now_s), 0.0 if size > limits.output_limit_bytes else math.inf)
        if wait_s <= 0 and _hangs(watched, now_s):
            # Marked first: should we die now, whoever collects it must not take our signal for its failure.
            with contextlib.suppress(FileNotFoundError):  # It took its folder away: it is stopped all the same.
                folders.leave_mark(watched.folder, folders.HUNG)
            self._begin_stop(watched)
            return
        if wait_s <= 0:
            self.stop(watched.effect, _exceeded(watched, now_s))
            return
        look_s = limits.look_s() if limits.look_s is not None else math.inf
        if grown > 0:  # at this rate, look again when a quarter of what is left is written
            left_s = (limits.output_limit_bytes - size) / grown * watched.interval_s
            watched.interval_s = max(LOOK_MIN_S, min(left_s / 4, watched.interval_s * 2, LOOK_MAX_S, look_s))
        else:
            watched.interval_s = min(watched.interval_s * 2, max(LOOK_MAX_S, len(self._watched) / LOOKS_PER_S), look_s)
        longest_s = watched.interval_s if watched.shim.pidfd is not None else min(watched.interval_s, POLL_MAX_S)
        self._agenda.set(watched, min(wait_s, longest_s))

    # The end

    def _follow(self, watched: Watched) -> None:
        assert watched.shim.pidfd is not None
        self.loop.add_reader(watched.shim.pidfd, self._shim_ended, watched)

    def _unfollow(self, watched: Watched) -> None:
        if watched.shim.pidfd is not None:
            self.loop.remove_reader(watched.shim.pidfd)

    def _shim_ended(self, watched: Watched) -> None:
        self._unfollow(watched)
        watched.shim.reap()
        self._agenda.drop(watched)  # Looked at now: a date that is due meanwhile would only repeat it.
        self._agenda.slices.now(partial(self._look, watched))

    def _settle(self, watched: Watched, now_s: float) -> None:
        """The shim is gone: the launch is over, unless it left something behind."""
        if watched.phase is WatchPhase.LINGERING and now_s >= watched.turn_s:
            self._begin_stop(watched)
        elif watched.nonce is None or not watched.is_of(self._boot) or watched.shim.left_nothing():
            self._finish(watched)
        elif folders.is_locked(watched.folder):
            self._linger(watched, now_s)
        else:  # also what left group and session and let go of the lock carries the nonce
            self._find_rest(watched, watched.nonce)

    def _linger(self, watched: Watched, now_s: float) -> None:
        if watched.phase is WatchPhase.RUNNING:
            watched.phase = WatchPhase.LINGERING
            watched.turn_s = now_s + LINGER_GRACE_S
            watched.interval_s = STOP_LOOK_MIN_S
        self._stop_look(watched)

    def _find_rest(self, watched: Watched, nonce: str) -> None:
        self._sweep.ask(
            nonce, lambda pids: self._agenda.slices.add(partial(self._try, watched, partial(self._swept, watched, pids)))
        )

    def _swept(self, watched: Watched, pids: list[int]) -> None:
        now_s = self._clock.monotonic_s()
        clear = not pids and watched.shim.gone and not folders.is_locked(watched.folder)
        unmarked = watched.shim.members() if clear else []
        if clear and not unmarked:
            self._finish(watched)
        elif watched.phase is WatchPhase.STOPPING:
            # What has no mark may be cleaning up after those that had one, as the monitor of a container does.
            if pids or watched.has_cleaned_up(now_s):
                watched.signal_found(pids or unmarked, self._stage(watched, now_s))
            self._stop_look(watched)
        elif watched.shim.gone:
            self._linger(watched, now_s)

    def _finish(self, watched: Watched) -> None:
        try:
            taken = folders.take(watched.folder)
        except FileNotFoundError:  # never locked, or the whole folder was deleted
            taken = folders.Taken(-1, folders.read_marks(watched.folder))
        if taken is None:  # somebody looks at it at this very moment, or something without a mark holds it
            self._linger(watched, self._clock.monotonic_s())
            return
        lock = taken.lock
        try:
            unstarted = folders.find_unstarted(watched.folder, watched.shim.code) if watched.cause is None and lock >= 0 else ""
            ending = self._ending(watched, taken) if not unstarted else self._unstarted(watched, lock, unstarted)
        finally:
            if lock >= 0:
                os.close(lock)
        watched.over = True
        self._unfollow(watched)
        watched.shim.release()
        if watched.shim.birth is not None:
            remove_cgroup(watched.shim.birth.cgroup, watched.shim.birth.nonce)
        del self._watched[watched.effect]
        self._agenda.slices.add(partial(watched.done, ending))

    def _ending(self, watched: Watched, taken: folders.Taken) -> Ending:
        """Return what became of it, concluded while holding the lock, if there is one."""
        folder, birth, (lock, marks) = watched.folder, watched.shim.birth or folders.read_birth(watched.folder), taken
        if birth is not None and (lock < 0 or not folders.holds_birth(lock)):
            with contextlib.suppress(OSError):
                folders.keep_birth(folder, birth)
            marks = folders.read_marks(folder)
        now_us = self._clock.now_us()
        started_us = birth.started_us if birth is not None else now_us
        ended_us = now_us
        cause = watched.cause
        after_result = marks.hung and cause is None
        code, forged = _exit_code(watched, marks)
        if code is not None:
            ended_us = dict(marks.exits).get(code) or now_us
        elif cause is None and not after_result:
            named = marks.begun and folders.read_pid(folder) is not None
            cause = Failure(kind=FailureKind.LOST, message=forged or self._why_lost(folder, birth, named=named))
        if not marks.ended or code is None:
            with contextlib.suppress(OSError):  # on a full disk, or without its folder, it is over all the same
                folders.leave_mark(folder, folders.LOST if marks.ended else folders.VOID)
        return Ending(
            exit_code=code, cause=cause, started_us=started_us, ended_us=max(started_us, ended_us),
            out=folder / folders.OUT, err=folder / folders.ERR, warnings=_warnings(watched, forged), after_result=after_result,
        )  # fmt: skip

    def _unstarted(self, watched: Watched, lock: int, why: str) -> Ending:
        """The machine was too short of something for the program to be started: the launch is as if it had never begun."""
        folders.reopen(watched.folder, lock)
        now_us, (out, err) = self._clock.now_us(), watched.files
        return Ending(
            exit_code=None, cause=None, started_us=now_us, ended_us=now_us, out=Path(out), err=Path(err), unstarted=why
        )  # fmt: skip

    def _why_lost(self, folder: Path, birth: folders.Birth | None, *, named: bool) -> str:
        if (link := folders.find_link(folder)) is not None:
            return f"The program was lost: {link} is a link that somebody planted, and nothing is read or written through one."
        if birth is not None and birth.boot != self._boot:
            return "The program was lost: the machine was restarted while it ran."
        if not named:
            return "The program was lost: it is not known whether it ever started."
        return "The program was lost: it vanished without an exit code, killed from outside or for lack of memory."

    # The stop ladder: TERM to the group, grace, KILL; then whatever else carries the nonce

    def _begin_stop(self, watched: Watched) -> None:
        watched.phase = WatchPhase.STOPPING
        watched.turn_s = self._clock.monotonic_s() + watched.limits.grace_s
        watched.interval_s = STOP_LOOK_MIN_S
        self._look(watched)

    def _go_on_stopping(self, watched: Watched, now_s: float) -> None:
        number = self._stage(watched, now_s)
        clear = watched.shim.gone and not folders.is_locked(watched.folder)
        first = watched.signalled != number
        if not clear and (first or number == signal.SIGKILL):
            watched.signal_group(number)
            watched.signalled = number if watched.nonce is not None else None
        if clear and watched.nonce is None:
            self._finish(watched)
            return
        if watched.nonce is not None and (clear or first or number == signal.SIGKILL):
            self._find_rest(watched, watched.nonce)
        if number == signal.SIGKILL and now_s - watched.turn_s > STUBBORN_S and watched.interval_s < LOOK_MAX_S:
            log.warning("%s cannot be stopped: a process that holds %s is out of reach", watched.effect, watched.folder)
            watched.interval_s = LOOK_MAX_S
        self._stop_look(watched)

    def _stage(self, watched: Watched, now_s: float) -> signal.Signals:
        return signal.SIGTERM if now_s < watched.turn_s else signal.SIGKILL

    def _stop_look(self, watched: Watched) -> None:
        wait_s = watched.interval_s
        if wait_s < STOP_LOOK_MAX_S:
            watched.interval_s = min(wait_s * 2, STOP_LOOK_MAX_S)
        left_s = watched.turn_s - self._clock.monotonic_s()
        self._agenda.set(watched, min(wait_s, left_s) if left_s > 0 else wait_s)


def _exit_code(watched: Watched, marks: folders.Marks) -> tuple[int | None, str]:
    """Return the code that the shim left, and what is wrong with the marks where it is not alone.

    By the kernel's word where the shim was our child. Without that one mark is believed and several are not: one of them was
    made by somebody else.
    """
    told = ", ".join(f"exit.{code}" for code in marks.exit_codes)
    forged = f"There are marks of its end that it did not leave when it ended ({told}): somebody else made them."
    known = watched.shim.code
    if known is None:
        return marks.exit_code, forged if len(marks.exit_codes) > 1 else ""
    if known < 0 or not marks.exit_codes:
        return None, forged if marks.exit_codes else ""
    return known, forged if marks.exit_codes != (known,) else ""


def _left_s(watched: Watched, now_s: float) -> float:
    """Return how long the launch may still run, and be silent."""
    limits, left_s = watched.limits, math.inf
    if limits.timeout_s is not None:
        left_s = watched.started_s + limits.timeout_s - now_s
    if limits.budget_s is not None:
        left_s = min(left_s, watched.started_s + limits.budget_s - now_s)
    if limits.idle_timeout_s is not None:
        left_s = min(left_s, watched.grew_s + limits.idle_timeout_s - now_s)
    if watched.finished:
        left_s = min(left_s, watched.grew_s + limits.result_grace_s - now_s)
    return left_s


def _hangs(watched: Watched, now_s: float) -> bool:
    """Say whether it is done, by its own account, and only does not exit."""
    return watched.finished and now_s >= watched.grew_s + watched.limits.result_grace_s


def _exceeded(watched: Watched, now_s: float) -> Failure:
    """Which limit was reached, in a sentence."""
    limits = watched.limits
    if watched.size > limits.output_limit_bytes:
        limit = f"{limits.output_limit_bytes / 2**20:g} MiB"
        return Failure(kind=FailureKind.OUTPUT_LIMIT, message=f"Stopped after writing more than {limit}, its output limit.")
    if limits.timeout_s is not None and now_s >= watched.started_s + limits.timeout_s:
        limit = say_duration(limits.timeout_s)
        return Failure(kind=FailureKind.TIMEOUT, message=f"Stopped after running for {limit}, its time limit.")
    if limits.budget_s is not None and now_s >= watched.started_s + limits.budget_s:
        over = f"it ran out of time after {say_duration(limits.budget_s)}"
        return Failure(kind=FailureKind.BUDGET, message=f"Stopped: {over}.")
    assert limits.idle_timeout_s is not None
    limit = say_duration(limits.idle_timeout_s)
    return Failure(kind=FailureKind.IDLE, message=f"Stopped after {limit} without output, its idle limit.")


def _warnings(watched: Watched, forged: str) -> tuple[str, ...]:
    warnings = [forged] if forged else []
    if watched.cause is None and watched.reached:
        count = len(watched.reached)
        left = "A process that was" if count == 1 else f"{count} processes that were"
        warnings.append(f"{left} left running by the program had to be stopped.")
    if watched.unreachable:
        pids = ", ".join(str(pid) for pid in sorted(watched.unreachable))
        warnings.append(f"Processes that could not be stopped (not permitted): {pids}.")
    return tuple(warnings)
