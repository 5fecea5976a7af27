"""The names that library users import to read and write state files of workflow runs by themselves.

Thin: the fields and their order are the workflow system's; here they also take `Path` values and print themselves.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from agent_orchestrator.core.units import iso
from agent_orchestrator.engine.clock import SystemClock
from agent_orchestrator.systems.workflow.state import StepStatus

__all__ = ["RunState", "StepRuntime", "StepStatus"]


def _now() -> str:
    return iso(SystemClock().now_us())


class StepRuntime(msgspec.Struct):
    """One step of a run; every field has a default."""

    status: StepStatus = StepStatus.PENDING
    attempts: int = 0
    iteration_count: int = 0
    report_path: str | Path | None = None
    started_at: str | None = None
    ended_at: str | None = None
    last_error: str | None = None
    artifacts: list[str | Path] = []
    metrics: dict[str, Any] = {}
    logs: list[str] = []
    manual_input_path: str | Path | None = None
    blocked_by_loop: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the step as JSON has it: status and paths as text, metrics as strings, null where nothing is known."""
        document: dict[str, Any] = msgspec.to_builtins(self, enc_hook=_text)
        document["metrics"] = {name: _metric(value) for name, value in self.metrics.items()}
        return document


class RunState(msgspec.Struct):
    """A whole run."""

    run_id: str
    workflow_name: str
    repo_dir: str | Path
    reports_dir: str | Path
    manual_inputs_dir: str | Path
    created_at: str = msgspec.field(default_factory=_now)
    steps: dict[str, StepRuntime] = {}

    def to_dict(self) -> dict[str, Any]:
        """Return all fields, and `updated_at` as of now."""
        return {
            "run_id": self.run_id,
            "workflow_name": self.workflow_name,
            "repo_dir": str(self.repo_dir),
            "reports_dir": str(self.reports_dir),
            "manual_inputs_dir": str(self.manual_inputs_dir),
            "created_at": self.created_at,
            "updated_at": _now(),
            "steps": {step: runtime.to_dict() for step, runtime in self.steps.items()},
        }


def _text(value: object) -> str:
    if isinstance(value, Path):
        return str(value)
    raise NotImplementedError(f"{type(value).__name__} has no place in a state file")


def _metric(value: object) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value, enc_hook=_text).decode()
