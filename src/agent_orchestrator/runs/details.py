"""A run in full as plain data. It knows budgets, and with them agents, which the facts of a list of runs do without."""

from __future__ import annotations

from typing import Any

import msgspec

from agent_orchestrator.core.effects import AskHuman
from agent_orchestrator.engine.journal import Folded
from agent_orchestrator.runs.budget import budget_facts
from agent_orchestrator.runs.facts import run_facts
from agent_orchestrator.runs.orchestrator import Orchestrator
from agent_orchestrator.store.port import StoredRun


def show_facts(orchestrator: Orchestrator, run: StoredRun, folded: Folded) -> dict[str, Any]:
    """Return everything known about a run: its state document, and what that does not carry."""
    asked = [one for one in folded.state.doing if isinstance(one, AskHuman)]
    return {
        **run_facts(run, orchestrator.owner(run)),
        "state": _document(folded, orchestrator.clock.now_us()),
        "details": folded.system.details(folded.state),
        "questions": [{"id": one.id, "unit": one.unit, "text": one.question} for one in asked],
        "spoken": [{"unit": one.unit, "text": one.text} for one in folded.state.doing.spoken.values()],
        "usage": [msgspec.to_builtins(row) for row in orchestrator.store.usage(run.id)],
        "sandbox": msgspec.to_builtins(run.context.sandbox),
        "budget": budget_facts(orchestrator, run, folded),
    }


def _document(folded: Folded, now_us: int) -> Any:
    """Return the run's state document as it would be printed now."""
    first = next(iter(folded.system.documents(folded.state, now_us)), None)
    return msgspec.to_builtins(first.body) if first is not None else {}
