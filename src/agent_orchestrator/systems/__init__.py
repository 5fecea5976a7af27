"""The ways of working, by name. Each is a folder; none imports another.

A folder has `about.py` with `ABOUT`, which loads nothing else, and `system.py` with the system, named like the folder in
capitals. It is loaded when a run of it is: `orc list` needs none of them.
"""

from __future__ import annotations

from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, TypeVar

from agent_orchestrator.core.about import About
from agent_orchestrator.errors import UsageError

if TYPE_CHECKING:
    from agent_orchestrator.core.system import System

Part = TypeVar("Part")

SYSTEMS = ["workflow", "loop", "swarm", "phases", "team"]
"""The first one takes the files that say nothing of their system."""


def find_system(name: str) -> System:
    """Load the system of that name; raise a UsageError for an unknown one."""
    system: System = getattr(_load(name, "system"), name.upper())
    return system


def about(name: str) -> About:
    """Return what is known of a system without loading it."""
    found: About = _load(name, "about").ABOUT
    return found


def _load(name: str, part: str) -> ModuleType:
    if name not in SYSTEMS:
        raise UsageError(detail=f"There is no system {name!r}; this version knows: {', '.join(SYSTEMS)}.")
    return import_module(f"agent_orchestrator.systems.{name}.{part}")


def find_part(module: str, name: str, default: Part) -> Part:
    """Return a value of a module that a system may have in another room, as `runs.<system>.hooks`; else the default."""
    module = f"agent_orchestrator.{module}"
    try:
        found: Part = getattr(import_module(module), name)
    except ModuleNotFoundError as error:
        if error.name is None or not module.startswith(error.name):
            raise
        return default
    return found
