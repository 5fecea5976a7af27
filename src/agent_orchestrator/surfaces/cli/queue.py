"""Runs that are handed to workers: `--queue` of the commands that start one or go on with it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from agent_orchestrator.surfaces.cli.options import open_orchestrator

if TYPE_CHECKING:
    from agent_orchestrator.cluster.submission import Queued, Submitting
    from agent_orchestrator.runs.orchestrator import Orchestrator
    from agent_orchestrator.runs.start import Change, Started
    from agent_orchestrator.store.port import StoredRun

ALONE = ("detach", "no_wait", "on_wait", "on_end", "start_at_step")
"""Options of whoever drives a run here."""


@contextmanager
def open_to_start(given: dict[str, Any]) -> Iterator[Orchestrator]:
    """Open the orchestrator that a run is started by: in the repository, or with --queue in a home as a worker will have it."""
    with open_orchestrator(given["repo"]) as orchestrator:
        if not wants_queue(given):
            yield orchestrator
            return
        from agent_orchestrator.runs.stores import require_shared

        require_shared(orchestrator)  # before anything of a database is loaded
        from agent_orchestrator.cluster.submission import submitting

        with submitting(orchestrator, read_queued(given)) as under_way:
            given["submitting"] = under_way
            if given.get("run_id") is not None:
                under_way.clear(given["run_id"])
            yield under_way.orchestrator


def wants_queue(given: Mapping[str, Any]) -> bool:
    """Tell whether a run is to be handed to workers; raise a usage error for options that do not go with that."""
    if given["queue"]:
        if (other := next((name for name in ALONE if given.get(name)), None)) is not None:
            flag = f"--{other.replace('_', '-')}"
            raise click.UsageError(f"--queue hands the run to a worker, and {flag} is for one that is driven here; give one.")
        return True
    if (needs := next((name for name in ("pool", "priority") if given[name] is not None), None)) is not None:
        raise click.UsageError(f"--{needs} goes with --queue.")
    return False


def read_queued(given: Mapping[str, Any]) -> Queued:
    """Return where a run is queued."""
    from agent_orchestrator.cluster.due import read_firing
    from agent_orchestrator.cluster.submission import POOL, Queued
    from agent_orchestrator.core.ids import checked_id
    from agent_orchestrator.errors import InvalidValue

    said = given["priority"]
    try:
        priority = int(said) if said is not None else 0
    except ValueError:
        raise InvalidValue(what="--priority", value=said, expected="a whole number, as in 10 or -5") from None
    if abs(priority) >= 2**31:
        raise InvalidValue(what="--priority", value=said, expected="a whole number, as in 10 or -5")
    pool = checked_id(given["pool"], "--pool") if given["pool"] is not None else POOL
    firing = read_firing(given["firing"]) if given.get("firing") is not None else None
    return Queued(pool=pool, priority=priority, firing=firing)


def queue_started(under_way: Submitting, started: Started, *, as_json: bool) -> int:
    """Hand a run that was just made to the workers, and say how it is followed."""
    from agent_orchestrator.surfaces.cli.screen import warn

    for note in under_way.notes:
        warn(note)
    under_way.hand_over(started)
    return _say_queued(under_way.orchestrator, started.run, under_way.queued, as_json=as_json)


def queue_again(orchestrator: Orchestrator, run: StoredRun, change: Change, given: Mapping[str, Any]) -> int:
    """Let workers go on with a run that rests, with what is changed."""
    from agent_orchestrator.runs.stores import require_shared

    require_shared(orchestrator)
    from agent_orchestrator.cluster.submission import queue_resting

    moved = given["pool"] is not None or given["priority"] is not None
    queued = queue_resting(orchestrator, run, change, read_queued(given) if moved else None)
    return _say_queued(orchestrator, run, queued, as_json=given["as_json"])


def _say_queued(orchestrator: Orchestrator, run: StoredRun, queued: Queued, *, as_json: bool) -> int:
    from agent_orchestrator.runs.facts import run_facts
    from agent_orchestrator.surfaces.cli.screen import Screen, print_json
    from agent_orchestrator.systems import about

    if as_json:
        print_json({**run_facts(orchestrator.find(run.id)), "queued": {"pool": queued.pool, "priority": queued.priority}})
        return 0
    screen = Screen(orchestrator.settings.environ)
    screen.line(f"{about(run.system).noun} {run.id}")
    screen.line(f"queued in pool {queued.pool}; follow it with: orc watch {run.id}   who works: orc workers")
    return 0
