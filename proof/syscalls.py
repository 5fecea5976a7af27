"""System calls of the orchestrator that fail: the N-th of a class, once or from then on; then it goes on without faults.

N is counted up until a run gets through without meeting its fault. Whatever failed, the orchestrator says a sentence and not a
traceback, nothing is started twice, and the run is completed by a resume.
"""

from __future__ import annotations

import errno
import tempfile
from collections.abc import Iterator, Mapping
from itertools import count
from pathlib import Path

from proof.subjects import Subject, open_subject
from proof.trial import SYSTEMS, Kind, Trial
from tests.crash.rig import Orc, wait_until
from tests.faults.preload import CLASSES, build, faulty

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
PARTS = 12
"""The trials into which the calls of one class are divided."""
PATIENCE_S = 6.0
RESUMES = 3


def plan(seed: int, scale: float) -> Iterator[Trial]:
    """Every call of each class, once and for ever, dealt out to twelve trials.

    A smaller scale takes fewer trials, and below a twelfth it leaves calls out.
    """
    stride = max(PARTS, round(1 / max(scale, 0.002)))
    for part in range(max(1, round(PARTS * scale))):
        for system in SYSTEMS:
            for number in range(len(CLASSES)):
                for ever in (0, 1):
                    yield Trial("syscall", system, (number, ever, 1 + (seed + part + number) % stride, stride))


def play(trial: Trial, folder: Path) -> int:
    """Let one call after another fail, until a run gets through."""
    number, ever, first, stride = trial.numbers
    for tried in count():
        at = first + tried * stride
        try:
            if not play_fault(trial.system, CLASSES[number], at, folder / str(at), ever=bool(ever)):
                return tried
        except BaseException as error:
            error.add_note(f"{trial.name}: the fault was in call {at} of the class {CLASSES[number]}")
            raise
    raise AssertionError("not reached")


def play_fault(system: str, name: str, at: int, folder: Path, *, ever: bool) -> bool:
    """Run with one fault, then go on without; return True if it was met."""
    library = build(Path(tempfile.gettempdir(), "orc-proof"))
    with open_subject(system, folder) as subject:
        log = subject.side / "fault"
        below = str(subject.repo) if name in OUR_FILES else ""
        fault = faulty(library, log, name, at, ERRORS.get(name, errno.ENOSPC), ever=ever, below=below)
        orc = subject.begin({**fault, "PYTHONSAFEPATH": "1"})  # Where modules are not looked for in the repository.
        endure(orc)
        recover(subject)
        return log.exists()


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


def recover(subject: Subject, *, failed: bool = False, env: Mapping[str, str] | None = None) -> None:
    """Complete the run without faults, and check all of it; agents may have failed, too, where the fault was theirs as well."""
    last = subject.go_on(env)
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
