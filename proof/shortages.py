"""A machine that is short of something for a while: room or inodes on a real small file system, descriptors, processes.

The orchestrator waits or ends, with a sentence; given back what it lacked it goes on, by itself or by a resume.
"""

from __future__ import annotations

import ctypes
import errno
import os
import random
import resource
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path

from proof.subjects import Subject, open_subject
from proof.syscalls import endure, recover
from proof.trial import SYSTEMS, Kind, Trial
from tests.conftest import make_repo, pytest_configure
from tests.crash.rig import Orc, wait_until

ROUNDS = 10
WORK_S = 0.25
"""The time that agents take, so that the shortage comes while they work."""
PATIENCE_S = 40.0
CLONE_NEWNS = 0x00020000
CGROUP = Path("/sys/fs/cgroup/pids")
DISK_BYTES, DISK_INODES = 24 * 1024 * 1024, 3_000
Lack = Callable[[Orc, Subject, random.Random], AbstractContextManager[None]]


def _plan(name: str, possible: Callable[[], bool]) -> Callable[[int, float], Iterator[Trial]]:
    def plan(seed: int, scale: float) -> Iterator[Trial]:
        """Some seeds of every system; none where the machine does not let us take anything away."""
        for number in range(max(1, round(ROUNDS * scale)) if possible() else 0):
            for system in SYSTEMS:
                yield Trial(name, system, (seed + number,))

    return plan


@contextmanager
def small_disk(folder: Path) -> Iterator[Path]:
    """Mount a small file system, seen by this process and its children alone, so that it goes with them."""
    folder.mkdir(parents=True)
    libc = ctypes.CDLL(None, use_errno=True)
    assert libc.unshare(CLONE_NEWNS) == 0, os.strerror(ctypes.get_errno())
    subprocess.run(["mount", "--make-rprivate", "/"], check=True)
    how = f"size={DISK_BYTES},nr_inodes={DISK_INODES}"
    subprocess.run(["mount", "-t", "tmpfs", "-o", how, "tmpfs", str(folder)], check=True)
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


@contextmanager
def no_room(orc: Orc, subject: Subject, chance: random.Random) -> Iterator[None]:
    """Fill the file system to its last block."""
    ballast = subject.repo.parent / "ballast"
    with ballast.open("wb", buffering=0) as file, suppress(OSError):
        while True:
            file.write(b"\0" * 4096)
    try:
        yield
    finally:
        ballast.unlink()


@contextmanager
def no_inodes(orc: Orc, subject: Subject, chance: random.Random) -> Iterator[None]:
    """Use up every inode."""
    ballast = subject.repo.parent / "ballast"
    ballast.mkdir()
    try:
        for number in range(DISK_INODES):
            (ballast / str(number)).touch()
    except OSError as error:
        assert error.errno == errno.ENOSPC  # noqa: PT017 - what was wanted
    try:
        yield
    finally:
        for file in ballast.iterdir():
            file.unlink()


@contextmanager
def no_descriptors(orc: Orc, subject: Subject, chance: random.Random) -> Iterator[None]:
    """Allow the orchestrator hardly more descriptors than it has."""
    try:
        used = len(list(Path(f"/proc/{orc.pid}/fd").iterdir()))
        soft, hard = resource.prlimit(orc.pid, resource.RLIMIT_NOFILE)
        resource.prlimit(orc.pid, resource.RLIMIT_NOFILE, (used + chance.randint(0, 4), hard))
    except (ProcessLookupError, FileNotFoundError):
        yield
        return
    try:
        yield
    finally:
        with suppress(ProcessLookupError):
            resource.prlimit(orc.pid, resource.RLIMIT_NOFILE, (soft, hard))


@contextmanager
def no_processes(orc: Orc, subject: Subject, chance: random.Random) -> Iterator[None]:
    """Allow the orchestrator and what it started no more processes than there are, or one or two."""
    group = CGROUP / f"proof-{orc.pid}"
    group.mkdir()
    try:
        with suppress(OSError):
            (group / "cgroup.procs").write_text(str(orc.pid))
        there = int((group / "pids.current").read_text())
        (group / "pids.max").write_text(str(there + chance.randint(0, 2)))
        yield
    finally:
        (group / "pids.max").write_text("max")
        for pid in (group / "cgroup.procs").read_text().split():
            with suppress(OSError):
                (CGROUP / "cgroup.procs").write_text(pid)
        wait_until(lambda: not (group / "cgroup.procs").read_text())
        group.rmdir()


def play_on(subject: Subject, lack: Lack, chance: random.Random) -> int:
    """Run, take something away for a while, give it back, go on."""
    subject.let_work(WORK_S)
    orc = subject.begin()
    wanted = chance.randint(0, 2)
    wait_until(lambda: len(subject.log()) >= wanted or orc.ended)
    time.sleep(chance.uniform(0.0, 0.3))
    if orc.ended:
        recover(subject)
        return 0
    with lack(orc, subject, chance):
        time.sleep(chance.uniform(0.3, 2.0))
        if chance.random() < 0.4:
            orc.kill()
    endure(orc, PATIENCE_S)
    recover(subject, failed=True)
    return 1


def _play_on_small_disk(lack: Lack) -> Callable[[Trial, Path], int]:
    def play(trial: Trial, folder: Path) -> int:
        """Play it on a file system of its own."""
        pytest_configure()
        with small_disk(folder / "disk") as disk, open_subject(trial.system, folder, make_repo(disk / "repo")) as subject:
            return play_on(subject, lack, random.Random(trial.name))

    return play


def _play_anywhere(lack: Lack) -> Callable[[Trial, Path], int]:
    def play(trial: Trial, folder: Path) -> int:
        """Play it on the disk that there is."""
        with open_subject(trial.system, folder) as subject:
            return play_on(subject, lack, random.Random(trial.name))

    return play


def _is_root() -> bool:
    return os.geteuid() == 0


def _has_group() -> bool:
    return os.access(CGROUP / "cgroup.procs", os.W_OK)


def _always() -> bool:
    return True


KINDS = (
    Kind(name="disk", unit="full disks", plan=_plan("disk", _is_root), play=_play_on_small_disk(no_room)),
    Kind(name="inodes", unit="file systems without inodes", plan=_plan("inodes", _is_root), play=_play_on_small_disk(no_inodes)),
    Kind(name="descriptors", unit="shortages", plan=_plan("descriptors", _always), play=_play_anywhere(no_descriptors)),
    Kind(name="processes", unit="shortages", plan=_plan("processes", _has_group), play=_play_anywhere(no_processes)),
)
