"""The record of a proof: one line of JSON for each trial, so that a long proof can be played in slices and added up."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from agent_orchestrator.version import __version__
from proof.trial import Outcome, Trial, read_trial

ROOT = Path(__file__).resolve().parents[1]


class Line(msgspec.Struct, frozen=True, omit_defaults=True):
    """One trial, when it was played, and what of the product it was played with."""

    trial: str
    tried: int
    day: str
    commit: str
    fault: str = ""

    def outcome(self) -> Outcome:
        """Return the outcome that it stands for."""
        return Outcome(read_trial(self.trial), self.tried, self.fault)


class Record:
    """A file of lines, added to and never rewritten."""

    def __init__(self, path: Path) -> None:
        self._path, self._commit = path, describe_commit()
        path.parent.mkdir(parents=True, exist_ok=True)

    def lines(self) -> Iterator[Line]:
        """Read it; a last line that was cut off by a kill is left out, and its trial played again."""
        if not self._path.exists():
            return
        for line in self._path.read_bytes().splitlines():
            try:
                yield msgspec.json.decode(line, type=Line)
            except msgspec.DecodeError:
                continue

    def played(self) -> set[Trial]:
        """Return the trials that are in it."""
        return {read_trial(line.trial) for line in self.lines()}

    def add(self, outcome: Outcome) -> None:
        """Write an outcome down."""
        day = f"{datetime.now(UTC):%Y-%m-%d}"
        line = Line(outcome.trial.name, outcome.tried, day, self._commit, outcome.fault)
        with self._path.open("ab") as file:
            if file.tell() and not _ends_with_a_line(self._path):
                file.write(b"\n")
            file.write(msgspec.json.encode(line) + b"\n")


def _ends_with_a_line(path: Path) -> bool:
    with path.open("rb") as file:
        file.seek(-1, os.SEEK_END)
        return file.read(1) == b"\n"


def describe_commit() -> str:
    """Return the commit of the product that is played with; its version where there is no git."""
    asked = subprocess.run(
        ["git", "describe", "--always", "--dirty", "--exclude=*"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    return asked.stdout.strip() or __version__
