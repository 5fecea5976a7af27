"""Power loss on real files: a real run is recorded, its disk rebuilt as a cut at any moment would have left it, and it goes on.

What was written to our files and not synced is gone, or there in part; files of agents and of git have arrived, as they do
within seconds. What the orchestrator had said is still true, no launch that had started is started again, and no torn file
is believed.
"""

from __future__ import annotations

import os
import random
import tempfile
import uuid
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from proof.rebuilt import Tape
from proof.subjects import Subject, open_subject
from proof.syscalls import recover
from proof.trial import SYSTEMS, Kind, Trial
from tests.faults.preload import build_library

ROUNDS = 10
CUTS = 8
"""Cuts of one recorded run."""
OURS = (".git/orc/", ".agents/runs/", ".aiwg/", ".claude/", "coordination/", "state/")
"""The store, the launches, and the print-outs of all systems."""
CLOCK_CHARS = len("12:34:56")
DATE_CHARS = len("2026-11-17 ")


def plan(seed: int, scale: float) -> Iterator[Trial]:
    """Some seeds of every system; each records a run and cuts it at several moments."""
    for number in range(max(1, round(ROUNDS * scale))):
        for system in SYSTEMS:
            yield Trial("power", system, (seed + number,))


def play(trial: Trial, folder: Path) -> int:
    """Record a run, and go on from what each of some power cuts leaves."""
    chance = random.Random(trial.name)
    library = build_library(Path(tempfile.gettempdir(), "orc-proof"), "recorder")
    with open_subject(trial.system, folder) as subject:
        kept, log = folder / "kept", folder / "record"
        tape = Tape(kept, subject.repo, subject.side)
        orc = subject.begin({"LD_PRELOAD": str(library), "RECORD_LOG": str(log), "RECORD_KEEP": str(kept)})
        assert orc.end() == 0, orc
        subject.check_end(orc)
        tape.load(log)
        check_record(tape, subject)
        for number in range(CUTS):
            count = chance.randint(1, len(tape.changes))
            try:
                go_on_after_cut(tape, count, subject, chance, library)
            except BaseException as error:
                error.add_note(f"cut {number} of {trial.name}: after {count} of {len(tape.changes)} changes")
                raise
    return CUTS


def check_record(tape: Tape, subject: Subject) -> None:
    """Check that the recorder missed nothing: played to its end, the record is the disk."""
    disk = tape.play(len(tape.changes))
    for path in subject.repo.rglob("*"):
        number = disk.names.get(str(path))
        if path.is_symlink() or not path.is_file() or path.name.endswith("-shm"):
            continue  # The shared memory of the store is mapped, not written; nobody needs it after a start.
        assert isinstance(number, int), f"{path} was made unseen"
        assert disk.contents[number].now() == path.read_bytes(), f"{path} was written unseen"


def go_on_after_cut(tape: Tape, count: int, subject: Subject, chance: random.Random, library: Path) -> None:
    """Cut the power, start the machine again, resume, and check."""
    arrived = chance.choice((0.0, 0.0, 0.5, 1.0))
    tape.cut(count, subject.repo, chance, arrived, OURS)
    (subject.side / "agents.log").write_text(tape.seen(count, subject.side / "agents.log"))
    said = tape.seen(count, subject.side / "said.1").splitlines()
    for lock in (subject.repo / ".git").rglob("*.lock"):
        os.utime(lock, (0, 0))  # It was made before the machine was started again, which cannot be shown in any other way.
    boot = subject.side / "boot"
    boot.write_text(f"{uuid.UUID(int=chance.getrandbits(128))}\n")
    told = [line[CLOCK_CHARS:] for line in said[1:] if line[2:3] == ":" and not line[CLOCK_CHARS:].startswith("  note ")]
    if said:
        assert subject.stored() is not None, f"{said[0]} was said, and there is no such run"
    recover(subject, failed=True, env={"LD_PRELOAD": str(library), "RECORD_BOOT": str(boot)})
    stored = subject.stored()
    assert stored is not None
    history = subject.orc("history", stored.id)
    history.end()
    known = Counter(line[DATE_CHARS + CLOCK_CHARS :] for line in history.said.splitlines())
    forgotten = Counter(told) - known
    assert not forgotten, f"said before the cut, and not in the journal after it: {forgotten}\n{history.said}"


KINDS = (Kind(name="power", unit="power cuts", plan=plan, play=play),)
