"""A cgroup for each launch, where this process may make one: it also finds what took the mark off its environment.

It needs version 2 of cgroups, mounted anywhere, and the right to make one below our own: root has it, and whoever was started by
his own systemd. It is no wall, since whoever has that right may leave again. No controller is used, so that nothing is limited.
"""

from __future__ import annotations

import os
from contextlib import suppress
from functools import cache
from pathlib import Path

from agent_orchestrator.core.units import US
from agent_orchestrator.engine.clock import SystemClock
from agent_orchestrator.engine.kinship import CGROUP, read_proc

PROCESSES = "cgroup.procs"
LEFT_S = 3_600.0


@cache
def own_cgroup() -> str:
    """Return the folder of the cgroup that this process is in, if others can be made in it; '' where they cannot."""
    mine = next((line[3:] for line in _lines("/proc/self/cgroup") if line.startswith("0::")), None)
    for line in _lines("/proc/self/mountinfo") if mine is not None else ():
        about, _, kind = line.partition(" - ")
        if kind.startswith("cgroup2 ") and mine is not None:
            root, mount = about.split()[3:5]
            place = f"{mount}/{os.path.relpath(mine, root)}" if mine.startswith(root) else ""
            if place and os.access(place, os.W_OK) and os.path.exists(f"{place}/{PROCESSES}"):
                remove_left(place := os.path.normpath(place))
                return place
    return ""


def remove_left(place: str, older_than_s: float = LEFT_S) -> None:
    """Remove the empty cgroups of launches that nobody came back for; a launch that is starting enters its own within an hour."""
    before_s = SystemClock().now_us() / US - older_than_s
    with suppress(OSError), os.scandir(place) as entries:
        for entry in entries:
            if entry.name.startswith(CGROUP) and entry.stat().st_mtime < before_s:
                remove_cgroup(entry.path, entry.name.removeprefix(CGROUP))


def make_cgroup(nonce: str) -> str:
    """Make the cgroup of a launch and return its folder; '' where there is none."""
    if not (place := own_cgroup()):
        return ""
    try:
        os.mkdir(folder := f"{place}/{CGROUP}{nonce}")
    except OSError:  # As many as are allowed, or taken from us meanwhile: the marks remain.
        return ""
    return folder


def list_members(folder: str, nonce: str) -> list[int]:
    """Return the living processes in the cgroup of a launch and in those below it; none for a folder of another name."""
    if not folder or os.path.basename(folder) != f"{CGROUP}{nonce}":
        return []
    found: list[int] = []
    for place, _, _ in os.walk(folder):
        found += [int(pid) for pid in (read_proc(f"{place}/{PROCESSES}") or b"").split()]
    return [pid for pid in found if pid > 0]  # 0: in another namespace of processes, where nobody here can reach it


def drop_cgroup(folder: str, nonce: str) -> bool:
    """Remove the cgroup of a launch unless something is in it; return True once it is gone, or where there was none.

    The kernel removes none with a living process in it, or in one below it: to try is the shortest way to know.
    """
    if not folder or os.path.basename(folder) != f"{CGROUP}{nonce}":
        return True
    try:
        os.rmdir(folder)
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return True


def remove_cgroup(folder: str, nonce: str) -> None:
    """Remove the cgroup of a launch that has ended, and those below it; one with a living process in it stays."""
    if not drop_cgroup(folder, nonce):
        for place, _, _ in os.walk(folder, topdown=False):
            with suppress(OSError):
                os.rmdir(place)


def _lines(path: str) -> list[str]:
    try:
        return Path(path).read_text("utf-8", "surrogateescape").splitlines()
    except OSError:
        return []
