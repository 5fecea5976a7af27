"""A digest of what happened while nobody looked: finished, failed, waiting, parked, going on, and spent; as plain data.

Read from the list of runs and the ledger. A journal is read only for a run that is shown and whose line in the list an
earlier version wrote, without what proves it and what it asks.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from agent_orchestrator.core.events import StopReason
from agent_orchestrator.core.summary import UNITS_MAX, Proof, Summary
from agent_orchestrator.core.units import iso
from agent_orchestrator.errors import OrcError
from agent_orchestrator.runs.orchestrator import Orchestrator
from agent_orchestrator.store.port import Spending, StoredRun, sum_spending
from agent_orchestrator.systems import about

OWNERS_MAX = 50
"""Runs that are said to run, of which it is looked whether anybody drives them."""


class DigestEntry(msgspec.Struct, frozen=True, kw_only=True):
    """One run in a line or two."""

    run_id: str
    name: str
    system: str
    status: str
    at: str
    why: str = ""
    ways: tuple[str, ...] = ()
    """The commands that answer it, or show more."""
    evidence: tuple[Proof, ...] = ()
    unverified: bool = False
    """It is known that no check passed."""


class DigestSection(msgspec.Struct, frozen=True, kw_only=True):
    """Runs of one kind: how many there are, and the newest of them."""

    total: int = 0
    entries: tuple[DigestEntry, ...] = ()


class Digest(msgspec.Struct, frozen=True, kw_only=True):
    """The runs since a time, or one run, in a few lines each."""

    since: str | None
    until: str
    run_id: str | None
    finished: DigestSection
    failed: DigestSection
    waiting: DigestSection
    parked: DigestSection
    going: DigestSection
    spent: tuple[Spending, ...]


def make_digest(orchestrator: Orchestrator, since_us: int, most: int, run: StoredRun | None = None) -> Digest:
    """Return what happened since a time, `most` runs of each kind, or everything about one run."""
    runs = [run] if run is not None else [one for one in orchestrator.runs() if one.id == one.context.run]
    kinds = _sort(orchestrator, runs, since_us if run is None else 0)
    makers: dict[str, Callable[[Orchestrator, StoredRun], DigestEntry]] = {
        "finished": _finished,
        "failed": _failed,
        "waiting": _waiting,
        "parked": _parked,
        "going": _going,
    }
    sections = {
        kind: DigestSection(total=len(found), entries=tuple(makers[kind](orchestrator, one) for one in found[:most]))
        for kind, found in kinds.items()
    }
    return Digest(
        since=iso(since_us) if run is None else None,
        until=iso(orchestrator.clock.now_us()),
        run_id=run.id if run is not None else None,
        spent=tuple(_spending(orchestrator, since_us, run)),
        **sections,
    )


def _sort(orchestrator: Orchestrator, runs: Sequence[StoredRun], since_us: int) -> dict[str, list[StoredRun]]:
    """Put each run where it belongs, the newest first; what is not over belongs there however old it is."""
    kinds: dict[str, list[StoredRun]] = {kind: [] for kind in ("finished", "failed", "waiting", "parked", "going")}
    looked = 0
    for run in sorted(runs, key=lambda one: one.updated_us, reverse=True):
        summary = run.summary
        if summary.ended:
            if run.updated_us >= since_us:
                kinds["finished" if summary.status == "completed" else "failed"].append(run)
        elif summary.asks or summary.stop is StopReason.WAITING_ON_HUMAN or summary.status == "paused":
            kinds["waiting"].append(run)
        elif summary.stop is StopReason.RATE_LIMITED:
            kinds["parked"].append(run)
        elif summary.status == "waiting":
            kinds["waiting"].append(run)
        else:
            looked += 1
            alone = looked <= OWNERS_MAX and orchestrator.owner(run) is None
            kinds["waiting" if alone else "going"].append(run)
    return kinds


def _finished(orchestrator: Orchestrator, run: StoredRun) -> DigestEntry:
    proofs = _summary(orchestrator, run).proofs
    return _entry(
        run,
        why=run.summary.detail,
        ways=(f"orc merge {run.id}", f"orc diff {run.id}") if _is_left(orchestrator, run) else (f"orc show {run.id}",),
        evidence=proofs or (),
        unverified=proofs == (),
    )


def _is_left(orchestrator: Orchestrator, run: StoredRun) -> bool:
    """Tell whether the work waits for somebody to take it: in a tree of its own, which is gone then, or at its remote."""
    if run.context.remote:
        finish = orchestrator.fold(run).state.doing.finish
        return not finish.discarded and not any(one.landed for one in finish.landings.values())
    return run.context.workdir != run.context.home and Path(run.context.workdir).is_dir()


def _failed(orchestrator: Orchestrator, run: StoredRun) -> DigestEntry:
    words, detail = about(run.system), run.summary.detail or run.summary.status.replace("_", " ")
    ways = (f"{words.explain} {run.id}", f"{words.retry} {run.id}")
    return _entry(run, why=_summary(orchestrator, run).error or detail, ways=ways)


def _waiting(orchestrator: Orchestrator, run: StoredRun) -> DigestEntry:
    words, summary = about(run.system), run.summary
    resume = f"{words.resume} {run.id}"
    if summary.asks or summary.stop is StopReason.WAITING_ON_HUMAN:
        asked = _summary(orchestrator, run).questions
        ways = [words.answer if one.in_words else f"orc approve {run.id} {one.unit}" for one in asked if not one.spoken]
        ways += [f"orc steer {run.id} {one.unit} 'YOUR WORDS'" for one in asked if one.spoken]
        why = f"asks: {', '.join(one.text for one in asked)}" if asked else summary.detail
        return _entry(run, why=why, ways=tuple(dict.fromkeys(ways)) or (f"orc approve {run.id}",))
    if summary.status in ("paused", "waiting"):
        return _entry(run, why=f"{summary.status}: {summary.detail}" if summary.detail else summary.status, ways=(resume,))
    return _entry(run, why="not running", ways=(resume,))


def _parked(orchestrator: Orchestrator, run: StoredRun) -> DigestEntry:
    return _entry(run, why=run.summary.detail)


def _going(orchestrator: Orchestrator, run: StoredRun) -> DigestEntry:
    summary = run.summary
    said = f"{summary.done}/{summary.total} {about(run.system).unit}s"
    return _entry(run, why=f"{said}: {', '.join(summary.doing)}" if summary.doing else said, ways=(f"orc watch {run.id}",))


def _entry(run: StoredRun, **more: Any) -> DigestEntry:
    at, status = iso(run.updated_us), run.summary.status
    return DigestEntry(run_id=run.id, name=run.name, system=run.system, status=status, at=at, **more)


def _summary(orchestrator: Orchestrator, run: StoredRun) -> Summary:
    """Return the summary with what proves the run and what it asks: of its journal where the list does not have it yet."""
    summary = run.summary
    told = summary.proofs is not None if summary.ended else bool(summary.questions) or not summary.asks
    if told or summary.total > UNITS_MAX:
        return summary
    try:
        return orchestrator.fold(run).summary()
    except OrcError:
        return summary


def _spending(orchestrator: Orchestrator, since_us: int, run: StoredRun | None) -> list[Spending]:
    if run is not None:
        return sum_spending(orchestrator.store.usage(run.id))
    return orchestrator.spending(since_us)
