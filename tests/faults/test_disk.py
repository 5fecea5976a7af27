"""Faults of a disk that a person meets at one file: the store when it is opened, and the question that he is asked."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from tests.acceptance.rig import HUMAN, Rig
from tests.faults.preload import build, faulty, find_compiler
from tests.stores import OWN_STORE

ADVICE = ("damaged", "move it", "restore a copy", "Traceback")
PERMISSION = "cannot be written (it may only be read); check its folder and its permissions"
BROKEN = "the store is left as it was: check the disk, then try again"
WORD_CHARS = 8
"""The word that names a question."""
FULL = "is full; nothing was lost, free some space"


@pytest.fixture(scope="session")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The library that lets calls fail, compiled once."""
    if find_compiler() is None:
        pytest.skip("there is no C compiler")
    return build(tmp_path_factory.mktemp("library"))


@OWN_STORE
@pytest.mark.parametrize(
    ("call", "error", "says", "looks"),
    [
        ("open", errno.EACCES, PERMISSION, False),
        ("open", errno.EIO, PERMISSION, False),
        ("read", errno.EIO, BROKEN, False),
        ("write", errno.EIO, BROKEN, True),
        ("write", errno.ENOSPC, FULL, True),
        ("sync", errno.EIO, BROKEN, True),
    ],
)
def test_nobody_is_told_to_move_a_store_whose_pages_were_not_found_wrong(
    repo: Path, tmp_path: Path, library: Path, call: str, error: int, says: str, looks: bool
) -> None:
    rig = Rig(repo)
    rig.workflow(HUMAN)
    assert rig.run("--run-id", "asks", "--no-wait").code == 4
    fault = faulty(library, tmp_path / "met", call, 1, error, ever=True, below="orc.db")

    refused = rig.orc("resume", "asks", "--no-wait", env=fault)
    assert (refused.code, says in refused.err, (tmp_path / "met").exists()) == (3, True, True), refused
    looked = rig.orc("status", env=fault)
    assert (looked.code, "asks" in looked.out) == ((0, True) if looks else (3, False)), looked
    doctor = rig.orc("doctor", env=fault)
    met = call != "sync"  # A look at the store syncs nothing.
    assert (doctor.code, says in doctor.out) == ((3, True) if met else (0, False)), doctor
    for done in (refused, looked, doctor):
        assert not [words for words in ADVICE if words in done.out + done.err], done

    assert rig.orc("doctor").code == 0
    assert rig.ask("approve", "asks").code == 0
    assert rig.orc("resume", "asks").code == 0


def test_a_question_that_does_not_fit_on_the_disk_is_not_there_in_part_and_nothing_answers_it(
    repo: Path, tmp_path: Path, library: Path
) -> None:
    rig, launches = Rig(repo), repo / ".git" / "orc" / "launches"
    rig.workflow(HUMAN)
    fault = faulty(library, tmp_path / "met", "write", 1, errno.ENOSPC, ever=True, below="/.question")
    asked = rig.run("--run-id", "asks", "--no-wait", env=fault)
    assert (asked.code, "cannot be taken yet: [Errno 28]" in asked.out, (tmp_path / "met").exists()) == (4, True, True), asked
    assert not list(launches.glob("*/*/*question*"))

    answer = repo / ".agents" / "runs" / "asks" / "manual_inputs" / "asks__approval.json"
    answer.write_text('{"approved": true, "question": ""}')
    waits = rig.orc("resume", "asks", "--no-wait", env=fault)
    assert (waits.code, rig.state("asks")["steps"]["approval"]["status"]) == (4, "WAITING_ON_HUMAN"), waits
    assert rig.orc("resume", "asks", "--no-wait").code == 4, "it was written before anything was asked"
    (question,) = launches.rglob("question")
    assert len(question.read_text()) == WORD_CHARS
    assert rig.ask("approve", "asks").code == 0
    assert rig.orc("resume", "asks").code == 0


def test_a_file_of_the_repository_that_cannot_be_read_is_a_failing_disk_and_no_bug_of_ours(
    repo: Path, tmp_path: Path, library: Path
) -> None:
    rig = Rig(repo)
    fault = faulty(library, tmp_path / "met", "read", 1, errno.EIO, ever=True, below="info/exclude")
    failed = rig.run("--run-id", "one", env=fault)
    said = failed.out + failed.err
    assert (failed.code, "the disk failed" in said, "internal error" in said) == (3, True, False), failed
    assert rig.orc("resume", "one").code == 0 if rig.ask("show", "one").code == 0 else rig.run("--run-id", "one").code == 0
