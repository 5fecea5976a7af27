"""System calls of the orchestrator that fail: one of a class in each place of the program, once or from then on.

Each process meets the next place that has not failed yet, and the next process goes on with what it left, until a run gets
through without meeting any. Whatever failed, the orchestrator says a sentence and not a traceback, nothing is started twice,
and the run is completed by a resume. Places instead of numbers: a run comes by the same line again and again, and would
handle the error in the same way.
"""

from __future__ import annotations

import contextlib
import errno
import re
import tempfile
from collections.abc import Iterator, Mapping
from functools import partial
from itertools import count
from pathlib import Path

from proof.subjects import Subject, open_subject
from proof.trial import SYSTEMS, Kind, Trial
from tests.crash.rig import Orc, wait_until
from tests.faults.preload import CLASSES, build, fail_new_places

ERRORS = {
    **dict.fromkeys(("open", "look", "pipe"), errno.EMFILE),
    **dict.fromkeys(("sync", "read"), errno.EIO),
    "lock": errno.EINTR,
    "spawn": errno.EAGAIN,
    "fork": errno.EAGAIN,
    "exec": errno.ENOMEM,
}
"""The error of a class; a full disk for all others."""
OUR_FILES = ("look", "read")
"""Classes of which only calls about files in the repository fail: without its own modules no program says a sentence."""
UNREADABLE = ("read",)
"""Classes after which an attempt may have failed: what an agent left cannot be read. A shortage of anything is no attempt."""
PARTS = 3
"""The trials into which the places of one class are divided."""
PATIENCE_S = 6.0
REACTION_S = 3.0
"""The time that an orchestrator has after a fault, to say a sentence or to go on."""
RESUMES = 3
FAULTS_SHOWN = 3
STACK_LINES_SHOWN = 12


def plan(seed: int, scale: float) -> Iterator[Trial]:
    """Every place of each class, once and for ever, dealt out to three trials.

    A smaller scale takes fewer trials, and below a third it leaves places out.
    """
    parts = max(PARTS, round(1 / max(scale, 0.002)))
    for part in range(max(1, round(PARTS * scale))):
        for system in SYSTEMS:
            for number in range(len(CLASSES)):
                for ever in (0, 1):
                    yield Trial("syscall", system, (number, ever, (seed + part + number) % parts, parts))


def play(trial: Trial, folder: Path) -> int:
    """Let calls fail in one place after another, until a run gets through."""
    number, ever, part, parts = trial.numbers
    tried = 0
    for run in count():
        met = play_run(trial.system, CLASSES[number], folder / str(run), ever=bool(ever), part=f"{part}/{parts}")
        tried += met
        if not met:
            return tried
    raise AssertionError("not reached")


def play_run(system: str, name: str, folder: Path, *, ever: bool, part: str = "0/1") -> int:
    """Run and go on with faults until a process meets none, and check the run; return how many were met.

    Places that failed are kept beside the folder, for the next run.
    """
    library = build(Path(tempfile.gettempdir(), "orc-proof"))
    met: list[str] = []
    with open_subject(system, folder) as subject:
        log, error = subject.side / "fault", ERRORS.get(name, errno.ENOSPC)
        fault = fail_new_places(library, log, name, error, folder.parent / "places", part=part, ever=ever)
        fault["PYTHONSAFEPATH"] = "1"  # No module is looked for in the repository.
        if name in OUR_FILES:
            fault["FAULT_BELOW"] = str(subject.repo)
        try:
            orc = subject.begin(fault)
            while watch(subject, orc, log, met):
                orc = subject.go_on(fault)
            recover(subject, orc, failed=name in UNREADABLE)
        except BaseException as error:
            error.add_note("The last faults were in\n" + "\n".join(met[-FAULTS_SHOWN:]))
            raise
    return len(met)


def watch(subject: Subject, orc: Orc, log: Path, met: list[str]) -> bool:
    """Give a process time after each fault, until it ends or waits; note where they were, and return whether it met any."""
    subject.attend(orc, log.exists)
    with contextlib.suppress(AssertionError):
        while not orc.ended:
            wait_until(partial(_moves, orc, log, log.stat().st_size), REACTION_S)
    faults = re.split(r"(?m)^(?=\w+ \d+ \d+$)", log.read_text("utf-8", "replace")) if log.exists() else []
    met += ["\n".join(fault.splitlines()[:STACK_LINES_SHOWN]) for fault in faults if fault]
    log.unlink(missing_ok=True)
    endure(orc, 0)
    return any(faults)


def _moves(orc: Orc, log: Path, seen: int) -> bool:
    return orc.ended or log.stat().st_size > seen


def endure(orc: Orc, patience_s: float = PATIENCE_S) -> None:
    """Give an orchestrator in trouble its time; it may end, or wait for the machine to recover."""
    try:
        wait_until(lambda: orc.ended, patience_s)
    except AssertionError:
        orc.kill()  # It waits, as it should: nobody will tell it that all is well again.
    check_words(orc)


def check_words(orc: Orc) -> None:
    """Check that it says what is wrong in a sentence."""
    assert not [words for words in ("Traceback", "internal error") if words in orc.said], orc


def recover(subject: Subject, last: Orc | None = None, *, failed: bool = False, env: Mapping[str, str] | None = None) -> None:
    """Complete the run without faults, and check all of it; agents may have failed, too, where the fault was theirs as well.

    `last` is a process that goes on with it already.
    """
    last = last or subject.go_on(env)
    for _ in range(RESUMES):
        subject.attend(last)
        check_words(last)
        stored = subject.stored()
        last = subject.go_on(env)
        if stored is not None and stored.summary.status == "completed":
            break  # This last one writes what a process that was in trouble could not.
    last.end()
    subject.check_end(last, failed=failed)


KINDS = (Kind(name="syscall", unit="failing system calls", plan=plan, play=play, max_s=3_600),)
