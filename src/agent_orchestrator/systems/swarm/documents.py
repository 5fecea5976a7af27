"""Shows a swarm run: the records of its beads, the line in lists, and the rest for `orc show --json`."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any

import msgspec

from agent_orchestrator.core.events import StopReason
from agent_orchestrator.core.files import beside
from agent_orchestrator.core.hold import HoldReason
from agent_orchestrator.core.lifecycle import Phase
from agent_orchestrator.core.summary import Summary
from agent_orchestrator.core.system import Document
from agent_orchestrator.core.units import US
from agent_orchestrator.systems.swarm.records import (
    ATTEMPTS,
    BUDGET_EXHAUSTED,
    RESULTS,
    RUNS,
    AttemptStatus,
    RunRecord,
    name_attempt,
)
from agent_orchestrator.systems.swarm.spec import SwarmSpec
from agent_orchestrator.systems.swarm.state import Bead, SwarmState

DOING_SHOWN = 5


def documents(state: SwarmState, now_us: int) -> Iterator[Document]:
    """Newest records first rewritten when they change, ended ones kept; a newer run prints the newest of its own beads."""
    for bead, held in state.beads.items():
        if held.run is None:
            continue
        if not held.released:
            yield Document(path=f"{RUNS}/{bead}.json", body=_newest(state, bead, held.run), checked=True)
            if held.result is not None:
                yield Document(path=f"{RESULTS}/{bead}.json", body=held.result, checked=True)
        for kept in held.kept:
            number = kept.run.attempt
            yield Document(path=name_attempt(bead, number, "run"), body=kept.run, once=True, checked=True)
            yield Document(path=name_attempt(bead, number, "result"), body=kept.result, once=True, checked=True)


def files(spec: SwarmSpec, run: str) -> Iterator[str]:
    """The records of the run's own beads, and what agents of this run are given."""
    yield f".agents/runs/{run}/"
    for folder in (RUNS, RESULTS, ATTEMPTS):
        yield from beside(folder)
    for bead in spec.beads:
        yield from (f"{RUNS}/{bead.id}.json", f"{RESULTS}/{bead.id}.json")
        yield from (name_attempt(bead.id, "[0-9]*", kind) for kind in ("run", "result"))


def _newest(state: SwarmState, bead: str, run: RunRecord) -> RunRecord:
    """The newest attempt; one that cannot go on for lack of money says so, until it may."""
    if run.status is not AttemptStatus.RUNNING or not _lacks_budget(state, bead):
        return run
    return msgspec.structs.replace(run, status=AttemptStatus.FAILED, failure_reason=BUDGET_EXHAUSTED)


def _lacks_budget(state: SwarmState, bead: str) -> bool:
    hold = state.doing.holds.get(bead) if state.doing.holds else None
    if hold is not None:
        return hold.why is HoldReason.BUDGET
    spent = state.lifecycle.phase is Phase.PAUSED and state.lifecycle.stop is StopReason.BUDGET_EXHAUSTED
    return spent and state.doing.of(bead) is None


def summary(state: SwarmState) -> Summary:
    """The run in one line, at a cost that does not grow with it."""
    life, spec = state.lifecycle, state.spec
    file = f"{RUNS}/{spec.beads[0].id}.json" if spec.dispatch else RUNS
    return Summary(
        status=life.status,
        stop=life.stop,
        detail=life.detail,
        done=state.dag.finished,
        total=len(state.beads),
        failed=len(state.failed),
        doing=tuple(effect.unit for effect in islice(state.doing, DOING_SHOWN)),
        facts={"state_file": file, "dispatch": spec.dispatch, **_outcome(state)},
    )


def _outcome(state: SwarmState) -> dict[str, Any]:
    """Give what analysis needs to know of a dispatch, so that it need not read journals; a run of many is folded."""
    if not state.spec.dispatch:
        return {}
    (spec,) = state.spec.beads
    held = state.beads[spec.id]
    if held.run is None or held.released:
        return {}
    told = {
        "bead": spec.id,
        "status": held.run.status.value,
        "attempt": held.attempt,
        "agent": held.run.agent,
        "model": held.run.model,
        "template": spec.template,
        "started_s": held.started_us // US,
        "duration_s": held.result.duration_seconds if held.result is not None else None,
        "failure_reason": held.run.failure_reason,
        "cost_usd": held.cost_usd,
    }
    return {"outcome": {name: value for name, value in told.items() if value is not None}}


def details(state: SwarmState) -> dict[str, Any]:
    """Give all that the records do not carry."""
    spec = state.spec
    return {
        **state.lifecycle.details(),
        "max_agents": spec.max_agents,
        "stop_after_failures": spec.stop_after_failures,
        "failed": dict(state.failed),
        "doing": state.doing.details(),
        "steps": {bead: _bead_details(state, bead, held) for bead, held in state.beads.items()},
    }


def _bead_details(state: SwarmState, bead: str, held: Bead) -> dict[str, Any]:
    spec = state.specs[bead]
    return {
        "standing": state.standing(bead).value,
        "priority": spec.priority,
        "needs": list(spec.needs),
        "repo": spec.repo,
        "branch": spec.branch or None,
        "verify": spec.verify,
        "attempt": held.attempt,
        "limit": held.limit,
        "due": state.due.get(bead),
        "merge": msgspec.to_builtins(held.merge) if held.merge is not None else None,
        "released": held.released,
        "cost_usd": held.cost_usd,
        "tokens": held.tokens,
        "summary": held.summary,
        **held.details(),
    }
