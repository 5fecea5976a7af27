"""Recalls what earlier loops of a repository learned, for the agents of a new one."""

from __future__ import annotations

from agent_orchestrator.runs.orchestrator import Orchestrator
from agent_orchestrator.store.port import Which
from agent_orchestrator.systems.loop.state import LoopState
from agent_orchestrator.systems.loop.system import LOOP

LOOPS_ASKED = 10
"""The number of loops that are asked, newest first: each is folded from its journal."""


def recall(orchestrator: Orchestrator, most: int) -> tuple[str, ...]:
    """Return the lessons of the newest loops, each once, newest first and at most so many."""
    found: dict[str, None] = {}
    for run in orchestrator.runs(Which(system=LOOP.name, most=LOOPS_ASKED)):
        if len(found) >= most:
            break
        state: LoopState = orchestrator.fold(run).state
        found.update(dict.fromkeys(reversed(state.learnings)))
    return tuple(found)[:most]
