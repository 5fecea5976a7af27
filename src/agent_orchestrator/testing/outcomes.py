"""Outcomes out of thin air: how any effect may end, well or badly, by the seed."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import msgspec

from agent_orchestrator.core.effects import (
    AskHuman,
    AwaitGates,
    Checkpoint,
    Effect,
    Merge,
    ReadFile,
    RunAgent,
    RunCheck,
    Wait,
)
from agent_orchestrator.core.failure import Failure, FailureKind
from agent_orchestrator.core.inputs import (
    AgentEnded,
    CheckEnded,
    CheckpointEnded,
    FileRead,
    GatesOpened,
    HumanAnswered,
    MergeEnded,
    MergeVerdict,
    Outcome,
    TimerFired,
)
from agent_orchestrator.core.report import Report, check_report
from agent_orchestrator.core.units import US

Reports = Callable[[RunAgent, random.Random], dict[str, Any]]
"""The report of an agent of this effect that does well, laid over its status."""


def invent(
    effect: Effect, chance: random.Random, now_us: int, *, kindly: bool, halting: bool, reports: Reports | None = None
) -> Outcome:
    """Return an outcome that the effect may have now; a kind one is always a good one."""
    bad = not kindly and chance.random() < 0.35
    match effect:
        case RunAgent():
            return _agent_ended(effect, chance, now_us, bad=bad, halting=halting, reports=reports)
        case RunCheck():
            return _check_ended(effect, chance, now_us, bad=bad, halting=halting)
        case AskHuman():
            return HumanAnswered(effect=effect.id, approved=not bad, comments="said so")
        case Wait():
            return TimerFired(effect=effect.id)
        case AwaitGates():
            return GatesOpened(effect=effect.id)
        case ReadFile():
            failure = Failure(kind=FailureKind.SPEC, message="it cannot be read") if bad else None
            return FileRead(effect=effect.id, text="" if bad else '["one", "two"]', failure=failure)
        case Checkpoint():
            if bad:
                return CheckpointEnded(effect=effect.id, unavailable="git is not installed")
            made = "b" * 40 if effect.branch_message is not None else None
            saved = CheckpointEnded(effect=effect.id, commit="c" * 40, tree="t" * 40, head="h" * 40, files_changed=1)
            return msgspec.structs.replace(saved, branch_commit=made)
        case Merge():
            return _merge_ended(effect, chance, bad=bad, halting=halting)


def _merge_ended(effect: Merge, chance: random.Random, *, bad: bool, halting: bool) -> MergeEnded:
    if halting and chance.random() < 0.7:
        return MergeEnded(effect=effect.id, verdict=MergeVerdict.INTERRUPTED, detail="stopped")
    if bad:
        verdict = chance.choice([one for one in MergeVerdict if one is not MergeVerdict.LANDED])
        return MergeEnded(effect=effect.id, verdict=verdict, detail="it did not land", conflicts=("a.py",))
    return MergeEnded(effect=effect.id, verdict=MergeVerdict.LANDED, commit="m" * 40)


def _agent_ended(
    effect: RunAgent, chance: random.Random, now_us: int, *, bad: bool, halting: bool, reports: Reports | None
) -> AgentEnded:
    ended = AgentEnded(effect=effect.id, started_us=now_us, ended_us=now_us + US, exit_code=None)
    if halting and chance.random() < 0.7:
        return msgspec.structs.replace(ended, failure=Failure(kind=FailureKind.STOPPED, message="stopped"))
    if bad:
        kind = chance.choice([kind for kind in FailureKind if kind is not FailureKind.STOPPED])
        return msgspec.structs.replace(ended, failure=Failure(kind=kind, message="it went wrong"))
    extra = reports(effect, chance) if reports is not None else {}
    report = check_report({"status": next(iter(effect.report.words)), **effect.report.ids, **extra}, effect.report)
    assert isinstance(report, Report), report
    return msgspec.structs.replace(ended, exit_code=0, report=report)


def _check_ended(effect: RunCheck, chance: random.Random, now_us: int, *, bad: bool, halting: bool) -> CheckEnded:
    failure = None
    if halting or (bad and chance.random() < 0.5):
        kinds = [FailureKind.STOPPED] if halting else [FailureKind.LOST, FailureKind.TIMEOUT, FailureKind.LAUNCH]
        failure = Failure(kind=chance.choice(kinds), message="it went wrong")
    return CheckEnded(
        effect=effect.id,
        started_us=now_us,
        ended_us=now_us + US,
        exit_code=int(bad),
        failure=failure,
        tail="output",
        # A program that speaks to the world is evidence of nothing about the tree.
        tree_before=None if effect.argv else "tree",
        tree_after=None if effect.argv else chance.choice(["tree", "another"]) if bad else "tree",
    )
