"""Shows a loop: the seed's state file, its checkpoints and analytics, the line in lists, and the rest."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from agent_orchestrator.core.events import StopReason
from agent_orchestrator.core.files import beside
from agent_orchestrator.core.summary import Summary
from agent_orchestrator.core.system import Document
from agent_orchestrator.core.text import stamp
from agent_orchestrator.core.units import US
from agent_orchestrator.systems.loop.analytics import analytics
from agent_orchestrator.systems.loop.checkpoints import checkpoint_path
from agent_orchestrator.systems.loop.effects import loop_directory, ref_of
from agent_orchestrator.systems.loop.registry import LEGACY, REGISTRY
from agent_orchestrator.systems.loop.spec import ExecutionMode, LoopSpec
from agent_orchestrator.systems.loop.state import UNIT, Check, LoopState
from agent_orchestrator.systems.loop.transitions import LoopStatus

VERSION = "2.0.0"


class Configuration(msgspec.Struct, kw_only=True):
    """`configuration` in state.json."""

    max_iterations: int
    timeout_minutes: int | None
    interactive: bool
    auto_test: bool
    checkpoint_interval: int
    execution_mode: str


class Progress(msgspec.Struct, kw_only=True):
    """`progress` in state.json."""

    completion_checks: list[Check]
    last_completion_check: Check | None


class Metrics(msgspec.Struct, kw_only=True, omit_defaults=True):
    """`metrics` in state.json; tokens and cost are left out until they are known."""

    total_iterations: int
    successful_iterations: int
    failed_iterations: int
    total_tokens: int | None = None
    total_cost_usd: float | None = None
    total_duration_seconds: int
    average_iteration_time_seconds: float


class LoopDocument(msgspec.Struct, kw_only=True):
    """`state.json`: these fields, in this order."""

    version: str
    loop_id: str
    status: LoopStatus
    iteration: int
    task: str
    completion_criteria: str
    started_at: str
    last_updated: str
    completed_at: str | None
    owner: str
    pid: int | None
    working_directory: str
    configuration: Configuration
    progress: Progress
    metrics: Metrics
    last_checkpoint: str | None
    error_context: dict[str, Any] | None


def documents(state: LoopState, now_us: int) -> list[Document]:
    """The loop's print-outs; times are those of facts, so that the same state prints the same files."""
    directory = loop_directory(state.context.run)
    files = [
        Document(path=checkpoint_path(state.context.run, number), body=state.checkpoints[number], once=True)
        for number in sorted(state.checkpoints)
    ]
    return [
        Document(path=f"{directory}/state.json", body=state_document(state)),
        Document(path=f"{directory}/analytics/analytics.json", body=analytics(state)),
        *files,
    ]


def files(spec: LoopSpec, run: str) -> Iterator[str]:
    """The loop's directory, and what is written about all loops."""
    yield f"{loop_directory(run)}/"
    yield from (REGISTRY, LEGACY, *beside(REGISTRY.rpartition("/")[0]))


def state_document(state: LoopState) -> LoopDocument:
    """state.json."""
    spec, context = state.spec, state.context
    newest = state.newest_checkpoint
    return LoopDocument(
        version=VERSION,
        loop_id=context.run,
        status=state.status,
        iteration=state.iteration,
        task=spec.task,
        completion_criteria=spec.completion,
        started_at=stamp(state.started_us),
        last_updated=stamp(_last_us(state)),
        completed_at=stamp(state.ended_us) if state.ended_us is not None and state.status is LoopStatus.COMPLETED else None,
        owner=spec.owner,
        pid=driver_of(state),
        working_directory=context.workdir,
        configuration=Configuration(
            max_iterations=spec.max_iterations,
            timeout_minutes=spec.timeout_minutes,
            interactive=spec.interactive,
            auto_test=spec.auto_test,
            checkpoint_interval=spec.checkpoint_interval,
            execution_mode=spec.execution_mode.value,
        ),
        progress=Progress(completion_checks=state.checks, last_completion_check=state.checks[-1] if state.checks else None),
        metrics=_metrics(state),
        last_checkpoint=checkpoint_path(context.run, newest) if newest is not None else state.named_checkpoint,
        error_context=_error_context(state),
    )


def driver_of(state: LoopState) -> int | None:
    """The process that drives the loop, as far as the journal knows: none drives one that rests."""
    rests = state.lifecycle.ended or (not state.lifecycle.running and not state.doing.active)
    return None if rests else state.pid


def _last_us(state: LoopState) -> int:
    """Return when the loop last changed; taking one over that has ended changes nothing about it."""
    return state.over_us if state.over_us is not None and state.recovered_by is None else state.updated_us


def _metrics(state: LoopState) -> Metrics:
    until_us = state.ended_us if state.ended_us is not None else state.updated_us
    made = state.made + len(state.iterations)
    # What its file counted stays as it is until the loop goes on: the time in which it only stands here is left out.
    lasted_us = state.worked_until_us(until_us) if state.gap_us else until_us - state.started_us - state.gap_us
    return Metrics(
        total_iterations=state.iteration,
        successful_iterations=state.successes,
        failed_iterations=state.failures,
        total_tokens=state.tokens,
        total_cost_usd=round(state.cost_usd, 6) if state.cost_usd is not None else None,
        total_duration_seconds=max(0, lasted_us) // US,
        average_iteration_time_seconds=round(state.worked_us / US / made, 1) if made else 0.0,
    )


def _error_context(state: LoopState) -> dict[str, Any] | None:
    recovered = state.recovered_by is not None or bool(state.told_error.get("recovery_attempted"))
    if state.error is None:
        # An aborted loop has no error, but it may have a successor.
        return {"recovery_attempted": True} if recovered else None
    message, at_us = state.error
    own = {"error_message": message, "error_timestamp": stamp(at_us), "recovery_attempted": recovered}
    return {**own, **state.told_error, "recovery_attempted": recovered}


def summary(state: LoopState) -> Summary:
    """The loop in one line, with what the registry says of it."""
    life = state.lifecycle
    status, stop, detail = life.status, life.stop, life.detail
    if life.ended and state.crashed:
        status = "crashed"
    elif life.running and state.status is LoopStatus.PAUSED:
        status, stop, detail = "waiting", StopReason.WAITING_ON_HUMAN, "approval"
    elif life.running and state.pausing is not None:
        detail = "pauses when this iteration ends"
    elif life.running and state.completing:
        detail = "completing: the criterion is verified once more"
    return Summary(
        status=status,
        stop=stop,
        detail=detail,
        done=state.iteration,
        total=state.spec.max_iterations,
        failed=state.failures,
        doing=(UNIT,) if len(state.doing) else (),
        facts=_facts(state),
    )


def _facts(state: LoopState) -> dict[str, Any]:
    spec, context = state.spec, state.context
    logged = {"logged": True} if spec.execution_mode is not ExecutionMode.DEFAULT else {}
    inside = context.workdir == context.home
    return {
        **logged,
        "status": state.status.value,
        "iteration": state.iteration,
        "task": spec.task,
        "completion_criteria": spec.completion,
        "started_at": stamp(state.started_us),
        "pid": driver_of(state),
        "owner": spec.owner,
        "working_directory": "." if inside else context.workdir.removeprefix(f"{context.home}/"),
        "state_file": f"{loop_directory(context.run)}/state.json",
        "max_iterations": spec.max_iterations,
        "timeout_minutes": spec.timeout_minutes,
    }


def details(state: LoopState) -> dict[str, Any]:
    """Give all that the state file does not carry."""
    spec, run = state.spec, state.context.run
    best = state.best
    return {
        **state.lifecycle.details(),
        "status": state.status.value,
        "command": spec.command,
        "test_command": spec.test_command if spec.auto_test else None,
        "seed": spec.handed_seed,
        "predecessor": spec.carried.loop if spec.carried is not None else None,
        "successor": state.recovered_by,
        "pausing": state.pausing,
        "steering": list(state.steering),
        "notices": list(state.notices),
        "stuck": {"strikes": state.strikes, "evidence": list(state.evidence)},
        "imported": {"file": state.imported_from, "left_out": list(state.left_out)} if state.imported_from else None,
        "diffs": state.untracked or "kept",
        "start": {"ref": ref_of(run, 0), **msgspec.to_builtins(state.start)} if state.start is not None else None,
        "changed": [[change.status, change.path] for change in state.changed],
        "best_iteration": {"iteration": best.number, "ref": ref_of(run, best.number)} if best is not None else None,
        "doing": state.doing.details(),
        "learnings": list(state.learnings),
        "remembered": list(spec.remembered),
        "steps": {UNIT: state.record.details()},
    }
