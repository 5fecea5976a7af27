"""The ids of runs: new ones, and those under which replaced runs are kept."""

from __future__ import annotations

import uuid

import msgspec

from agent_orchestrator.beneath import move_beneath
from agent_orchestrator.core.ids import RunId, unit_of
from agent_orchestrator.errors import Refused
from agent_orchestrator.runs.orchestrator import Orchestrator
from agent_orchestrator.store.port import Append

RUN_ID_TRIES = 8


def new_run_id(orchestrator: Orchestrator) -> str:
    """Return eight hex digits that no run has."""
    for _ in range(RUN_ID_TRIES):
        run = uuid.uuid4().hex[:8]
        if orchestrator.known(run) is None:
            return run
    raise AssertionError("eight random ids in a row were taken")


def keep_as(orchestrator: Orchestrator, run: str) -> None:
    """Keep the journal and the launches of a run under `X~1`, `X~2`, …: its id is free again. The caller owns the run."""
    launches = orchestrator.settings.folder / "launches"
    number = 1
    while orchestrator.known(f"{run}~{number}") is not None or (launches / f"{run}~{number}").exists():
        number += 1
    _keep(orchestrator, run, f"{run}~{number}", journaled=orchestrator.known(run) is not None)


def _keep(orchestrator: Orchestrator, run: str, kept: str, *, journaled: bool) -> None:
    if living := orchestrator.launches().living(RunId(run)):
        names = ", ".join(unit_of(effect) for effect in living)
        raise Refused(why=f"Agents of an earlier run {run} are still alive ({names}); end them with `orc abort {run}` first.")
    launches = orchestrator.settings.folder / "launches"
    if (launches / run).exists():
        move_beneath(orchestrator.settings.folder, launches / run, launches / kept)
    if journaled:
        store = orchestrator.store
        store.rename(RunId(run), RunId(kept))
        if (stored := store.run(kept)) is not None and not stored.summary.ended:
            replaced = msgspec.structs.replace(
                stored.summary, status="replaced", detail=f"run {run} was started afresh", doing=()
            )
            store.append([Append(run=RunId(kept), expected_seq=0, at_us=orchestrator.clock.now_us(), summary=replaced)])
