"""Our git killed at any change of a directory, alone or with everything: repeated, each operation ends as if nothing had been."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.faults.git_work import OPERATIONS, run
from tests.faults.preload import build, find_compiler
from tests.faults.rig import Fault, find_violations, open_bench

TRIES = 12
"""The points of each operation that are tried by default, spread evenly; ORC_FAULTS=all tries each of them."""


@pytest.fixture(scope="session")
def killer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The library that kills, compiled once."""
    if find_compiler() is None:
        pytest.skip("there is no C compiler")
    return build(tmp_path_factory.mktemp("killer"))


@pytest.mark.parametrize("name", OPERATIONS)
def test_whatever_git_was_doing_when_it_was_killed_is_done_by_the_next_one(tmp_path: Path, killer: Path, name: str) -> None:
    with open_bench(tmp_path, killer, name) as bench:
        points = bench.count_points()
        step = 1 if os.environ.get("ORC_FAULTS") == "all" else max(1, points // TRIES)
        # The place where trying begins differs from operation to operation.
        first = 1 + sum(map(ord, name)) % step
        faults = [Fault(at, ("group", "git")[at % 2]) for at in range(first, points + 1, step)]
        if step == 1:
            faults = [Fault(at, scope) for at in range(1, points + 1) for scope in ("group", "git")]
        assert find_violations(bench, faults) == []


def test_what_somebody_wrote_after_an_interrupted_landing_is_kept(tmp_path: Path, killer: Path) -> None:
    with open_bench(tmp_path, killer, "land in a checkout") as bench:
        points = bench.count_points()
        for at in range(points, 0, -max(1, points // TRIES)):
            assert bench.is_killed(Fault(at, "group"))
            (bench.repo / "c.py").write_text("mine\n")
            assert bench.perform() == 0, bench.answer.read_text()
            assert (bench.repo / "c.py").read_text() == "mine\n", at
            status = run(bench.repo, "status", "--porcelain")
            assert status == "M c.py", (at, status)
