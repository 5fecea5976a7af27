"""The overview: every run in a line, what needs a person, what was spent, and which accounts are parked."""

from __future__ import annotations

from typing import Any

from agent_orchestrator.config.defaults import load_configuration
from agent_orchestrator.core.consent import list_questions
from agent_orchestrator.core.effects import AskHuman
from agent_orchestrator.core.events import StopReason
from agent_orchestrator.core.units import day_start_us, iso
from agent_orchestrator.engine.journal import Folded
from agent_orchestrator.errors import OrcError
from agent_orchestrator.runs.budget import budget_facts
from agent_orchestrator.runs.orchestrator import Orchestrator
from agent_orchestrator.store.port import StoredRun, Which
from agent_orchestrator.surfaces.cli.live.evidence import list_checks
from agent_orchestrator.surfaces.web.repositories import Repository
from agent_orchestrator.surfaces.web.watched import WatchedRuns

NEEDS_MAX = 50
"""Runs of a repository whose questions are shown with their evidence; the list has the others."""
BUDGETS_MAX = 50
UNFINISHED = Which(ended=False)
_TONES = {"green": True, "red": False}


def list_runs(orchestrator: Orchestrator, repository: Repository) -> list[dict[str, Any]]:
    """Return the runs of a repository, the newest first."""
    runs = orchestrator.runs()
    costs = orchestrator.store.costs() if runs else {}
    return [repository.row(run, None if run.summary.ended else orchestrator.owner(run), costs.get(run.id)) for run in runs]


def list_needs(orchestrator: Orchestrator, repository: Repository, watched: WatchedRuns) -> list[dict[str, Any]]:
    """Return what runs ask of people, each with its evidence."""
    asking = [run for run in orchestrator.runs(UNFINISHED) if run.summary.asks and run.id == run.context.run]
    found: list[dict[str, Any]] = []
    for run in asking[:NEEDS_MAX]:
        found += watched.recall(run, lambda run=run: _find_needs(orchestrator, repository, run))  # type: ignore[misc]
    return found


def _find_needs(orchestrator: Orchestrator, repository: Repository, run: StoredRun) -> list[dict[str, Any]]:
    try:
        folded = orchestrator.fold(run)
    except OrcError:  # `orc doctor` says what is wrong with its journal.
        return []
    return [_need(repository, run, folded, one) for one in list_questions(folded.state.doing)]


def _need(repository: Repository, run: StoredRun, folded: Folded, asked: AskHuman) -> dict[str, Any]:
    checks = list_checks(folded.system, folded.state, asked.unit)
    return {
        "key": repository.key(run.id),
        "repo": repository.name,
        "run_id": run.id,
        "name": run.name,
        "system": run.system,
        "unit": asked.unit,
        "question": asked.question,
        "effect": asked.id,
        "in_words": asked.in_words,
        "since_at": iso(run.updated_us),
        "row": folded.seq,
        "evidence": [{"passed": _TONES.get(span.tone), "text": span.text} for span in checks],
    }


def show_day(orchestrator: Orchestrator) -> dict[str, Any]:
    """Return what all runs of a repository spent today, and what they may."""
    day = orchestrator.store.day(day_start_us(orchestrator.clock.now_us()))
    try:
        limit = load_configuration(orchestrator.settings).budget.day
        limits: dict[str, Any] = {"cost_usd": limit.cost_usd, "tokens": limit.tokens}
    except OrcError:  # A fault of the configuration is told by the command that needs it.
        limits = {"cost_usd": None, "tokens": None}
    return {
        "spent": {"cost_usd": round(day.cost_usd, 6), "tokens": day.tokens},
        "reserved": {"cost_usd": round(day.reserved_usd, 6), "tokens": day.reserved_tokens},
        "limit": limits,
    }


def list_windows(orchestrator: Orchestrator, repository: Repository) -> list[dict[str, Any]]:
    """Return the rate limits that were hit, and the runs that wait for them."""
    now_us, windows = orchestrator.clock.now_us(), orchestrator.store.windows()
    runs = orchestrator.runs(UNFINISHED) if any(one.resets_us > now_us for one in windows) else []
    parked = [run for run in runs if run.summary.stop is StopReason.RATE_LIMITED]
    return [
        {
            "repo": repository.name,
            "account": one.account,
            "name": one.name,
            "resets_us": one.resets_us,
            "seen_us": one.seen_us,
            "strikes": one.strikes,
            "open": one.resets_us <= now_us,
            "runs": [repository.key(run.id) for run in parked] if one.resets_us > now_us else [],
        }
        for one in windows
    ]


def show_limits(orchestrator: Orchestrator, repository: Repository, watched: WatchedRuns) -> dict[str, Any]:
    """Return the budgets of the day and of the runs that go on, and the rate limits."""
    budgets = []
    for run in [one for one in orchestrator.runs(UNFINISHED) if one.id == one.context.run][:BUDGETS_MAX]:
        try:
            folded = watched.look(orchestrator, run.id).folded
        except OrcError:
            continue
        budgets.append({"key": repository.key(run.id), "run_id": run.id, **budget_facts(orchestrator, run, folded)})
    return {
        "repo": repository.name,
        "day": show_day(orchestrator) if orchestrator.has_store else None,
        "windows": list_windows(orchestrator, repository) if orchestrator.has_store else [],
        "budgets": budgets,
    }
