"""Drives a run in the foreground for `run`, `resume`, `abort` and `pause --now`, and says what to do next when it rests."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from agent_orchestrator.api.orchestrator import Orchestrator
from agent_orchestrator.core.inputs import Input
from agent_orchestrator.core.summary import Summary
from agent_orchestrator.core.units import US, say_duration
from agent_orchestrator.engine.ownership import Ownership
from agent_orchestrator.store.port import StoredRun
from agent_orchestrator.surfaces.cli.exits import INTERRUPTED, exit_code
from agent_orchestrator.surfaces.cli.facts import run_facts, state_file
from agent_orchestrator.surfaces.cli.hooks import Hooks
from agent_orchestrator.surfaces.cli.progress import Several, Writer, make_watcher
from agent_orchestrator.surfaces.cli.screen import Screen, plain, print_json

if TYPE_CHECKING:
    from agent_orchestrator.engine.driver import Driver

FAILED_SHOWN = 5


class Manner(msgspec.Struct, frozen=True, kw_only=True):
    """How a run is shown and when it is left."""

    quiet: bool = False
    as_json: bool = False
    no_wait: bool = False
    """Leave when only people can move the run."""
    rest: bool = False
    """Leave as soon as nothing runs."""
    on_wait: str | None = None
    on_end: str | None = None


def drive(orchestrator: Orchestrator, run: StoredRun, owner: Ownership, manner: Manner, inputs: Sequence[Input] = ()) -> int:
    """Drives the run until it ends or rests; tells how it ended and returns the exit code. Releases the run."""
    environ = orchestrator.settings.environ
    screen = Screen(environ, sys.stderr if manner.as_json else sys.stdout)
    started_us = orchestrator.clock.now_us()
    watcher = Several(make_watcher(screen, quiet=manner.quiet), Hooks(manner.on_wait, manner.on_end, environ))
    gave_up = False

    def stays(driver: Driver) -> bool:
        nonlocal gave_up
        gave_up = manner.rest or (manner.no_wait and driver.waits_only_for_people())
        return not gave_up

    try:
        summary = orchestrator.drive(run, watcher, stays, inputs)
    finally:
        watcher.finish()
        owner.release()
    left = summary.status in ("running", "waiting", "aborting") and not gave_up
    code = INTERRUPTED if left else exit_code(summary)
    took_s = (orchestrator.clock.now_us() - started_us) / US
    for line in result_lines(run, summary, took_s, left=left):
        Writer(screen.out).line(line)
    if manner.as_json:
        print_json(result_facts(orchestrator, run, summary, code))
    return code


def result_facts(orchestrator: Orchestrator, run: StoredRun, summary: Summary, code: int) -> dict[str, Any]:
    """The one object that `run --json` and its like print."""
    facts = run_facts(msgspec.structs.replace(run, summary=summary, updated_us=orchestrator.clock.now_us()))
    return {**facts, "exit_code": code}


def result_lines(run: StoredRun, summary: Summary, took_s: float, *, left: bool) -> list[str]:
    """How the run stands, and what to do next."""
    count = f"{summary.done}/{summary.total} steps"
    detail = f": {plain(summary.detail)}" if summary.detail else ""
    if left:
        return [f"run {run.id} was left ({count}); its agents live on. Go on with: orc resume {run.id}"]
    if summary.status == "completed":
        return [f"run {run.id} completed: {count} in {say_duration(took_s)}", f"state: {state_file(run)}"]
    if summary.status == "paused":
        return [f"run {run.id} is paused ({count}){detail}. Go on with: orc resume {run.id}"]
    if summary.status == "waiting":
        return [f"run {run.id} waits ({count}){detail}", f"answer with: orc approve {run.id}   then: orc resume {run.id}"]
    if summary.status == "aborted":
        return [f"run {run.id} was aborted ({count}){detail}"]
    if summary.ended:
        words = summary.status.replace("_", " ")
        return [
            f"run {run.id} {words} ({count}){detail}",
            f"why: orc show {run.id}   try again: orc resume {run.id}   state: {state_file(run)}",
        ]
    return [f"run {run.id} rests ({count}). Go on with: orc resume {run.id}"]
