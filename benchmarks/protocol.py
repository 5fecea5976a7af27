"""The way in which every program that is measured is asked: one JSON object per line, one answer per line.

Ours, the floor and the peers are child processes of the same kind, so that each pays the same for being asked. Only the
standard library is imported here: a peer's environment has nothing of ours.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from itertools import pairwise
from typing import Any

RECORD: dict[str, Any] = {"status": "COMPLETED", "summary": "x" * 120, "attempt": 1, "exit_code": 0}
"""The result of a step, the same for everybody: about 170 bytes as JSON."""


class Entries:
    """The times at which steps were entered."""

    def __init__(self) -> None:
        self._at_s: list[float] = []

    def enter(self) -> None:
        """Note that a step begins."""
        self._at_s.append(time.perf_counter())

    def take_gaps(self) -> list[float]:
        """Return the seconds from each step's beginning to the next one's, and forget them."""
        at_s, self._at_s = self._at_s, []
        return [after - before for before, after in pairwise(at_s)]


def serve(**asked: Callable[..., object]) -> None:
    """Answer what is asked by name until the input ends; whatever a library prints goes to stderr."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    for line in sys.stdin:
        request = json.loads(line)
        name = request.pop("do")
        answer = asked[name](**request) if name in asked else None
        answers.write(json.dumps(answer) + "\n")
        answers.flush()
