"""Drives a run in the foreground for `run`, `resume`, `abort` and `pause --now`, and says what to do next when it rests."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import msgspec

from agent_orchestrator.core.events import Event, StopReason
from agent_orchestrator.core.inputs import Given
from agent_orchestrator.core.summary import Summary
from agent_orchestrator.core.units import US, say_count, say_duration
from agent_orchestrator.engine.ownership import Ownership
from agent_orchestrator.runs.orchestrator import Orchestrator
from agent_orchestrator.runs.results import work_facts, work_lines
from agent_orchestrator.store.port import StoredRun
from agent_orchestrator.surfaces.cli.exits import INTERRUPTED, exit_code
from agent_orchestrator.surfaces.cli.facts import nouns_of, run_facts, state_file
from agent_orchestrator.surfaces.cli.hooks import Hooks
from agent_orchestrator.surfaces.cli.progress import Several, Writer, make_watcher
from agent_orchestrator.surfaces.cli.screen import Screen, plain, print_json
from agent_orchestrator.systems import find_system

if TYPE_CHECKING:
    from agent_orchestrator.engine.driver import Driver

WAITED_SHOWN_S = 10.0
"""A run that rested for longer than this, and for longer than it worked, says how long it worked."""
AFTER_FAILURE = {"loop": ("orc loop status", "orc loop resume"), "swarm": ("orc swarm status", "orc swarm retry")}
"""By system: what shows why it failed, and what tries again."""

RAISE_LIMIT = " --max-iterations N"
"""Without it a loop that made all of its iterations cannot go on."""


class Manner(msgspec.Struct, frozen=True, kw_only=True):
    """How a run is shown and when it is left."""

    quiet: bool = False
    as_json: bool = False
    no_wait: bool = False
    """Leave when only people can move the run, by an answer or a gate, or the end of a rate limit."""
    rest: bool = False
    """Leave as soon as nothing runs."""
    on_wait: str | None = None
    on_end: str | None = None


def drive(orchestrator: Orchestrator, run: StoredRun, owner: Ownership, manner: Manner, inputs: Sequence[Given] = ()) -> int:
    """Drives the run until it ends or rests; tells how it ended and returns the exit code. Releases the run."""
    environ = orchestrator.settings.environ
    screen = Screen(environ, sys.stderr if manner.as_json else sys.stdout)
    stopwatch = Stopwatch()
    watcher = Several(make_watcher(screen, quiet=manner.quiet), Hooks(manner.on_wait, manner.on_end, environ), stopwatch)
    gave_up = False

    def stays(driver: Driver) -> bool:
        nonlocal gave_up
        gave_up = manner.rest or (manner.no_wait and (driver.waits_only_for_people() or driver.is_parked()))
        return not gave_up

    try:
        summary = orchestrator.drive(run, watcher, stays, inputs)
    finally:
        watcher.finish()
        owner.release()
        # Now nobody drives it, and what spans runs says so.
        orchestrator.overviews().write(find_system(run.system), Path(run.context.home))
    left = summary.status in ("running", "waiting", "aborting") and not gave_up
    code = INTERRUPTED if left else exit_code(summary)
    took = say_whole_time((orchestrator.clock.now_us() - run.context.created_us) / US, stopwatch.worked_s)
    for line in [*result_lines(run, summary, took, left=left), *_more_lines(orchestrator, run)]:
        Writer(screen.out).line(line)
    if manner.as_json:
        print_json(result_facts(orchestrator, run, summary, code))
    return code


class Stopwatch:
    """Knows how long something of the run was at work, in all processes that drove it."""

    def __init__(self) -> None:
        self._driver: Driver | None = None

    @property
    def worked_s(self) -> float:
        """In seconds, up to now."""
        return self._driver.worked_us() / US if self._driver is not None else 0.0

    def happened(self, driver: Driver, events: Sequence[Event], at_us: int) -> None:
        """The driver counts."""
        self._driver = driver

    def noticed(self, driver: Driver, text: str) -> None:
        """Takes no time."""

    def finish(self) -> None:
        """Nothing is held back."""


def say_whole_time(elapsed_s: float, worked_s: float) -> str:
    """How long a run took from its start, and how much of it something was at work, where it waited for long."""
    whole = say_duration(elapsed_s)
    waited = elapsed_s - worked_s >= max(WAITED_SHOWN_S, worked_s)
    return f"{whole}, {say_duration(worked_s)} of it at work" if waited else whole


def result_facts(orchestrator: Orchestrator, run: StoredRun, summary: Summary, code: int) -> dict[str, Any]:
    """The one object that `run --json` and its like print."""
    facts = run_facts(msgspec.structs.replace(orchestrator.find(run.id), summary=summary))
    work = work_facts(run)
    return {**facts, **({"work": work} if work is not None else {}), "exit_code": code}


def _more_lines(orchestrator: Orchestrator, run: StoredRun) -> list[str]:
    """What a system tells besides when its run rests."""
    return [*(plain(line) for line in work_lines(run)), *_closing_lines(orchestrator, run)]


def _closing_lines(orchestrator: Orchestrator, run: StoredRun) -> list[str]:
    if run.system == "loop":
        from agent_orchestrator.surfaces.cli.loop.shared import closing_lines

        return [plain(line) for line in closing_lines(orchestrator.fold(run).state)]
    if run.system == "phases":
        from agent_orchestrator.surfaces.cli.phases import shared as phasing

        return [plain(line) for line in phasing.closing_lines(orchestrator.fold(run).state)]
    if run.system == "team":
        from agent_orchestrator.surfaces.cli.team.shared import team_closing_lines

        return [plain(line) for line in team_closing_lines(orchestrator.fold(run).state)]
    if run.system == "swarm":
        from agent_orchestrator.surfaces.cli.swarm.shared import closing_lines as swarm_lines

        return [plain(line) for line in swarm_lines(orchestrator.fold(run).state)]
    return []


def result_lines(run: StoredRun, summary: Summary, took: str, *, left: bool) -> list[str]:
    """How the run stands, and what to do next."""
    noun, units, orc = nouns_of(run)
    name = f"{noun} {run.id}"
    count = f"{summary.done}/{summary.total} {units}"
    detail = f": {plain(summary.detail)}" if summary.detail else ""
    if left:
        return [f"{name} was left ({count}); its agents live on. Go on with: {orc} resume {run.id}"]
    if summary.status == "completed":
        done = say_count(summary.done, "iteration") if noun == "loop" else count
        why = f", {plain(summary.detail)}" if summary.detail and noun == "loop" else ""
        return [f"{name} completed: {done} in {took}{why}", f"state: {state_file(run)}"]
    if summary.status == "paused" and summary.stop is StopReason.BUDGET_EXHAUSTED:
        return [f"{name} is paused ({count}){detail}"]
    if summary.status == "waiting" and summary.stop is not StopReason.WAITING_ON_HUMAN:
        return [f"{name} waits ({count}){detail}. Go on with: {orc} resume {run.id}"]
    if summary.status == "paused":
        return [f"{name} is paused ({count}){detail}. Go on with: {orc} resume {run.id}"]
    if summary.status == "waiting":
        unit = " UNIT" if len(summary.doing) > 1 else ""
        how = "answer as said below," if noun == "team" else f"answer with: orc approve {run.id}{unit}  "
        return [f"{name} waits ({count}){detail}", f"{how} then: {orc} resume {run.id}"]
    if summary.status == "aborted":
        return [f"{name} was aborted ({count}){detail}"]
    if summary.ended:
        words = summary.status.replace("_", " ")
        show, again = AFTER_FAILURE.get(run.system, ("orc show", f"{orc} resume"))
        more = RAISE_LIMIT if noun == "loop" and summary.stop is StopReason.LIMIT_REACHED else ""
        return [
            f"{name} {words} ({count}){detail}",
            f"why: {show} {run.id}   try again: {again} {run.id}{more}   state: {state_file(run)}",
        ]
    return [f"{name} rests ({count}). Go on with: {orc} resume {run.id}"]


def drive_quietly(orchestrator: Orchestrator, run: StoredRun, inputs: Sequence[Given], out: TextIO) -> None:
    """Drives a run that the caller owns until nothing runs any more; only what a person must know is told."""
    orchestrator.drive(run, make_watcher(Screen(orchestrator.settings.environ, out), quiet=True), lambda driver: False, inputs)
