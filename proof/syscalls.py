"""System calls of the orchestrator that fail: the N-th of a class, once or from then on; then it goes on without faults.

Whatever failed, it says a sentence and not a traceback, nothing is started twice, and the run is completed by a resume.
"""

from __future__ import annotations

import errno
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

from proof.subjects import Subject, open_subject
from proof.trial import SYSTEMS, Kind, Trial
from tests.crash.rig import Orc, wait_until
from tests.faults.preload import CLASSES, build, faulty

ERRORS = {"open": errno.EMFILE, "lock": errno.EINTR, "spawn": errno.EAGAIN, "sync": errno.EIO}
"""The error of a class; a full disk for all others."""
CALLS = {
    "open": (55, 100, 100, 130, 65),
    "write": (190, 290, 380, 450, 200),
    "sync": (20, 40, 52, 60, 37),
    "rename": (16, 34, 38, 50, 25),
    "mkdir": (24, 45, 41, 50, 41),
    "remove": (20, 21, 24, 30, 23),
    "link": (3, 3, 3, 3, 3),
    "truncate": (5, 7, 9, 10, 7),
    "lock": (39, 95, 84, 100, 37),
    "spawn": (6, 8, 10, 10, 6),
}
"""Calls of a class that a run makes, about, by system; a fault that never happens counts as nothing tried."""
STRIDE = 12
PATIENCE_S = 6.0
RESUMES = 3


def plan(seed: int, scale: float) -> Iterator[Trial]:
    """Every twelfth call of each class, from another one on with another seed, once and for ever."""
    stride = max(1, round(STRIDE / max(scale, 0.01)))
    for index, system in enumerate(SYSTEMS):
        for number, name in enumerate(CLASSES):
            for at in range(1 + (seed + number) % min(stride, CALLS[name][index]), CALLS[name][index] + 1, stride):
                for ever in (0, 1):
                    yield Trial("syscall", system, (number, at, ever))


def play(trial: Trial, folder: Path) -> int:
    """Run with the fault, then go on without."""
    number, at, ever = trial.numbers
    name = CLASSES[number]
    library = build(Path(tempfile.gettempdir(), "orc-proof"))
    with open_subject(trial.system, folder) as subject:
        log = subject.side / "fault"
        orc = subject.begin(faulty(library, log, name, at, ERRORS.get(name, errno.ENOSPC), ever=bool(ever)))
        endure(orc)
        recover(subject)
    return 1 if log.exists() else 0


def endure(orc: Orc, patience_s: float = PATIENCE_S) -> None:
    """Give an orchestrator in trouble its time; it may end, or wait for the machine to recover; it never shows a traceback."""
    try:
        wait_until(lambda: orc.ended, patience_s)
    except AssertionError:
        orc.kill()  # It waits, as it should: nobody will tell it that all is well again.
    assert "Traceback" not in orc.said, orc


def recover(subject: Subject, *, failed: bool = False, env: Mapping[str, str] | None = None) -> None:
    """Complete the run without faults, and check all of it; agents may have failed, too, where the fault was theirs as well."""
    last = subject.go_on(env)
    for _ in range(RESUMES):
        subject.attend(last)
        assert "Traceback" not in last.said, last
        stored = subject.stored()
        last = subject.go_on(env)
        if stored is not None and stored.summary.status == "completed":
            break  # This last one writes what a process that was in trouble could not.
    last.end()
    subject.check_end(last, failed=failed)


KINDS = (Kind(name="syscall", unit="failing system calls", plan=plan, play=play),)
