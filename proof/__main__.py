"""`python -m proof`: plays all kinds of faults and prints one table; exits with 1 when anything broke.

A long proof can be played in slices: with `--record FILE` every outcome is added to a file, and what is in it is not
played again.
"""

from __future__ import annotations

import argparse
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from itertools import chain
from pathlib import Path

from proof.broken import BREAKS
from proof.kinds import KINDS
from proof.page import write_page
from proof.pool import play, play_all, play_broken
from proof.record import Record, describe_commit
from proof.table import Table
from proof.trial import SYSTEMS, Trial, read_trial

FAULTS_SHOWN = 5
BROKEN_SEEDS = 200
"""Schedules that an engine broken on purpose is played with, at most."""


def read_arguments() -> argparse.Namespace:
    """Read the command line; a mistake in it ends the program with a sentence."""
    parser = argparse.ArgumentParser(
        prog="python -m proof", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("kinds", nargs="*", metavar="KIND", help=f"only these: {', '.join(KINDS)}")
    parser.add_argument("--system", choices=SYSTEMS, help="only trials of this one")
    parser.add_argument("--seed", type=int, default=0, help="the first seed")
    parser.add_argument("--scale", type=float, default=1.0, help="how much of each kind: 1 is all of it, 0.01 takes seconds")
    parser.add_argument("--workers", type=int, help="trials at once; as many as there are processors if not given")
    parser.add_argument("--minutes", type=float, help="begin no more trials after that time")
    parser.add_argument("--record", metavar="FILE", type=Path, help="add outcomes to a file, and leave out what is in it")
    parser.add_argument(
        "--page", action="store_true", help="write the table of the record into docs/durability.md, and play nothing"
    )
    parser.add_argument("--add", action="store_true", help="with --page: add the record to what the page has; each record once")
    parser.add_argument("--repeat", metavar="TRIAL", help="play one trial by its name, as in 'crash workflow 12'")
    parser.add_argument("--broken", choices=BREAKS, help="break the engine on purpose, and say whether that is found out")
    given = parser.parse_args()
    unknown = [name for name in given.kinds if name not in KINDS]
    if unknown:
        parser.error(f"there is no kind {unknown[0]}; there are {', '.join(KINDS)}")
    if given.page and not (given.record and given.record.exists()):
        parser.error("--page needs --record FILE, and a file that is there")
    if given.repeat:
        try:
            given.repeat = read_trial(given.repeat)
        except ValueError as error:
            parser.error(str(error))
        if given.repeat.kind not in KINDS:
            parser.error(f"there is no kind {given.repeat.kind}; there are {', '.join(KINDS)}")
    return given


def main() -> int:
    """Do what the command line says."""
    given = read_arguments()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.default_int_handler)
    if given.repeat:
        return repeat(given.repeat)
    if given.broken:
        return catch(given.broken, given.seed, given.workers)
    if given.page:
        return write_page(Record(given.record), add=given.add)
    return prove(given)


def repeat(trial: Trial) -> int:
    """Play one trial."""
    outcome = play(trial)
    print(outcome.fault or f"{trial.name}: nothing broke ({outcome.tried} {KINDS[trial.kind].unit} tried)")
    return 1 if outcome.fault else 0


def catch(name: str, seed: int, workers: int | None) -> int:
    """Play schedules with a broken engine until one of them shows it."""
    began_s = time.monotonic()
    trials = (Trial("schedule", "workflow", (seed + number,)) for number in range(BROKEN_SEEDS))
    for outcome in play_all(trials, workers, play_broken(name)):
        if outcome.fault:
            took_s = time.monotonic() - began_s
            print(f"{outcome.fault.strip()}\n\nThe {name} engine was caught by '{outcome.trial.name}' after {took_s:.1f} s.")
            return 0
    print(f"NOT CAUGHT: {BROKEN_SEEDS} schedules found nothing wrong with the {name} engine.")
    return 1


def prove(given: argparse.Namespace) -> int:
    """Play what is planned and not in the record yet."""
    record = Record(given.record) if given.record else None
    played = record.played() if record else set()
    chosen = [KINDS[name] for name in given.kinds or KINDS]
    all_planned = chain.from_iterable(kind.plan(given.seed, given.scale) for kind in chosen)
    planned = (trial for trial in all_planned if given.system in (None, trial.system))
    table, began_s = Table(), time.monotonic()
    end_s = began_s + given.minutes * 60 if given.minutes else None
    with suppress(KeyboardInterrupt):  # What was played so far is worth a table.
        for outcome in play_all(_until(end_s, (trial for trial in planned if trial not in played)), given.workers):
            table.add(outcome)
            if record:
                record.add(outcome)
            if outcome.fault and len(table.faults) <= FAULTS_SHOWN:
                again = f"python -m proof --repeat '{outcome.trial.name}'"
                print(f"BROKEN: {outcome.trial.name}\n{outcome.fault}\nagain: {again}\n", flush=True)
    took_s = time.monotonic() - began_s
    print(f"commit {describe_commit()}, seed {given.seed}, scale {given.scale:g}, {took_s:.0f} s\n")
    print("\n".join(table.lines()))
    print(f"\n{len(table.faults)} violations in {sum(table.trials.values()):,} trials")
    return 1 if table.faults else 0


def _until(end_s: float | None, trials: Iterator[Trial]) -> Iterator[Trial]:
    for trial in trials:
        if end_s is not None and time.monotonic() >= end_s:
            return
        yield trial


if __name__ == "__main__":
    sys.exit(main())
