"""ProcessLaunches: starts, finds again, watches and stops real programs.

Order of a start: lock, mark, spawn. Starting what was started before starts nothing: `watch` adopts or collects it.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import shutil
import stat
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path

from agent_orchestrator.agents.adapter import Ending
from agent_orchestrator.core.failure import Failure
from agent_orchestrator.core.ids import EffectId, RunId, launch_folder, launched_in
from agent_orchestrator.core.units import latest_ns
from agent_orchestrator.engine.clock import Clock
from agent_orchestrator.engine.launches import CannotStart, Order, Standing, Watch
from agent_orchestrator.engine.process import folder as folders
from agent_orchestrator.engine.process.cgroups import make_cgroup, remove_cgroup
from agent_orchestrator.engine.process.identity import HAS_PIDFD
from agent_orchestrator.engine.process.monitor import Monitor
from agent_orchestrator.engine.process.newcomers import Given, ids_given
from agent_orchestrator.engine.process.shim import prepare_engine, spawn
from agent_orchestrator.engine.process.watched import Shim, Watched
from agent_orchestrator.errors import Shortage, is_shortage
from agent_orchestrator.git.worktree import reach_tree

PLANTED = "planted-"


class ProcessLaunches:
    """All launches under one root directory; see the port `engine.launches.Launches`.

    Without `pidfds` (macOS) ends are found by polling the locks; without `cgroups` what took its mark off is not found.
    """

    def __init__(self, root: Path, clock: Clock, boot: str, *, pidfds: bool = HAS_PIDFD, cgroups: bool = True) -> None:
        self._root, self._clock, self._boot, self._pidfds, self._cgroups = root.absolute(), clock, boot, pidfds, cgroups
        self._started: dict[str, Shim] = {}
        self._stopped: set[str] = set()
        """Launches with the mark of a stop, as far as this process has seen."""
        self._given: Given | None = None
        self._monitor: Monitor | None = None
        prepare_engine()

    def directory(self, effect: EffectId) -> Path:
        """The launch's own; nothing is created."""
        return _folder_of(self._root, effect)

    def standing(self, effect: EffectId, *, same_boot: bool) -> Standing:
        """Return what became of a launch that an earlier engine may have started."""
        folder = self.directory(effect)
        try:
            taken = folders.take(folder)
        except FileNotFoundError:
            # The lock comes before every mark, and goes only by becoming one, or by a hand that is not ours. After a reboot a
            # mark may have been lost, so nothing proves that it never ran.
            untouched = not folders.has(folder, folders.OUT) and folders.find_link(folder) is None
            return Standing.NEW if same_boot and untouched else Standing.OVER
        if taken is None:
            return Standing.ALIVE
        os.close(taken.lock)
        return Standing.OVER if taken.marks.ended or not same_boot else Standing.NEW

    def claim(self, effect: EffectId) -> Path | None:
        """Moves away what somebody put where a launch is to be made for the first time: marks there would pass for its end."""
        folder = self.directory(effect)
        if not os.path.lexists(folder):
            return None
        planted = folder.with_name(f"{PLANTED}{os.urandom(4).hex()}.{folder.name.replace('~', '-')}")
        try:
            folder.rename(planted)
        except FileNotFoundError:
            return None
        return planted

    def start(self, order: Order) -> None:
        """Locks, marks and spawns. Raises Shortage or CannotStart, then nothing runs."""
        _check_startable(order)
        folder = self.directory(order.effect)
        try:
            taken = folders.take(folder, create=True)
            if taken is None:
                return
            try:
                if not taken.marks.ended:
                    self._spawn(order, folder, taken.lock)
            finally:
                os.close(taken.lock)
        except OSError as error:
            raise refusal(error, order.argv[0]) from error

    def living(self, run: RunId) -> list[EffectId]:
        """Launches of a run whose lock is held, in order."""
        launches = sorted((self._root / run).glob("*~*"))
        return [launched_in(run, folder.name) for folder in launches if folders.is_locked(folder)]

    def unsettled(self, run: RunId) -> list[EffectId]:
        """Launches of a run whose lock is held, or that were stopped and are not settled, in order."""
        found = []
        for folder in sorted((self._root / run).glob("*~*")):
            effect = launched_in(run, folder.name)
            if folders.has(folder, folders.STOPPED):
                self._stopped.add(effect)
            if effect in self._stopped or folders.is_locked(folder):
                found.append(effect)
        return found

    def alive_between(self, since_ns: int, until_ns: int, run: RunId | None = None) -> EffectId | None:
        """A launch that lived then, as far as that can be told; one whose end is not proven counts from its start.

        One that took its folder away is alive while it is watched here; one behind a link may have lived at any time.
        What it changed in its first moment may bear a time before its start, which the finer clock of the system says.
        """
        latest_us = latest_ns(until_ns) // 1000
        for effect, begun in self._monitor.births() if self._monitor is not None else ():
            taken = begun.started_us <= latest_us and folders.read_birth(self.directory(effect)) is None
            if taken and run in (None, effect.partition("/")[0]):
                return effect
        for folder in sorted(self._root.glob(f"{run or '*'}/*~*")):
            birth = folders.read_birth(folder)
            if birth is None and folders.find_link(folder) is not None:
                return launched_in(RunId(folder.parent.name), folder.name)
            if birth is None or birth.started_us > latest_us:
                continue
            if since_ns <= folders.last_sign_ns(folder, same_boot=birth.boot == self._boot):
                return launched_in(RunId(folder.parent.name), folder.name)
        return None

    def settle(self, effect: EffectId) -> None:
        """Takes the mark of a stop away."""
        if effect in self._stopped:
            self._stopped.discard(effect)
            folders.remove_mark(self.directory(effect), folders.STOPPED)

    def void(self, effect: EffectId) -> None:
        """Marks a launch that never started, so that it never will; one that somebody holds is left to him."""
        taken = folders.take(self.directory(effect), create=True)
        if taken is None:
            return
        try:
            if not taken.marks.ended:
                folders.leave_mark(self.directory(effect), folders.VOID)
        finally:
            os.close(taken.lock)

    def watch(self, effect: EffectId, limits: Watch, done: Callable[[Ending], None]) -> None:
        """Calls `done` once, on the event loop, when the launch is over: in the loop's next turn, if it is over already."""
        loop = asyncio.get_running_loop()
        if self._monitor is None or self._monitor.loop is not loop:
            if self._monitor is not None:
                self._monitor.close()
            self._monitor = Monitor(self._clock, self._boot, loop)
        shim = self._started.pop(effect, None) or Shim(pidfds=self._pidfds)
        self._monitor.add(Watched(effect, self.directory(effect), shim, limits, done, self._clock.monotonic_s()))

    def stop(self, effect: EffectId, cause: Failure) -> None:
        """TERM, grace, KILL, sweep; nothing for a launch that is not watched or is being stopped already."""
        if self._monitor is not None:
            if effect not in self._stopped:
                self._stopped.add(effect)
                with contextlib.suppress(OSError):  # On a full disk it has to be stopped all the same.
                    folders.leave_mark(self.directory(effect), folders.STOPPED)
            self._monitor.stop(effect, cause)

    def close(self) -> None:
        """Lets go of everything; all launches live on and can be adopted."""
        if self._monitor is not None:
            self._monitor.close()
            self._monitor = None
        for shim in self._started.values():
            shim.release()
        self._started.clear()

    def _spawn(self, order: Order, folder: Path, lock: int) -> None:
        nonce = os.urandom(16).hex()
        birth = folders.Birth(
            nonce=nonce,
            cgroup=make_cgroup(nonce) if self._cgroups else "",
            boot=self._boot,
            started_us=self._clock.now_us(),
            started_s=self._clock.monotonic_s(),
        )
        try:
            folders.write_birth(lock, birth)
            stdin = order.stdin.absolute() if order.stdin is not None else None
            self._given = ids_given(self._given)
            pid = spawn(
                folder,
                lock,
                birth.nonce,
                argv=order.argv,
                env=order.env,
                cwd=reach_tree(order.cwd.absolute()),
                stdin=stdin,
                cgroup=birth.cgroup,
                terminal=order.terminal,
            )
        except (OSError, ValueError) as error:
            folders.unwrite_birth(lock)
            remove_cgroup(birth.cgroup, nonce)
            raise refusal(error, order.argv[0]) from error
        if pid is not None:
            self._started[order.effect] = Shim(birth, pid, self._given, pidfds=self._pidfds)


@lru_cache(maxsize=4096)
def _folder_of(root: Path, effect: EffectId) -> Path:
    """Kept, because each launch asks four times, and to make a Path takes as long as to make a file."""
    return Path(f"{root}/{launch_folder(effect)}")


def refusal(error: OSError | ValueError, program: str) -> Shortage | CannotStart:
    """Return what a failed start means: try again later, or never."""
    if isinstance(error, ValueError):  # a NUL byte, or a name that cannot stand in an environment
        return CannotStart(f"{program} cannot be started: {error}.")
    if is_shortage(error):
        return Shortage(detail=error.strerror)
    if error.errno == errno.E2BIG:
        return CannotStart(f"{program} cannot be started: its arguments or environment are too long; pass long values by file.")
    where = f" ({error.filename})" if error.filename else ""
    return CannotStart(f"{program} cannot be started: {error.strerror}{where}.")


def _check_startable(order: Order) -> None:
    """Says in a sentence what the shim could only say with exit code 126 or 127."""
    if not order.argv or not order.argv[0]:
        raise CannotStart("There is no program to start: the command is empty.")
    program = order.argv[0]
    if "\0" in program:
        raise CannotStart(f"{program!r} cannot be started: there is a NUL byte in its name.")
    if not os.path.isdir(order.cwd):
        raise CannotStart(f"{program} cannot be started: its working directory {order.cwd} does not exist.")
    if order.stdin is not None and not os.access(order.stdin, os.R_OK):
        raise CannotStart(f"{program} cannot be started: its input {order.stdin} cannot be read.")
    if "/" not in program:
        if shutil.which(program, path=order.env.get("PATH", os.defpath)) is None:
            raise CannotStart(f"{program} cannot be started: it was not found on the PATH.")
        return
    path = os.path.join(order.cwd, program)
    try:
        is_file = stat.S_ISREG(os.stat(path).st_mode)
    except OSError:
        raise CannotStart(f"{program} cannot be started: there is no such file.") from None
    if not is_file or not os.access(path, os.X_OK):
        raise CannotStart(f"{program} cannot be started: it is not an executable file; `chmod +x` makes it one.")
