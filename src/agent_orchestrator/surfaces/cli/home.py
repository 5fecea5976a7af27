"""`orc` alone: what needs the person, what is going on, what ended last, and the few commands that come next.

It reads the list of runs and nothing else: it must be there at once, however many there are.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from agent_orchestrator.surfaces.cli.options import open_orchestrator

if TYPE_CHECKING:
    from agent_orchestrator.runs.orchestrator import Orchestrator
    from agent_orchestrator.store.port import StoredRun
    from agent_orchestrator.surfaces.cli.screen import Screen

SHOWN = 10
LOOKED_AT = 200
"""The newest unfinished runs, of which those that need the person are picked out."""
ENDED_SHOWN = 3


class _Need(NamedTuple):
    """A run that waits for the person, and the command that moves it."""

    run: StoredRun
    why: str
    way: str


def show_home() -> bool:
    """Print the overview of the repository around us; return False where there is nothing to show."""
    from agent_orchestrator.store.port import Which
    from agent_orchestrator.surfaces.cli.screen import Screen

    with open_orchestrator(None) as orchestrator:
        count = orchestrator.count()
        if not count.total:
            return False
        screen = Screen(orchestrator.settings.environ)
        open_runs = orchestrator.runs(Which(ended=False, most=LOOKED_AT))
        owners = {run.id: orchestrator.owner(run) for run in open_runs}
        needs = [need for run in open_runs if (need := _need(run, owners[run.id])) is not None]
        waiting = {need.run.id for need in needs}
        going = [run for run in open_runs if run.id not in waiting]
        _print_needs(orchestrator, screen, needs)
        _print_runs(orchestrator, screen, "Running", going, SHOWN)
        if count.unfinished > len(open_runs):
            screen.line(f"… and {count.unfinished - len(open_runs)} older unfinished; `orc list --limit 0` lists all.\n")
        _print_runs(orchestrator, screen, "Ended last", orchestrator.runs(Which(ended=True, most=ENDED_SHOWN)), ENDED_SHOWN)
        if not open_runs:
            screen.line("Nothing is running.")
        _print_next(screen, needs, going)
    return True


def _need(run: StoredRun, owner: str | None) -> _Need | None:
    """Return why a run needs the person, if it does: it asks, it is out of budget, or nobody drives it."""
    from agent_orchestrator.core.events import StopReason
    from agent_orchestrator.systems import about

    summary, words = run.summary, about(run.system)
    resume = f"{words.resume} {run.id}"
    if run.id != run.context.run:
        return None  # A kept journal can only be looked at.
    if summary.asks or (summary.stop is StopReason.WAITING_ON_HUMAN and not summary.taken_over):
        why = f"asks you: {', '.join(summary.asks or summary.doing)}"
        return _Need(run, why, f"orc watch {run.id}" if owner is not None or run.context.remote else resume)
    if summary.taken_over and not summary.asks:
        return _Need(run, f"you have {', '.join(summary.taken_over)}", f"orc attach {run.id} {summary.taken_over[0]}")
    if summary.status == "paused":
        return _Need(run, f"is paused: {summary.detail}" if summary.detail else "is paused", resume)
    if owner is None and not run.context.remote:  # that one waits for a worker
        return _Need(run, "not running", resume)
    return None


def _print_needs(orchestrator: Orchestrator, screen: Screen, needs: Sequence[_Need]) -> None:
    from agent_orchestrator.surfaces.cli.runs import say_age

    if not needs:
        return
    now_us = orchestrator.clock.now_us()
    screen.line(screen.paint("Needs you", "yellow"))
    rows = [
        (need.run.id, need.run.name, _count(need.run), say_age(need.run.updated_us, now_us), need.way, need.why)
        for need in needs[:SHOWN]
    ]
    screen.table(("RUN", "NAME", "DONE", "UPDATED", "COMMAND", "WHY"), rows, whole=4)
    _print_more(screen, len(needs) - SHOWN)


def _print_runs(orchestrator: Orchestrator, screen: Screen, title: str, runs: Sequence[StoredRun], most: int) -> None:
    from agent_orchestrator.surfaces.cli.runs import say_age

    if not runs:
        return
    now_us = orchestrator.clock.now_us()
    screen.line(screen.paint(title, "bold"))
    rows = [
        (
            run.id,
            run.name,
            run.summary.status,
            _count(run),
            say_age(run.updated_us, now_us),
            run.summary.detail or ", ".join(run.summary.doing),
        )
        for run in runs[:most]
    ]
    screen.table(("RUN", "NAME", "STATUS", "DONE", "UPDATED", "WHAT"), rows, status=2, whole=0)
    _print_more(screen, len(runs) - most)


def _print_more(screen: Screen, more: int) -> None:
    if more > 0:
        screen.line(f"… and {more} more; `orc list --limit 0` lists all.")
    screen.line()


def _count(run: StoredRun) -> str:
    return f"{run.summary.done}/{run.summary.total}"


def _print_next(screen: Screen, needs: Sequence[_Need], going: Sequence[StoredRun]) -> None:
    """Print the commands that come next, by what there is."""
    ways = [f"{needs[0].way}   look, then answer or continue"] if needs else []
    ways += [f"orc watch {going[0].id}   follow it"] if going else []
    ways += ["orc status   all runs", "orc --help   all commands"]
    cells = max(len(way.partition("   ")[0]) for way in ways)
    for way in ways:
        command, _, what = way.partition("   ")
        screen.line(f"{command.ljust(cells)}   {screen.paint(what, 'dim')}")
