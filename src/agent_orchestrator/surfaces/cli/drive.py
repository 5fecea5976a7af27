"""Drives a run in the foreground for `run`, `resume`, `abort` and `pause --now`, and says what to do next when it rests."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from agent_orchestrator.core.events import Event, StopReason
from agent_orchestrator.core.inputs import Given
from agent_orchestrator.core.summary import Summary
from agent_orchestrator.core.units import US, say_count, say_duration
from agent_orchestrator.engine.owners import Owned
from agent_orchestrator.runs.drive import drive_to_rest
from agent_orchestrator.runs.exits import INTERRUPTED, exit_code
from agent_orchestrator.runs.facts import run_facts, state_file
from agent_orchestrator.runs.notify.notifier import notifying, own_subscribers
from agent_orchestrator.runs.orchestrator import Orchestrator
from agent_orchestrator.runs.results import work_facts, work_lines
from agent_orchestrator.store.port import StoredRun
from agent_orchestrator.surfaces.cli.progress import Several, Writer, make_watcher
from agent_orchestrator.surfaces.cli.screen import Screen, plain, print_json, warn
from agent_orchestrator.surfaces.cli.words import words_of
from agent_orchestrator.systems import about

if TYPE_CHECKING:
    from agent_orchestrator.engine.driver import Driver

WAITED_SHOWN_S = 10.0
"""A run that rested for longer than this, and for longer than it worked, says how long it worked."""


class Manner(msgspec.Struct, frozen=True, kw_only=True):
    """The way in which a run is shown, and when it is left."""

    quiet: bool = False
    as_json: bool = False
    no_wait: bool = False
    """Leave when only people can move the run, by an answer or a gate, or the end of a rate limit."""
    rest: bool = False
    """Leave as soon as nothing runs."""
    on_wait: str | None = None
    on_end: str | None = None


def drive(orchestrator: Orchestrator, run: StoredRun, owner: Owned, manner: Manner, inputs: Sequence[Given] = ()) -> int:
    """Drives the run until it ends or rests; tells how it ended and returns the exit code. Releases the run."""
    with notifying(orchestrator, own_subscribers(run, manner.on_wait, manner.on_end), warn):
        return _drive(orchestrator, run, owner, manner, inputs)


def _drive(orchestrator: Orchestrator, run: StoredRun, owner: Owned, manner: Manner, inputs: Sequence[Given]) -> int:
    environ = orchestrator.settings.environ
    screen = Screen(environ, sys.stderr if manner.as_json else sys.stdout)
    stopwatch = Stopwatch()
    view = make_watcher(orchestrator, run, screen, quiet=manner.quiet)
    watcher = Several(view, stopwatch)
    gave_up = False

    def stays(driver: Driver) -> bool:
        nonlocal gave_up
        no_wait = manner.no_wait or view.has_left()
        gave_up = manner.rest or (no_wait and (driver.waits_only_for_people() or driver.is_parked()))
        return not gave_up

    try:
        summary = drive_to_rest(orchestrator, run, owner, watcher, stays, inputs)
    finally:
        watcher.finish()
    left = summary.status in ("running", "waiting", "aborting") and not gave_up
    code = INTERRUPTED if left else exit_code(summary)
    took = say_whole_time((orchestrator.clock.now_us() - run.context.created_us) / US, stopwatch.worked_s)
    first, *others = result_lines(run, summary, took, left=left)
    ending = summary.status.replace("_", " ")
    first = first.replace(ending, screen.paint_status(ending, summary.status), 1)
    for line in [first, *others, *_more_lines(orchestrator, run)]:
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
    """Say how long a run took from its start, and how much of it something was at work, where it waited for long."""
    whole = say_duration(elapsed_s)
    waited = elapsed_s - worked_s >= max(WAITED_SHOWN_S, worked_s)
    return f"{whole}, {say_duration(worked_s)} of it at work" if waited else whole


def result_facts(orchestrator: Orchestrator, run: StoredRun, summary: Summary, code: int) -> dict[str, Any]:
    """The one object that `run --json` and its like print."""
    facts = run_facts(msgspec.structs.replace(orchestrator.find(run.id), summary=summary))
    work = work_facts(orchestrator, run)
    return {**facts, **({"work": work} if work is not None else {}), "exit_code": code}


def _more_lines(orchestrator: Orchestrator, run: StoredRun) -> list[str]:
    """Return what is told besides when a run rests: where its work is, and what its system says."""
    tell = words_of(run.system).closing_lines
    closing = tell(orchestrator.fold(run).state) if tell is not None else []
    return [plain(line) for line in (*work_lines(orchestrator, run), *closing)]


def result_lines(run: StoredRun, summary: Summary, took: str, *, left: bool) -> list[str]:
    """Say how the run stands, and what to do next."""
    words = about(run.system)
    name = f"{words.noun} {run.id}"
    count = f"{summary.done}/{summary.total} {words.unit}s"
    going_on = f"Continue with: {words.resume} {run.id}"
    so_far = f"{summary.done} of {summary.total} {words.unit}s done"
    detail = f": {plain(summary.detail)}" if summary.detail else ""
    waits = plain(summary.detail) if summary.stop is StopReason.RATE_LIMITED else f"waiting for {plain(summary.detail)}"
    if left:
        return [f"{name}: interrupted ({so_far}); its agents keep running. {going_on}"]
    if summary.status == "completed":
        done = say_count(summary.done, words.unit) if words.iterates else count
        why = f", {plain(summary.detail)}" if summary.detail and words.iterates else ""
        return [f"{name} completed: {done} in {took}{why}", f"state: {state_file(run)}"]
    if summary.status == "paused" and summary.stop is StopReason.BUDGET_EXHAUSTED:
        return [f"{name}: paused ({so_far}){detail}"]
    if summary.status == "waiting" and summary.stop is not StopReason.WAITING_ON_HUMAN:
        return [f"{name}: {waits} ({so_far}). {going_on}"]
    if summary.status == "paused":
        return [f"{name}: paused ({so_far}){detail}. {going_on}"]
    if summary.status == "waiting" and summary.taken_over and not summary.asks:
        way = f"orc attach {run.id} {plain(summary.taken_over[0])}"
        return [f"{name}: {waits} ({so_far})", f"continue with: {way}, or hand back with: {way} --hand-back", going_on]
    if summary.status == "waiting":
        unit = " UNIT" if len(summary.doing) > 1 else ""
        how = "answer as said below," if words.answer else f"answer with: orc approve {run.id}{unit}  "
        return [f"{name}: {waits} ({so_far})", f"{how} then: {words.resume} {run.id}"]
    if summary.status == "aborted":
        return [f"{name}: aborted ({so_far}){detail}"]
    if summary.ended:
        ending = summary.status.replace("_", " ")
        more = f" {words.raise_limit}" if words.raise_limit and summary.stop is StopReason.LIMIT_REACHED else ""
        return [
            f"{name}: {ending} ({so_far}){detail}",
            f"why: {words.explain} {run.id}   try again: {words.retry} {run.id}{more}   state: {state_file(run)}",
        ]
    return [f"{name}: stopped ({so_far}). {going_on}"]
