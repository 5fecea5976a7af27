"""The warden: a process beside a worker that ends the worker's agents before its lease is over.

A worker that is frozen, dead or cut off from the store cannot end them itself, and another host starts the same work again when
the lease is over. So the worker writes down, with each beat, until when it holds its lease; when that time comes near without
another beat, the warden kills the worker, which may be frozen just before it starts something, and then its agents. A worker
that is restarted before goes on writing the same file, and nothing happens. It imports no event loop and asks nobody.
"""

from __future__ import annotations

import fcntl
import os
import select
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec

from agent_orchestrator import typed
from agent_orchestrator.beneath import open_own, remove_beneath
from agent_orchestrator.bounded import read_bounded
from agent_orchestrator.engine.clock import boottime_s
from agent_orchestrator.engine.files import write_whole
from agent_orchestrator.engine.process.ends import end_launches, kill_process, read_start

LEASE, LOCK = "lease.json", "warden.lock"
LEASE_BYTES_MAX = 16 * 1024 * 1024
LOOK_S = 1.0
"""Between two looks at the lease while nothing is wrong: one read of a small file."""
GRACE_SHARE = 0.2
"""The part of a lease that is kept back for ending everything."""
TERM_SHARE = 0.5
"""The part of that in which agents may end by themselves."""
PASSED_ON = ("PATH", "PYTHONPATH", "LANG", "LC_ALL", "TMPDIR")


class Lease(msgspec.Struct, frozen=True, kw_only=True):
    """A worker's lease, as its warden needs to know it."""

    pid: int
    start: str
    """Tells the worker from another process with its id."""
    until_s: float
    """When the lease is over, by the clock that goes on while the machine is suspended."""
    ttl_s: float
    runs: tuple[str, ...] = ()
    """The folders of the launches of each run that it drives."""


def write_lease(folder: Path, until_s: float, ttl_s: float, runs: tuple[str, ...]) -> None:
    """Write down this process's lease and what it drives; whole or not at all."""
    pid = os.getpid()
    lease = Lease(pid=pid, start=read_start(pid), until_s=until_s, ttl_s=ttl_s, runs=runs)
    write_whole(folder, folder / LEASE, msgspec.json.encode(lease))


def read_lease(folder: Path) -> Lease | None:
    """Read the lease; None where there is none: the worker has left, and nothing is to be ended."""
    try:
        return typed.decode(read_bounded(folder / LEASE, LEASE_BYTES_MAX, root=folder), Lease)
    except FileNotFoundError:
        return None


def forget_lease(folder: Path) -> None:
    """Take the lease away: this worker drives nothing any more."""
    remove_beneath(folder, folder / LEASE)


def ensure_warden(folder: Path, environ: Mapping[str, str]) -> bool:
    """Start a warden for the folder of a worker unless one lives; True if it was started."""
    lock = _take_lock(folder)
    if lock is None:
        return False
    try:
        with os.fdopen(open_own(folder, folder / "warden.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND), "ab") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", "agent_orchestrator.cluster.warden", str(folder), str(lock)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env={name: environ[name] for name in PASSED_ON if name in environ},
                pass_fds=(lock,),
                start_new_session=True,
            )
        process.returncode = 0  # It outlives us, and is nobody's to wait for.
    finally:
        os.close(lock)
    return True


def _take_lock(folder: Path) -> int | None:
    """Return a descriptor that holds the lock of the folder's warden; None while one lives."""
    lock = open_own(folder, folder / LOCK)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(lock)
        return None
    return lock


def watch(folder: Path, now_s: Callable[[], float] = boottime_s, pause: Callable[[float], None] | None = None) -> bool:
    """Wait until the worker of a folder has left, or its lease is nearly over; then end everything. True if that was needed."""
    rest = pause or _pause
    while (lease := read_lease(folder)) is not None:
        left_s = lease.until_s - lease.ttl_s * GRACE_SHARE - now_s()
        if left_s > 0:
            rest(min(left_s, LOOK_S))
            continue
        kill_process(lease.pid, lease.start)
        # The file of a worker that was started anew a moment ago is not the one that was read: it is looked at again.
        if read_lease(folder) != lease:
            continue
        end_launches([Path(run) for run in lease.runs], lease.ttl_s * GRACE_SHARE * TERM_SHARE)
        if read_lease(folder) == lease:
            forget_lease(folder)
        return True
    return False


def _pause(seconds: float) -> None:
    select.select([], [], [], seconds)


def main() -> None:
    """Be the warden of a folder; the second argument is the descriptor that holds its lock, kept until the end."""
    folder = Path(sys.argv[1])
    os.set_inheritable(int(sys.argv[2]), False)
    watch(folder)


if __name__ == "__main__":
    main()
