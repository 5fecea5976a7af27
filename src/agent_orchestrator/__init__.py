"""Agent Orchestrator as a library: start runs, drive them, follow them, approve them. docs/library.md has the walk.

Each name is loaded when it is first used, so that importing the package costs nothing.
"""

from __future__ import annotations

from importlib import import_module

TYPE_CHECKING = False
"""True to type checkers, which know it by this name; `typing` has the same and costs an import."""

if TYPE_CHECKING:
    from agent_orchestrator.core.budget import Amounts, Budget
    from agent_orchestrator.core.events import StopReason
    from agent_orchestrator.core.summary import Summary
    from agent_orchestrator.errors import (
        AgentMissing,
        InvalidSpec,
        OrcError,
        Refused,
        RunBusy,
        RunExists,
        Unavailable,
        UnknownRun,
        UsageError,
    )
    from agent_orchestrator.models import RunState, StepRuntime, StepStatus
    from agent_orchestrator.runs.choices import Permissions
    from agent_orchestrator.runs.directives import Sent
    from agent_orchestrator.runs.exits import exit_code
    from agent_orchestrator.runs.follow import JournalEntry
    from agent_orchestrator.runs.loop.options import LoopOptions
    from agent_orchestrator.runs.orchestrator import Orchestrator
    from agent_orchestrator.runs.phases.options import PhasesOptions
    from agent_orchestrator.runs.start import Change, Start, Started
    from agent_orchestrator.runs.swarm.options import DispatchOptions, SwarmOptions
    from agent_orchestrator.runs.team.options import TeamOptions
    from agent_orchestrator.runs.workflow.options import WorkflowOptions
    from agent_orchestrator.state import RunStatePersister
    from agent_orchestrator.store.port import StoredRun
    from agent_orchestrator.version import __version__

__all__ = [
    "AgentMissing",
    "Amounts",
    "Budget",
    "Change",
    "DispatchOptions",
    "InvalidSpec",
    "JournalEntry",
    "LoopOptions",
    "OrcError",
    "Orchestrator",
    "Permissions",
    "PhasesOptions",
    "Refused",
    "RunBusy",
    "RunExists",
    "RunState",
    "RunStatePersister",
    "Sent",
    "Start",
    "Started",
    "StepRuntime",
    "StepStatus",
    "StopReason",
    "StoredRun",
    "Summary",
    "SwarmOptions",
    "TeamOptions",
    "Unavailable",
    "UnknownRun",
    "UsageError",
    "WorkflowOptions",
    "__version__",
    "exit_code",
]

_HOMES = {
    "core.budget": ("Amounts", "Budget"),
    "core.events": ("StopReason",),
    "core.summary": ("Summary",),
    "errors": (
        *("AgentMissing", "InvalidSpec", "OrcError", "Refused", "RunBusy", "RunExists"),
        *("Unavailable", "UnknownRun", "UsageError"),
    ),
    "models": ("RunState", "StepRuntime", "StepStatus"),
    "runs.choices": ("Permissions",),
    "runs.directives": ("Sent",),
    "runs.exits": ("exit_code",),
    "runs.follow": ("JournalEntry",),
    "runs.loop.options": ("LoopOptions",),
    "runs.orchestrator": ("Orchestrator",),
    "runs.phases.options": ("PhasesOptions",),
    "runs.start": ("Change", "Start", "Started"),
    "runs.swarm.options": ("DispatchOptions", "SwarmOptions"),
    "runs.team.options": ("TeamOptions",),
    "runs.workflow.options": ("WorkflowOptions",),
    "state": ("RunStatePersister",),
    "store.port": ("StoredRun",),
    "version": ("__version__",),
}
"""The module of each name, which type checkers read above."""

if not TYPE_CHECKING:  # A type checker that saw this would believe in every name.

    def __getattr__(name):
        for module, names in _HOMES.items():
            if name in names:
                globals()[name] = value = getattr(import_module(f"{__name__}.{module}"), name)
                return value
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
