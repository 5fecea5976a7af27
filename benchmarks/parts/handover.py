"""From one agent to the next: agents do next to nothing, so that only the way between them costs anything."""

from __future__ import annotations

import os
import statistics
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks.bench import Bench
from benchmarks.entrants import FLOOR, OURS
from benchmarks.measure import Figure, of_rounds

AGENTS, COMMITS = 60, 100
NAMED = ("-c", "user.name=bench", "-c", "user.email=bench@localhost")
TARGET = 1.3
WHY = (
    "between an end and the next start the end is found and judged, what it left is read, both are journaled, and a folder, a "
    "lock, a prompt and state files are written: about a millisecond of Python and files in some twenty pieces"
)
GIT_TARGET = 2.0
WHY_GIT = (
    "each tree is kept for a way back with six commands of git, where the loop has two; and where launches have cgroups, to "
    "enter one waits for the kernel unless another start came just before"
)
LOOP = 'cd "$1"; i=0; while [ $i -lt "$2" ]; do (exec /bin/true) >>out 2>>err </dev/null; i=$((i + 1)); done'
COMMITTING = """cd "$1"; git config core.fsync added; i=0; while [ $i -lt "$2" ]; do
(exec /bin/sh -c "$3") >>.git/out 2>>.git/err </dev/null
git add --all && git commit --quiet --message work; i=$((i + 1)); done"""
"""A loop whose commits are on the disk before its next turn, as ours are."""
CHANGE = "echo changed >>changed"


def measure(bench: Bench) -> Iterator[Figure]:
    """One agent's start to the next one's against a bare shim run and a commit, and against a loop in bash."""
    ratios, kept, loops = [], [], []
    count = bench.size(AGENTS, 5)
    with bench.opened([FLOOR, OURS]) as subjects:
        floor, folder = subjects[FLOOR.name], bench.folder / "shims"
        folder.mkdir()
        floor.ask("steps", count=bench.size(300))
        subjects[OURS.name].ask("handovers", count=count)

        def shims(*, keep: bool = False) -> float:
            return float(statistics.median(floor.ask("shims", folder=str(folder), count=count, keep=keep)))

        for _ in bench.rounds():
            commit_s = statistics.median(floor.ask("steps", count=bench.size(COMMITS)))
            before_s = shims()
            loop_s = _bash_s(folder, count)
            ours_s = statistics.median(subjects[OURS.name].ask("handovers", count=count))
            bare_s = commit_s + (before_s + shims()) / 2
            ratios.append(ours_s / bare_s)
            kept.append((commit_s + shims(keep=True)) / bare_s)
            loops.append(ours_s / ((loop_s + _bash_s(folder, count)) / 2))
    yield of_rounds("orc: agent to agent / a bare shim run and a bare commit (p50)", ratios, target=TARGET, why=WHY)
    yield of_rounds("a bare shim run that keeps the files of a launch, and a commit / the same", kept)
    yield of_rounds("orc: agent to agent / one turn of a bash loop", loops, note="the loop keeps nothing and commits nothing")
    yield from _in_a_repository(bench)


def _in_a_repository(bench: Bench) -> Iterator[Figure]:
    """The same in a git repository, where each agent changes a file, against a loop in bash that commits what changed."""
    ratios = []
    folder, count = bench.folder / "repository", bench.size(AGENTS, 5)
    for path in (folder, ours := bench.folder / "ours"):
        path.mkdir()
        for command in (("init",), ("commit", "--allow-empty", "--message", "begin")):
            subprocess.run(["git", *NAMED, *command, "--quiet"], cwd=path, check=True)
    with OURS.start(ours) as subject:
        subject.ask("open", folder=str(ours))
        for _ in bench.rounds(share=0.5):
            loop_s = _bash_s(folder, count, COMMITTING, CHANGE)
            ours_s = statistics.median(subject.ask("handovers", count=count, argv=["/bin/sh", "-c", CHANGE]))
            ratios.append(ours_s / ((loop_s + _bash_s(folder, count, COMMITTING, CHANGE)) / 2))
    named = "orc in a git repository, each agent changing a file: agent to agent / one turn of a bash loop that commits"
    yield of_rounds(named, ratios, target=GIT_TARGET, why=WHY_GIT)


def _bash_s(folder: Path, count: int, loop: str = LOOP, *more: str) -> float:
    began = time.perf_counter()
    environ = os.environ | {f"GIT_{who}_{what}": "bench" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    subprocess.run(["bash", "-c", loop, "bash", str(folder), str(count), *more], check=True, env=environ)
    return (time.perf_counter() - began) / count
