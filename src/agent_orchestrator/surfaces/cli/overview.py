"""A run's header and steps, for `status`, `show` and `watch`."""

from __future__ import annotations

from typing import Any

import msgspec

from agent_orchestrator.core.effects import AskHuman, AwaitGates, Wait
from agent_orchestrator.core.hold import say_parked
from agent_orchestrator.core.units import US, from_iso, say_duration
from agent_orchestrator.engine.journal import Folded
from agent_orchestrator.runs.budget import budget_facts, budget_lines
from agent_orchestrator.runs.facts import place_line, say_idle
from agent_orchestrator.runs.orchestrator import Orchestrator
from agent_orchestrator.store.port import StoredRun
from agent_orchestrator.surfaces.cli.phrases import clock_time
from agent_orchestrator.surfaces.cli.screen import Screen, plain
from agent_orchestrator.systems import about

STEPS_SHOWN = 200


def step_time_s(step: Any, now_us: int) -> float | None:
    """Return how long the step's newest attempt took, or takes so far."""
    if step.started_at is None:
        return None
    until_us = from_iso(step.ended_at) if step.ended_at is not None else now_us
    return max(0, until_us - from_iso(step.started_at)) / US


def waits_for(state: Any, unit: str) -> str:
    """Say what keeps the step, in a few words."""
    effect = state.doing.of(unit)
    hold = state.doing.holds.get(unit)
    if hold is not None:
        return say_parked(hold, clock_time(hold.until_us)[:5]) if hold.until_us is not None else hold.reason
    if isinstance(effect, AskHuman):
        return "a person"
    if unit in state.doing.spoken:
        return "the words of a person"
    if isinstance(effect, AwaitGates):
        return f"gates {', '.join(effect.names)}"
    if isinstance(effect, Wait):
        return "its next attempt"
    if effect is None and state.steps[unit].status == "PENDING":
        open_needs = [need for need in state.specs[unit].needs if state.steps[need].status not in ("COMPLETED", "SKIPPED")]
        return ", ".join(open_needs)
    return ""


def how_to_answer(run: str, unit: str) -> str:
    """Return the command that answers the question of an agent at work."""
    return f"orc steer {run} {plain(unit)} 'YOUR WORDS'"


def steps_of(folded: Folded, now_us: int) -> list[dict[str, Any]]:
    """Return the steps as data."""
    state = folded.state
    return [
        {
            "id": unit,
            "status": str(step.status),
            "attempts": step.attempts,
            "iteration_count": step.iteration_count,
            "duration_s": step_time_s(step, now_us),
            "last_error": step.last_error,
            "waits_for": waits_for(state, unit) or None,
            "held": msgspec.to_builtins(state.doing.holds[unit]) if unit in state.doing.holds else None,
        }
        for unit, step in state.steps.items()
    ]


def print_header(orchestrator: Orchestrator, screen: Screen, run: StoredRun, folded: Folded) -> None:
    """Print what the run is and who drives it."""
    summary = folded.summary()
    status = screen.paint_status(summary.status.replace("_", " "), summary.status)
    count = f"{summary.done}/{summary.total} {about(run.system).unit}s"
    screen.line(f"run {screen.paint(run.id, 'bold')}  {plain(run.name)}  {status}  {count}")
    if summary.detail:
        screen.line(f"  {plain(summary.detail)}")
    for line in budget_lines(budget_facts(orchestrator, run, folded)):
        screen.line(f"  {line}")
    print_owner(screen, run, orchestrator.owner(run), ended=summary.ended)
    screen.line(f"  {place_line(run)}")


def print_owner(screen: Screen, run: StoredRun, owner: str | None, *, ended: bool) -> None:
    """Print who drives the run, or what goes on with one that nobody does."""
    if owner is not None:
        screen.line(f"  running in {plain(owner)}")
    elif not ended:
        screen.line(f"  {say_idle(run)}")


def print_run(orchestrator: Orchestrator, screen: Screen, run: StoredRun, folded: Folded) -> None:
    """Print the header and one line per step."""
    print_header(orchestrator, screen, run, folded)
    screen.line()
    now_us = orchestrator.clock.now_us()
    rows = []
    for step in steps_of(folded, now_us)[:STEPS_SHOWN]:
        took = say_duration(step["duration_s"]) if step["duration_s"] is not None else ""
        why = step["last_error"] or (f"waiting for {step['waits_for']}" if step["waits_for"] else "")
        why = step["waits_for"] if step["held"] else why
        rows.append((step["id"], step["status"], step["attempts"], step["iteration_count"], took, why))
    screen.table(("STEP", "STATUS", "TRIES", "ITER", "TIME", "WHY"), rows, status=1)
    if len(folded.state.steps) > STEPS_SHOWN:
        screen.line(f"… and {len(folded.state.steps) - STEPS_SHOWN} more steps; --json has all.")
    for effect in folded.state.doing:
        if isinstance(effect, AskHuman):
            how = about(run.system).answer if effect.in_words else f"orc approve {run.id} {plain(effect.unit)}"
            screen.line(f"{plain(effect.unit)} is waiting for an answer: {how}")
    for asked in folded.state.doing.spoken.values():
        screen.line(f"{plain(asked.unit)} asks, and works on: {plain(asked.text)}")
        screen.line(f"  answer with: {how_to_answer(run.id, asked.unit)}")
