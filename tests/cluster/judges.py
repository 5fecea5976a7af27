"""The judge of pushes: the remote's own log of its refs, which no worker has a part in."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

_FENCE = re.compile(r"epoch (\d+), push (\d+)")


def judge_pushes(bare: Path, run: str) -> list[str]:
    """Return what is wrong with the pushes of a run that a remote took, which logs every move of a ref.

    The result came once; the fence went from push to push without a gap, and never back to an epoch that was over.
    """
    results, fences = _list_moves(bare, f"refs/heads/orc/{run}"), _list_moves(bare, f"refs/orc/fence/{run}")
    wrong = [] if len(results) == 1 else [f"branch orc/{run} was moved {len(results)} times"]
    said = [_FENCE.match(_git(bare, "log", "-1", "--format=%s", commit)) for commit in fences]
    pushes = [(int(one[1]), int(one[2])) for one in said if one is not None]
    if len(pushes) != len(fences) or [number for _, number in pushes] != list(range(1, len(pushes) + 1)):
        wrong.append(f"the pushes of run {run} are not one after the other: {pushes}")
    if [epoch for epoch, _ in pushes] != sorted(epoch for epoch, _ in pushes):
        wrong.append(f"a push of run {run} was taken from an epoch that was over: {pushes}")
    return wrong


def _list_moves(bare: Path, ref: str) -> list[str]:
    """Return the commits that a ref was put at, the oldest first."""
    file = bare / "logs" / ref
    return [line.split()[1] for line in file.read_text().splitlines()] if file.exists() else []


def _git(bare: Path, *words: str) -> str:
    return subprocess.run(["git", *words], cwd=bare, check=True, capture_output=True, text=True).stdout
