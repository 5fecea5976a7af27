"""Ends what a process on this host left behind, or cannot end itself any more: its launches, and the process.

For those that look after a host and drive nothing. No exit code is left behind: a launch that is ended so was lost, whoever
collects it, and that is no failure of its own.
"""

from __future__ import annotations

import os
import select
import signal
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from agent_orchestrator.engine.clock import boottime_s
from agent_orchestrator.engine.kinship import HAS_PROC
from agent_orchestrator.engine.process import folder as folders
from agent_orchestrator.engine.process.cgroups import list_members
from agent_orchestrator.engine.process.identity import HAS_PIDFD, list_carriers, signal_carrier

SWEEP_S, SWEEPS_MAX = 0.1, 600


def list_living(runs: Iterable[Path]) -> list[Path]:
    """Return the folders of launches of some runs, each given by the folder of its launches, of which anything lives."""
    found = [folder for run in runs if run.is_dir() for folder in sorted(run.glob("*~*"))]
    return [folder for folder in found if folders.is_locked(folder) or _has_members(folder)]


def _has_members(folder: Path) -> bool:
    birth = folders.read_birth(folder)
    return birth is not None and bool(list_members(birth.cgroup, birth.nonce))


def signal_living(living: Iterable[Path], number: int) -> None:
    """Signal every process of some launches; their shims are killed first, for one that lives writes an exit code."""
    births = {folder: birth for folder in living if (birth := folders.read_birth(folder)) is not None}
    for folder, birth in births.items():
        if (shim := folders.read_pid(folder)) is not None:
            signal_carrier(shim, birth.nonce, signal.SIGKILL, pidfds=HAS_PIDFD)
    for pid, nonce in list_carriers(births.values()):
        signal_carrier(pid, nonce, number, pidfds=HAS_PIDFD)


def end_launches(runs: Iterable[Path], gently_s: float) -> None:
    """End every launch of some runs: asked first, for so long, then killed; return when nothing of them lives.

    What cannot be killed, because the kernel holds it, is given up after a minute.
    """
    places, gently_until_s = [*runs], boottime_s() + gently_s
    for sweep in range(SWEEPS_MAX):
        living = list_living(places)
        if not living:
            return
        late = boottime_s() >= gently_until_s
        if late or sweep == 0:
            signal_living(living, signal.SIGKILL if late else signal.SIGTERM)
        select.select([], [], [], SWEEP_S)


def read_start(pid: int) -> str:
    """Return what tells a process from any other that has, or will have, its id: when it was started; '' when it is gone.

    A zombie is gone.
    """
    if not HAS_PROC:
        return str(pid)
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            fields = file.read().rpartition(b")")[2].split()
    except OSError:
        return ""
    return "" if fields[0] in (b"Z", b"X") else fields[19].decode("ascii")


def is_alive(pid: int) -> bool:
    """Tell whether a process lives, whoever's it is; a zombie does not."""
    if pid <= 0:
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return read_start(pid) != ""


def kill_process(pid: int, start: str) -> None:
    """Kill a process, frozen or not, if it is still the one that was started then."""
    with suppress(ProcessLookupError):
        if not HAS_PIDFD:
            if read_start(pid) == start:
                os.kill(pid, signal.SIGKILL)
            return
        pidfd = os.pidfd_open(pid)
        try:
            if read_start(pid) == start:
                signal.pidfd_send_signal(pidfd, signal.SIGKILL)
        finally:
            os.close(pidfd)
