"""One watched launch: what is known of its shim, how far it has got, and how its processes are signalled.

It never decides when; that is the monitor's. A signal goes out only to what was recognised first.
"""

from __future__ import annotations

import os
import select
import signal
from collections.abc import Callable
from enum import Enum, auto
from pathlib import Path

from agent_orchestrator.agents.adapter import Ending
from agent_orchestrator.core.failure import Failure
from agent_orchestrator.core.ids import EffectId
from agent_orchestrator.engine.launches import Watch
from agent_orchestrator.engine.process.cgroups import drop_cgroup, list_members
from agent_orchestrator.engine.process.folder import ERR, OUT, Birth, read_birth, read_pid
from agent_orchestrator.engine.process.identity import carries, signal_carrier
from agent_orchestrator.engine.process.newcomers import Given, left_nothing

CLEAN_UP_S = 5.0
"""The time that processes without a mark have for themselves, when nothing else of a launch that is stopped lives."""


class WatchPhase(Enum):
    """RUNNING → (LINGERING →) (STOPPING →) over."""

    RUNNING = auto()
    LINGERING = auto()
    """The agent is over, processes it left behind may still finish by themselves."""
    STOPPING = auto()


class Shim:
    """The shim's process, as far as it is known: started by us, or found again by what it wrote."""

    __slots__ = ("before", "birth", "child", "code", "gone", "ours", "pid", "pidfd", "pidfds")

    def __init__(self, birth: Birth | None = None, pid: int | None = None, before: Given | None = None, *, pidfds: bool) -> None:
        self.birth, self.pid, self.before, self.pidfds = birth, pid, before, pidfds
        self.child = self.ours = pid is not None
        self.pidfd: int | None = None
        self.gone = False
        self.code: int | None = None
        """The exit code of our own child by the kernel's word: negative for a signal that killed the shim; None if not known."""
        if pid is not None:
            self._pin(pid)

    def find(self, folder: Path) -> bool:
        """Looks for what is not known yet: True once its end will be announced, `gone` once it is known to be dead."""
        if self.child and self.pid is not None:
            if not self._pin(self.pid):
                found, status = os.waitpid(self.pid, os.WNOHANG)
                if found:
                    self.gone, self.code = True, os.waitstatus_to_exitcode(status)
            return self.pidfd is not None
        self.birth = self.birth or read_birth(folder)
        self.pid = self.pid or read_pid(folder)
        if self.birth is None or self.pid is None:
            return False
        self._pin(self.pid)
        # Only the nonce says that the pid is still our shim's; another process under that number is none of ours.
        self.ours = not self.gone and carries(self.pid, self.birth.nonce)
        if not self.ours:
            self.gone = True
            self.release()
        return self.pidfd is not None

    def reap(self) -> None:
        """After its end: collects it if it is our child (by its own descriptor, never anybody else's child)."""
        if self.child and self.pidfd is not None:
            ended = os.waitid(os.P_PIDFD, self.pidfd, os.WEXITED | os.WNOHANG)
            if ended is not None:
                self.code = ended.si_status if ended.si_code == os.CLD_EXITED else -ended.si_status
        self.release()
        self.gone = True

    @property
    def ended(self) -> bool:
        """True once it is dead, also where nobody has noticed yet."""
        if self.gone or self.pidfd is None:
            return self.gone
        look = select.poll()
        look.register(self.pidfd, select.POLLIN)
        return bool(look.poll(0))

    def members(self) -> list[int]:
        """Return the living processes in the cgroup of its launch; none where it has no cgroup."""
        return list_members(self.birth.cgroup, self.birth.nonce) if self.birth is not None else []

    def left_nothing(self) -> bool:
        """Say whether it is gone, and certain that nothing else of its launch lives."""
        if not self.gone or self.before is None or self.birth is None or self.pid is None:
            return False
        if not left_nothing(self.birth.nonce, self.pid, self.before):
            return False
        return drop_cgroup(self.birth.cgroup, self.birth.nonce) or not self.members()

    def release(self) -> None:
        """Lets go of the process without touching it."""
        if self.pidfd is not None:
            os.close(self.pidfd)
            self.pidfd = None

    def _pin(self, pid: int) -> bool:
        if not self.pidfds:
            return False
        try:
            self.pidfd = os.pidfd_open(pid)
        except ProcessLookupError:
            self.gone = True
        except OSError:
            return False  # short of descriptors: the lock is polled until one is free
        return self.pidfd is not None


class Watched:
    """A launch under watch."""

    __slots__ = (
        "cause", "cleaned_up_s", "done", "due_s", "effect", "files", "finished", "folder", "grew_s", "interval_s", "limits",
        "over", "phase", "reached", "shim", "signalled", "size", "turn_s", "unreachable", "watched_s",
    )  # fmt: skip

    def __init__(
        self, effect: EffectId, folder: Path, shim: Shim, limits: Watch, done: Callable[[Ending], None], now_s: float
    ) -> None:
        self.effect, self.folder, self.shim, self.limits, self.done = effect, folder, shim, limits, done
        self.files = (f"{folder}/{OUT}", f"{folder}/{ERR}")
        """As strings, because a thousand quiet launches are looked at five hundred times a second."""
        self.phase = WatchPhase.RUNNING
        self.over = False
        self.cause: Failure | None = None
        self.finished = False
        """True once its result has been seen."""
        self.size = 0
        self.watched_s = self.grew_s = now_s
        self.interval_s = 0.0
        self.due_s = 0.0
        self.turn_s = 0.0
        """When this phase ends: the leftovers' grace, or the time of the KILL."""
        self.cleaned_up_s: float | None = None
        """When the time is over that only processes without a mark were given, once there are no others."""
        self.signalled: int | None = None
        self.reached: set[int] = set()
        self.unreachable: set[int] = set()

    @property
    def nonce(self) -> str | None:
        """Return what the launch's processes are known by."""
        return self.shim.birth.nonce if self.shim.birth is not None else None

    @property
    def started_s(self) -> float:
        """On the monotonic clock; when it was first seen if that is all we know."""
        return self.shim.birth.started_s if self.shim.birth is not None else self.watched_s

    def signal_group(self, number: int) -> None:
        """Signals shim, agent and whatever stayed in their group, if the shim lives and is known to be ours."""
        shim = self.shim
        if shim.pid is None or shim.gone or not shim.ours:
            return
        self.signalled = number
        try:
            os.killpg(shim.pid, number)
        except ProcessLookupError:
            return

    def signal_found(self, pids: list[int], number: int) -> None:
        """Signals processes found by the nonce, except those that the group's signal reached."""
        assert self.nonce is not None
        group = self.shim.pid if self.signalled == number and not self.shim.gone else None
        for pid in pids:
            if group is not None and number != signal.SIGKILL and _group_of(pid) == group:
                continue
            self.reached.add(pid)
            if not signal_carrier(pid, self.nonce, number, pidfds=self.shim.pidfds):
                self.unreachable.add(pid)

    def has_cleaned_up(self, now_s: float) -> bool:
        """Say whether processes without a mark have been alone for long enough."""
        if self.cleaned_up_s is None:
            self.cleaned_up_s = now_s + CLEAN_UP_S
        return now_s >= self.cleaned_up_s

    def is_of(self, boot: str) -> bool:
        """Say whether it began since the machine was started: nothing of it can be left otherwise."""
        return self.shim.birth is not None and self.shim.birth.boot == boot


def _group_of(pid: int) -> int | None:
    try:
        return os.getpgid(pid)
    except ProcessLookupError:
        return None
