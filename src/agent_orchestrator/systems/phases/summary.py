"""A phased run in a line, and everything that its state file does not carry."""

from __future__ import annotations

from typing import Any

import msgspec

from agent_orchestrator.core.effects import AskHuman
from agent_orchestrator.core.events import StopReason
from agent_orchestrator.core.summary import Summary
from agent_orchestrator.core.unit import UnitRecord
from agent_orchestrator.systems.phases.documents import warnings
from agent_orchestrator.systems.phases.state import PhasesState

DOING_SHOWN = 5


def summary(state: PhasesState) -> Summary:
    """The run in one line."""
    life = state.lifecycle
    status, stop, detail = life.phase.value, life.stop, life.detail
    asking = [effect.unit for effect in state.doing if isinstance(effect, AskHuman)]
    if life.ended:
        status = (life.stop or StopReason.FAILED).value
    elif life.running and asking and len(asking) == len(state.doing):
        status, stop, detail = "waiting", StopReason.WAITING_ON_HUMAN, f"a person about {', '.join(asking)}"
    elif life.running:
        detail = state.stage.value
    return Summary(
        status=status,
        stop=stop,
        detail=detail,
        done=len(state.completed),
        total=len(state.plan),
        failed=len(state.failures),
        doing=tuple(effect.unit for effect in list(state.doing)[:DOING_SHOWN]),
    )


def details(state: PhasesState) -> dict[str, Any]:
    """Everything the state file does not carry."""
    life = state.lifecycle
    return {
        "phase": life.phase.value,
        "stop": life.stop.value if life.stop is not None else None,
        "detail": life.detail,
        "status": state.status.value,
        "branch": state.spec.branch,
        "start": state.start,
        "pull_request": state.pull_request or None,
        "skipped": dict(state.skipped),
        "failures": dict(state.failures),
        "warnings": warnings(state),
        "questions": list(state.questions),
        "checks_wanted": list(state.wanted_checks),
        "archived": state.archived,
        "doing": [{"step": effect.unit, "effect": effect.id} for effect in state.doing],
        "plan": [msgspec.to_builtins(task) for task in state.plan.values()],
        "steps": {unit: _step(state, unit) for unit in state.steps},
    }


def _step(state: PhasesState, unit: str) -> dict[str, Any]:
    work, record = state.works.get(unit), state.records.get(unit) or UnitRecord()
    return {**record.details(), "summary": "", "due": work.due if work is not None else None}
