"""A digest of what happened while nobody looked: finished, failed, waiting, parked, going on, and spent; as plain data.

Read from the list of runs and the ledger. A journal is read only for runs that are shown, and only so many are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from agent_orchestrator.core.effects import AskHuman
from agent_orchestrator.core.events import StopReason
from agent_orchestrator.core.units import iso
from agent_orchestrator.engine.journal import Folded
from agent_orchestrator.errors import OrcError
from agent_orchestrator.runs.orchestrator import Orchestrator
from agent_orchestrator.store.port import Spending, StoredRun, sum_spending
from agent_orchestrator.systems import about

UNITS_MAX = 500
"""A run with more units than this is shown without a look into its journal."""
OWNERS_MAX = 50
"""Runs that are said to run, of which it is looked whether anybody drives them."""
CHECKS_SHOWN = 3
QUESTIONS_SHOWN = 3


class Proof(msgspec.Struct, frozen=True, kw_only=True):
    """A check that passed."""

    unit: str
    command: str
    duration_s: float


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
    folded = _fold(orchestrator, run)
    proofs = _proofs(folded) if folded is not None else []
    return _entry(
        run,
        why=run.summary.detail,
        ways=(f"orc merge {run.id}", f"orc diff {run.id}") if _is_apart(run) else (f"orc show {run.id}",),
        evidence=tuple(proofs[-CHECKS_SHOWN:]),
        unverified=folded is not None and not proofs,
    )


def _is_apart(run: StoredRun) -> bool:
    """Tell whether the work lies in a tree of its own, for somebody to take; once it is taken, the tree is gone."""
    return run.context.workdir != run.context.home and Path(run.context.workdir).is_dir()


def _failed(orchestrator: Orchestrator, run: StoredRun) -> DigestEntry:
    words, detail = about(run.system), run.summary.detail or run.summary.status.replace("_", " ")
    ways = (f"{words.explain} {run.id}", f"{words.retry} {run.id}")
    return _entry(run, why=_find_error(_fold(orchestrator, run), detail), ways=ways)


def _find_error(folded: Folded | None, detail: str) -> str:
    """Return the error of the unit that a run failed by, where the run itself says no more than its name."""
    steps = folded.state.steps if folded is not None else {}
    failed = [unit.strip() for unit in detail.split(",")]
    errors = [f"{unit}: {steps[unit].last_error}" for unit in failed if unit in steps and steps[unit].last_error]
    return errors[0] if errors else detail


def _waiting(orchestrator: Orchestrator, run: StoredRun) -> DigestEntry:
    words, summary = about(run.system), run.summary
    resume = f"{words.resume} {run.id}"
    if summary.asks or summary.stop is StopReason.WAITING_ON_HUMAN:
        folded = _fold(orchestrator, run)
        asked = [one for one in folded.state.doing if isinstance(one, AskHuman)] if folded is not None else []
        ways = [words.answer if one.in_words else f"orc approve {run.id} {one.unit}" for one in asked[:QUESTIONS_SHOWN]]
        spoken = list(folded.state.doing.spoken.values())[:QUESTIONS_SHOWN] if folded is not None else []
        ways += [f"orc steer {run.id} {one.unit} 'YOUR WORDS'" for one in spoken]
        questions = [*(one.question for one in asked[:QUESTIONS_SHOWN]), *(one.text for one in spoken)]
        why = f"asks: {', '.join(questions)}" if questions else summary.detail
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


def _fold(orchestrator: Orchestrator, run: StoredRun) -> Folded | None:
    """Read a run's journal; None where that would take long, or cannot be."""
    if run.summary.total > UNITS_MAX:
        return None
    try:
        return orchestrator.fold(run)
    except OrcError:
        return None


def _proofs(folded: Folded) -> list[Proof]:
    """Return the checks that passed, the newest of each command and unit; one that failed later is none."""
    newest: dict[tuple[str, str], dict[str, Any]] = {}
    for unit, step in folded.system.details(folded.state)["steps"].items():
        for one in step.get("evidence", ()):
            newest[unit, one["command"]] = one
    passed = [
        (unit, one) for (unit, _), one in newest.items() if one["exit_code"] == 0 and not one["void"] and not one["failure"]
    ]
    return [Proof(unit=unit, command=one["command"], duration_s=one["duration_s"]) for unit, one in passed]


def _spending(orchestrator: Orchestrator, since_us: int, run: StoredRun | None) -> list[Spending]:
    if run is not None:
        return sum_spending(orchestrator.store.usage(run.id))
    return orchestrator.spending(since_us)
