"""Our own git, killed at each change that it makes to a directory, alone or with everything that belongs to us.

The operations are those of `tests/faults`: each, repeated after the kill, ends as if nothing had been.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

from proof.trial import Kind, Trial
from tests.conftest import pytest_configure
from tests.faults.git_work import OPERATIONS
from tests.faults.preload import build
from tests.faults.rig import Fault, find_violations, open_bench

NAMES = tuple(OPERATIONS)
SCOPES = ("group", "git")


CHUNK, CHUNKS = 20, 15
"""Points of one trial, and trials of one operation: those beyond its last point try nothing."""


def plan(seed: int, scale: float) -> Iterator[Trial]:
    """Every point of every operation; a smaller scale leaves points out."""
    stride = max(1, round(1 / max(scale, 0.01)))
    for number in range(len(NAMES)):
        for scope in range(len(SCOPES)):
            for chunk in range(-(-CHUNKS // stride)):
                yield Trial("git", "any", (number, scope, 1 + seed % stride + chunk * CHUNK * stride, stride))


def play(trial: Trial, folder: Path) -> int:
    """Kill one operation at its points, one after another."""
    number, scope, first, stride = trial.numbers
    pytest_configure()
    folder.mkdir(parents=True)
    killer = build(Path(tempfile.gettempdir(), "orc-proof"))
    with open_bench(folder, killer, NAMES[number]) as bench:
        last = min(bench.count_points(), first + (CHUNK - 1) * stride)
        faults = [Fault(at, SCOPES[scope]) for at in range(first, last + 1, stride)]
        violations = find_violations(bench, faults) if faults else []
        assert not violations, "\n".join(violations)
    return len(faults)


KINDS = (Kind(name="git", unit="kills of our git", plan=plan, play=play),)
