"""The sizes of the changes that wait for an approval, measured behind the answers: git may take its time."""

from __future__ import annotations

import asyncio
import contextlib
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, NamedTuple

import msgspec

from agent_orchestrator.engine.clock import SystemClock
from agent_orchestrator.errors import OrcError
from agent_orchestrator.runs.changes import ChangeSize, find_judged_changes
from agent_orchestrator.surfaces.web.repositories import Repositories, Repository, find_run

SIZES_KEPT = 500
AGAIN_S = 10.0
"""The time after which the change behind a question is measured again, if its run has moved since."""

Need = dict[str, Any]
Question = tuple[str, str]
"""The key of a run, and the effect that asks."""


class MeasuredChange(NamedTuple):
    """The size of a change; None where it is not known."""

    row: int
    """The row of the journal that the run had."""
    at_s: float
    size: dict[str, int] | None


class ChangeSizes:
    """The sizes behind all questions; each is measured when somebody looks at it, one after the other."""

    def __init__(self, repositories: Repositories, tell: Callable[[], None]) -> None:
        self._repositories, self._tell, self._clock = repositories, tell, SystemClock()
        self._known: OrderedDict[Question, MeasuredChange] = OrderedDict()
        self._due: dict[Question, Need] = {}
        self._task: asyncio.Task[None] | None = None

    def fill(self, needs: list[Need]) -> list[Need]:
        """Return the questions with what is known of their changes; the rest is measured, and then everybody is told."""
        self._due |= {_question(need): need for need in needs if self._is_due(need)}
        if self._due and (self._task is None or self._task.done()):
            self._task = asyncio.create_task(self._measure())
        return [{**need, "change": known.size if (known := self._known.get(_question(need))) else None} for need in needs]

    def _is_due(self, need: Need) -> bool:
        known = self._known.get(_question(need))
        if known is None:
            return True
        return known.row != need["row"] and self._clock.monotonic_s() - known.at_s >= AGAIN_S

    async def _measure(self) -> None:
        changed = False
        while self._due:
            question, need = next(iter(self._due.items()))
            repository, run = self._repositories.find(need["key"])
            size = await asyncio.to_thread(measure_question, repository, run, need["unit"])
            known = self._known.pop(question, None)
            changed = changed or size != (known.size if known is not None else None)
            self._known[question] = MeasuredChange(need["row"], self._clock.monotonic_s(), size)
            while len(self._known) > SIZES_KEPT:
                self._known.popitem(last=False)
            del self._due[question]
        if changed:
            self._tell()


def _question(need: Need) -> Question:
    return need["key"], need["effect"]


def measure_question(repository: Repository, run_id: str, unit: str) -> dict[str, int] | None:
    """Return the size of the change that a unit asks about; None where there is none, or nothing is known of it."""
    with contextlib.suppress(OrcError, OSError), repository.make_orchestrator() as orchestrator:
        run = find_run(orchestrator, run_id)
        changes = find_judged_changes(orchestrator, run, unit)
        size = sum((ChangeSize.of(one.files()) for one in changes), start=ChangeSize())
        return dict(msgspec.to_builtins(size))
    return None
