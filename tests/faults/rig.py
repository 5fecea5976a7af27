"""Kills git, or everything, at each point at which an operation changes a directory, and repeats the operation after that."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from tests.faults.git_work import OPERATIONS, observe

ROOT = Path(__file__).resolve().parents[2]
FOREVER = 1_000_000


class Fault(NamedTuple):
    """A point to kill at, and whether all of the process group dies there or git alone."""

    at: int
    scope: str


class Bench:
    """A repository that is made anew for each try, always in the same place, and a process that performs operations on it."""

    def __init__(self, folder: Path, killer: Path, name: str) -> None:
        self.name, self.killer = name, killer
        self.repo, self.kept, self.answer = folder / "repo", folder / "kept", folder / "answer"
        self.count = folder / "count"
        OPERATIONS[name].prepare(self.repo)
        shutil.copytree(self.repo, self.kept, symlinks=True)
        self._player = subprocess.Popen(
            [sys.executable, "-m", "tests.faults.player"],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": f"{ROOT}/src:{ROOT}"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def close(self) -> None:
        """End the process."""
        self._player.communicate()

    def reset(self) -> None:
        """Make the repository what it was."""
        shutil.rmtree(self.repo)
        shutil.copytree(self.kept, self.repo, symlinks=True)
        self.count.unlink(missing_ok=True)

    def perform(self, fault: Fault | None = None) -> int:
        """Perform the operation, killed or not; return how its process ended."""
        variables = {name: os.environ[name] for name in os.environ if name.startswith("GIT_")} | {"PATH": os.environ["PATH"]}
        if fault is not None:
            variables |= {"LD_PRELOAD": str(self.killer), "FAULT_COUNT": str(self.count)}
            variables |= {"FAULT_AT": str(fault.at), "FAULT_SCOPE": fault.scope}
        self.answer.unlink(missing_ok=True)
        assert self._player.stdin is not None
        assert self._player.stdout is not None
        self._player.stdin.write(json.dumps([self.name, str(self.repo), str(self.answer), variables]) + "\n")
        self._player.stdin.flush()
        return int(self._player.stdout.readline())

    def count_points(self) -> int:
        """Return how many points the operation passes when nobody kills it."""
        self.reset()
        assert self.perform(Fault(FOREVER, "git")) == 0, self.answer.read_text()
        return self.count.stat().st_size

    def see(self) -> dict[str, object]:
        """Return the answer of the last operation and the state that it left."""
        return {"answer": self.answer.read_text(), **observe(self.repo)}

    def is_killed(self, fault: Fault) -> bool:
        """Perform the operation with a fault on the repository as it was; tell whether it was reached."""
        self.reset()
        self.perform(fault)
        return self.count.exists() and self.count.stat().st_size >= fault.at


@contextmanager
def open_bench(folder: Path, killer: Path, name: str) -> Iterator[Bench]:
    """Make a bench, and end its process afterwards."""
    bench = Bench(folder, killer, name)
    try:
        yield bench
    finally:
        bench.close()


def find_violations(bench: Bench, faults: Iterable[Fault]) -> list[str]:
    """Kill the operation at each fault and repeat it; return where it did not end in the state that it has without a fault."""
    bench.reset()
    assert bench.perform() == 0, bench.answer.read_text()
    wanted = bench.see()
    found = []
    for fault in faults:
        if not bench.is_killed(fault):
            continue
        if bench.perform() != 0:
            found.append(f"{bench.name}, {fault}: {bench.answer.read_text() if bench.answer.exists() else 'died'}")
        elif (seen := bench.see()) != wanted:
            differ = {key: (seen[key], wanted[key]) for key in wanted if seen[key] != wanted[key]}
            found.append(f"{bench.name}, {fault}: {differ}")
    return found
