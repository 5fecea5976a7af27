"""The ways of working, by name. Each is a folder; none imports another."""

from __future__ import annotations

from importlib import import_module

from agent_orchestrator.core.system import System
from agent_orchestrator.errors import UsageError

SYSTEMS = {"workflow": "WORKFLOW", "loop": "LOOP", "swarm": "SWARM", "phases": "PHASES", "team": "TEAM"}
"""Folder and the name of the value in it. Loaded when asked for: `orc list` needs none of them."""

STATE_FILES = {
    "workflow": ".agents/runs/{run}/run_state.json",
    "loop": ".aiwg/ralph/loops/{run}/state.json",
    "swarm": "state/runs/{run}.json",
    "phases": ".claude/agent-state.json",
    "team": "coordination/orchestrator_state.json",
}
"""Where a run's state file is printed, relative to its home."""


def find_system(name: str) -> System:
    """The system of that name."""
    if name not in SYSTEMS:
        raise UsageError(detail=f"There is no system {name!r}; this version knows: {', '.join(SYSTEMS)}.")
    system: System = getattr(import_module(f"agent_orchestrator.systems.{name}"), SYSTEMS[name])
    return system
