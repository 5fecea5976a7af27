"""The proof itself: a little of every kind finds nothing, an engine that is broken on purpose is found out, a trial repeats."""

from __future__ import annotations

import os
import time
from collections import Counter
from contextlib import suppress
from itertools import islice
from pathlib import Path

import pytest

from proof.broken import BREAKS, broken
from proof.kinds import KINDS
from proof.page import numbers
from proof.pool import play_all
from proof.record import Record
from proof.syscalls import play_run
from proof.table import Table
from proof.trial import SYSTEMS, Outcome, Trial, read_trial

QUICK = ("crash", "crashes", "schedule")
SECONDS = {"syscall": 0.002, "freeze": 0.05}
"""The scale of each of these kinds, of which two trials are played."""
ONE_OF_EACH = {"answer": "workflow", "victim": "swarm", "descriptors": "workflow", "inodes": "workflow", "disk": "loop"}
"""Kinds of which one trial is played, in the system in which that waits least."""
SEEDS_TO_CATCH = 60


@pytest.mark.parametrize("kind", QUICK)
def test_a_little_of_what_is_simulated_breaks_nothing(kind: str, tmp_path: Path) -> None:
    seen: Counter[str] = Counter()
    for number, trial in enumerate(KINDS[kind].plan(7_000, 0.002)):
        if seen[trial.system] < 4:
            seen[trial.system] += 1
            assert KINDS[kind].play(trial, tmp_path / str(number)) >= 0
    assert set(seen) == set(SYSTEMS)


@pytest.mark.parametrize("kind", SECONDS)
def test_a_little_of_what_is_real_breaks_nothing(kind: str, tmp_path: Path) -> None:
    for number, trial in enumerate(islice(KINDS[kind].plan(1, SECONDS[kind]), 2)):
        assert KINDS[kind].play(trial, tmp_path / str(number)) >= 0


@pytest.mark.parametrize(("kind", "system"), ONE_OF_EACH.items())
def test_one_of_what_takes_longer_breaks_nothing(kind: str, system: str, tmp_path: Path) -> None:
    planned = (trial for trial in KINDS[kind].plan(1, 0.05) if trial.system == system)
    for trial in islice(planned, 1):  # None, where the machine does not let it be tried.
        assert KINDS[kind].play(trial, tmp_path) > 0


def play_strangely(trial: Trial, folder: Path) -> int:
    """Do what trials may not do: hang whatever is raised, or die."""
    while trial.numbers == (1,):
        with suppress(BaseException):
            time.sleep(600)
    if trial.numbers == (2,):
        os._exit(7)
    return trial.numbers[0]


def test_a_trial_that_hangs_or_dies_is_broken_and_the_others_are_played() -> None:
    trials = [Trial("crash", "workflow", (number,)) for number in (1, 2, 3, 4)]
    played = {outcome.trial.numbers[0]: outcome for outcome in play_all(trials, 1, play_strangely, max_s=3)}
    assert played[1].fault == "it did not end within 3 s"
    assert played[2].fault == "the process that played it died: exit code 7"
    assert [(played[number].tried, played[number].fault) for number in (3, 4)] == [(3, ""), (4, "")]


def test_a_proof_that_was_cut_off_is_played_on_from_its_record(tmp_path: Path) -> None:
    record, (first, second) = Record(tmp_path / "record"), [Trial("crash", "loop", (number,)) for number in (1, 2)]
    record.add(Outcome(first, 1))
    record.add(Outcome(second, 2, "AssertionError"))
    whole = (tmp_path / "record").read_bytes()
    (tmp_path / "record").write_bytes(whole[:-20])
    assert record.played() == {first}
    record.add(Outcome(second, 2, "AssertionError"))
    assert [line.outcome() for line in record.lines()] == [Outcome(first, 1), Outcome(second, 2, "AssertionError")]


@pytest.mark.parametrize("name", BREAKS)
def test_an_engine_that_is_broken_on_purpose_is_caught(name: str, tmp_path: Path) -> None:
    faults = []
    with broken(name):
        for seed in range(SEEDS_TO_CATCH):
            try:
                KINDS["schedule"].play(Trial("schedule", "workflow", (seed,)), tmp_path / str(seed))
            except Exception as error:  # whatever shows it
                faults.append(error)
                break
    assert faults, f"{SEEDS_TO_CATCH} schedules found nothing wrong with an engine that is {name}"


def test_a_trial_is_repeated_by_its_name_and_counted_in_the_table() -> None:
    trial = Trial("crashes", "team", (3, 19))
    assert read_trial(trial.name) == trial
    table = Table()
    table.add(Outcome(trial, 2))
    table.add(Outcome(Trial("schedule", "loop", (4,)), 5, "AssertionError: twice"))
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.lines()]
    assert rows[0] == ["fault", *SYSTEMS, "in all", "violations"]
    assert rows[2] == ["crashes: crash points", "–", "–", "–", "2", "–", "2", "0"]
    assert rows[3] == ["schedule: crash points", "–", "5", "–", "–", "–", "5", "1"]
    again = Table()
    again.take(numbers(table, {"2026-11-17"}, {}))
    assert again.lines() == table.lines()


@pytest.mark.parametrize(("name", "ever"), [("sync", False), ("rename", False), ("spawn", True)])
def test_a_call_that_fails_is_said_in_a_sentence_and_a_resume_completes_the_run(name: str, ever: bool, tmp_path: Path) -> None:
    assert play_run("workflow", name, tmp_path / "first", ever=ever) > 0


def test_a_place_that_failed_does_not_fail_again_until_a_run_gets_through(tmp_path: Path) -> None:
    met = [play_run("workflow", "truncate", tmp_path / str(number), ever=False) for number in range(9)]
    assert met[0] > 0
    assert met[-1] == 0, met
