"""The figures of the iterations: scores, deltas, usage, the best one, and whether more of them bring little.

It suggests; it never stops a loop.
"""

from __future__ import annotations

from typing import Any

from agent_orchestrator.core.text import stamp
from agent_orchestrator.core.units import US
from agent_orchestrator.systems.loop.effects import ref_of
from agent_orchestrator.systems.loop.state import Iteration, LoopState

SUGGESTION = "the last iterations brought little: look at `orc loop best`, steer the loop, or stop it"


def analytics(state: LoopState) -> dict[str, Any]:
    """analytics.json."""
    iterations = [_iteration(one) for one in state.iterations]
    totals: dict[str, Any] = {
        "iterations": len(iterations),
        "successful_iterations": state.successes,
        "failed_iterations": state.failures,
        "duration_seconds": round(state.worked_us / US, 1),
    }
    if state.tokens is not None:
        totals["tokens"] = state.tokens
    if state.cost_usd is not None:
        totals["cost_usd"] = round(state.cost_usd, 6)
    document: dict[str, Any] = {
        "loop_id": state.context.run,
        "task": state.spec.task,
        "last_updated": stamp(state.updated_us),
        "iterations": iterations,
        "totals": totals,
        "trajectory": _trajectory(state),
        "best_iteration": None,
        "diminishing_returns": {"detected": state.plateau is not None},
    }
    if state.best is not None:
        best = state.best
        document["best_iteration"] = {"iteration": best.number, "quality_score": best.score}
        if best.saved is not None:
            document["best_iteration"]["ref"] = ref_of(state.context.run, best.number)
    if state.plateau is not None:
        document["diminishing_returns"] |= {"at_iteration": state.plateau, "suggestion": SUGGESTION}
    return document


def _iteration(one: Iteration) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "iteration": one.number,
        "started_at": stamp(one.started_us),
        "ended_at": stamp(one.ended_us),
        "duration_seconds": round((one.ended_us - one.started_us) / US, 1),
        "quality_score": one.score,
        "quality_delta": one.delta,
        "verification": "passed" if one.passed and not one.blocked else "blocked" if one.blocked else "failed",
    }
    if one.tokens is not None:
        entry["tokens"] = one.tokens
    if one.cost_usd is not None:
        entry["cost_usd"] = round(one.cost_usd, 6)
    if one.saved is not None:
        saved = one.saved
        entry |= {"files_changed": saved.files_changed, "lines_added": saved.lines_added, "lines_removed": saved.lines_removed}
    if one.tests is not None:
        entry |= {"tests": one.tests, "tests_passed": one.tests_passed}
    return entry


def _trajectory(state: LoopState) -> str:
    scores = [one.score or 0.0 for one in state.iterations[-3:]]
    if len(scores) < 2:
        return "unknown"
    if scores[-1] > scores[0]:
        return "improving"
    return "declining" if scores[-1] < scores[0] else "flat"
