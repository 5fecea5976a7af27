"""The points of a run that it can go back to, or be forked at: every row of its journal, and names for those that matter."""

from __future__ import annotations

import msgspec

from agent_orchestrator.engine.journal import decode_events, living_rows
from agent_orchestrator.errors import Refused
from agent_orchestrator.runs.orchestrator import Orchestrator
from agent_orchestrator.store.port import StoredRun
from agent_orchestrator.systems import find_system

START = "start"
SHOWN = 12


class Point(msgspec.Struct, frozen=True, kw_only=True):
    """A row of the journal with the name of what was done then; what is named a second time gets a number."""

    name: str
    seq: int
    at_us: int


def list_points(orchestrator: Orchestrator, run: StoredRun) -> list[Point]:
    """Return the named points of a run, oldest first; those that it went back behind are none any more."""
    system = find_system(run.system)
    points: list[Point] = []
    seen: dict[str, int] = {}
    for seq, at_us, body in living_rows(orchestrator.store.rows(run.id), system):
        names = [START] if seq == 1 else [name for event in decode_events(system, body) for name in system.points(event)]
        for name in names:
            seen[name] = seen.get(name, 0) + 1
            points.append(Point(name=name if seen[name] == 1 else f"{name}#{seen[name]}", seq=seq, at_us=at_us))
    return points


def find_point(orchestrator: Orchestrator, run: StoredRun, given: str) -> Point:
    """Return the point that is meant by its name or by the number of its row; raises Refused."""
    wanted = given.strip().removesuffix(".json")
    if wanted.isdecimal():
        return _find_row(orchestrator, run, int(wanted))
    points = list_points(orchestrator, run)
    found = [point for point in points if wanted in (point.name, point.name.replace("-", " ", 1))]
    if not found and wanted in _list_imported(orchestrator, run):
        why = "it was taken over from a file, and only its commit is known; `orc history --points` lists the points that were"
        raise Refused(why=f"Run {run.id}: {given} was not made here: {why}.")
    if not found:
        names = [point.name for point in points]
        more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
        listed = ", ".join(names[-SHOWN:]) + more
        raise Refused(why=f"Run {run.id}: there is no point {given!r}; there are: {listed} (`orc history {run.id} --points`).")
    return found[0]


def _list_imported(orchestrator: Orchestrator, run: StoredRun) -> set[str]:
    system = find_system(run.system)
    events = (event for _, _, body in orchestrator.store.rows(run.id) for event in decode_events(system, body))
    return {name for event in events for name in system.imported_points(event)}


def _find_row(orchestrator: Orchestrator, run: StoredRun, number: int) -> Point:
    """Return any row, also one that the run went back behind: so a rewind is undone."""
    times = {seq: at_us for seq, at_us, _ in orchestrator.store.rows(run.id)}
    if number not in times:
        raise Refused(why=f"Run {run.id} has no row {number}; its journal has rows 1 to {len(times)}.")
    return Point(name=f"row {number}", seq=number, at_us=times[number])
