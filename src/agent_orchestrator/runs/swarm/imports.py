"""Takes over the records of beads that another tool left in `state/`: each becomes a dispatch that has ended.

So `orc swarm status`, `retry` and `analyze` know it, and its attempt numbers go on. Nothing is started here; what was running
elsewhere is lost, as far as this workspace can tell.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from msgspec import UNSET

from agent_orchestrator.agents import ADAPTERS
from agent_orchestrator.agents.options import resolve_agent
from agent_orchestrator.analysis.records import read_seconds
from agent_orchestrator.config.defaults import load_agents
from agent_orchestrator.core.effects import AgentChoice
from agent_orchestrator.core.events import Ended, StopReason
from agent_orchestrator.core.foreign.account import FieldAccount
from agent_orchestrator.core.foreign.records import read_entry
from agent_orchestrator.core.ids import RunId, checked_id
from agent_orchestrator.core.system import Context
from agent_orchestrator.core.units import US
from agent_orchestrator.engine.files import move_aside
from agent_orchestrator.errors import InvalidDocument, InvalidId, Refused, RunExists, UsageError
from agent_orchestrator.runs.choices import AgentOptions, choose_stand_in, stand_in
from agent_orchestrator.runs.imports import TakenOver
from agent_orchestrator.runs.inputs import read_object
from agent_orchestrator.runs.lock import alone
from agent_orchestrator.runs.orchestrator import Beginning, Orchestrator
from agent_orchestrator.runs.swarm.companions import find_owner
from agent_orchestrator.runs.swarm.repair import EVIDENCE, NOT_KNOWN, repair_record
from agent_orchestrator.runs.swarm.start import Swarm
from agent_orchestrator.store.port import StoredRun
from agent_orchestrator.systems.swarm.events import Imported
from agent_orchestrator.systems.swarm.records import RESULTS, RUNS, AttemptStatus, ResultRecord, RunRecord
from agent_orchestrator.systems.swarm.spec import MAX_ATTEMPTS, NO_MODEL, BeadSpec, SwarmSpec, hash_prompt, session_of
from agent_orchestrator.systems.swarm.spellings import respell_record
from agent_orchestrator.systems.swarm.system import SWARM

LOST = "lost"
NO_TIME = "$UNKNOWN"
"""A placeholder for a time that the records do not have: none is made up."""
STOPS = {AttemptStatus.DONE: StopReason.COMPLETED, AttemptStatus.TIMEOUT: StopReason.TIMED_OUT}


def find_beads(path: Path) -> tuple[Path, list[str]] | None:
    """The workspace and the beads that a path of `state/` means: all of them, or one; None for another path."""
    place = path.absolute()
    if place.name == "state" and (place / "runs").is_dir():
        return place.parent, _names(place)
    if place.name in ("runs", "results") and place.parent.name == "state" and place.is_dir():
        return place.parent.parent, _names(place.parent)
    folder = place.parent
    if place.suffix == ".json" and place.is_file() and folder.name in ("runs", "results") and folder.parent.name == "state":
        return folder.parent.parent, [find_owner(place) or place.stem]
    return None


def _names(state: Path) -> list[str]:
    files = [file for folder in ("runs", "results") for file in (state / folder).glob("*.json")]
    return sorted({file.stem for file in files if find_owner(file) is None})


def import_beads(orchestrator: Orchestrator, home: Path, beads: list[str], by: AgentOptions) -> TakenOver:
    """The runs that records became, and what was changed; raises Refused when there is nothing to take over."""
    if home.resolve() != orchestrator.settings.home.resolve():
        raise UsageError(detail=f"These are records of the workspace {home}: give --repo {home}.")
    made: list[StoredRun] = []
    account = FieldAccount()
    with alone(orchestrator.settings.folder, "swarm"):
        swarm = Swarm(orchestrator)
        for bead in beads:
            known = swarm.find(bead)
            if known is not None and len(beads) == 1:
                raise RunExists(run=known.run.id, status=known.run.summary.status)
            if known is None and (run := _import(orchestrator, bead, by, account, single=len(beads) == 1)) is not None:
                made.append(run)
    if not made:
        why = "; ".join(note.rstrip(".") for note in account.lines("changed")) or "all are known already, or there are none"
        raise Refused(why=f"No record of {home / 'state'} can be taken over: {why}.")
    return TakenOver.told(tuple(made), account)


def _import(orchestrator: Orchestrator, bead: str, by: AgentOptions, account: FieldAccount, *, single: bool) -> StoredRun | None:
    home, now_us = orchestrator.settings.home, orchestrator.clock.now_us()
    files = [home / folder / f"{bead}.json" for folder in (RUNS, RESULTS)]
    told = FieldAccount()
    try:
        checked_id(bead, "The bead")
        run, result = (read_object(file, "record", root=home) if file.exists() else None for file in files)
        taken = read_records(home, bead, run, result, told)
    except (InvalidDocument, InvalidId) as error:
        if single:
            raise
        account.change(f"{bead}: left out, {error}")
        return None
    if taken is None or orchestrator.store.run(bead) is not None:
        why = told.lines("changed")[-1] if taken is None else "another run has its id"
        account.change(f"{bead}: left out, {why}")
        return None
    account.change_all(f"{bead}.{note}" for note in told.lines("changed"))
    for line in told.lines("taken"):
        account.take(line)
    spec = SwarmSpec(beads=(_spec(orchestrator, taken.run, by),), dispatch=True)
    stop = STOPS.get(taken.result.status, StopReason.FAILED)
    context = Context(run=RunId(bead), home=str(home), workdir=str(home), created_us=now_us)
    owner = orchestrator.own(bead)
    try:
        facts = (taken, Ended(stop=stop, detail="imported"))
        stored = orchestrator.create(SWARM, spec, bead, context, Beginning(facts=facts))
        for file in files:
            if file.exists():
                move_aside(file, "imported", home)
        orchestrator.settle(stored)
    finally:
        owner.release()
    return orchestrator.find(bead)


def read_records(
    home: Path, bead: str, run: dict[str, Any] | None, result: dict[str, Any] | None, account: FieldAccount
) -> Imported | None:
    """Both records in the full format, agreeing with each other; None, with the reason noted last, when they cannot."""
    if run is None:
        account.change("it has no run record: nothing says what it was asked to do")
        return None
    run = respell_record("run", run, account)
    result = respell_record("result", result, account) if result is not None else None
    attempts = [one["attempt"] for one in (run, result) if one is not None and isinstance(one.get("attempt"), int)]
    ended = result if result is not None and result.get("attempt", 1) == run.get("attempt", 1) else None
    mended = repair_record("run", run, ended)
    account.change_all(change for change in mended.changes if not change.endswith(NOT_KNOWN))
    account.change_all(f"{line}: no field of the format; it stands in the original" for line in account.lines("left"))
    if result is not None and ended is None:
        account.change(f"result: it is of attempt {result.get('attempt', 1)}, the run of {run.get('attempt', 1)}; it is left out")
    status = mended.document.get("status")
    if ended is not None and ended.get("status") in list(AttemptStatus):
        status = ended["status"]
    if status not in (AttemptStatus.DONE, AttemptStatus.FAILED, AttemptStatus.TIMEOUT):
        account.change(f"status: was {status}, and nobody works on it here; is failed")
        status = AttemptStatus.FAILED
        mended.document |= {"failure_reason": mended.document.get("failure_reason") or LOST}
    prompt = str(mended.document.get("prompt_full") or mended.document.get("prompt") or "")
    blanks = {
        "bead": bead,
        "agent": "unknown",
        "model": NO_MODEL,
        "repo": str(home),
        "prompt_hash": hash_prompt(prompt),
        "started_at": NO_TIME,
        "finished_at": NO_TIME,
        "attempt": max(attempts, default=1),
        "max_retries": MAX_ATTEMPTS,
        "session_name": session_of(bead),
        "result_file": f"{RESULTS}/{bead}.json",
    }
    finished = mended.document.get("finished_at") or (ended or {}).get("finished_at")
    document = {**mended.document, "status": status, "finished_at": finished}
    full = read_entry(document, "run", RunRecord, blanks, account)
    if full is None or full.bead != bead or full.attempt < 1 or not prompt.strip():
        why = account.lines("changed")[-1] if full is None else "its record is not that of an attempt with a prompt"
        account.change(why)
        return None
    seconds = read_seconds(full.started_at)
    started_us = int(seconds * US) if seconds is not None else 0
    return Imported(started_us=started_us, run=full, result=_result(full, ended or {}))


def _result(run: RunRecord, told: dict[str, Any]) -> ResultRecord:
    reason, output = told.get("reason"), told.get("output_summary")
    assert run.finished_at is not None, "an ended record has a time"
    return ResultRecord(
        bead=run.bead,
        agent=run.agent,
        status=run.status,
        reason=reason if isinstance(reason, str) and reason else run.failure_reason or run.status.value,
        started_at=run.started_at,
        finished_at=run.finished_at,
        duration_seconds=run.duration_seconds,
        attempt=run.attempt,
        max_retries=run.max_retries,
        will_retry=False,
        exit_code=run.exit_code,
        session_name=run.session_name,
        output_summary=output if isinstance(output, str) else "",
        verification=told.get(EVIDENCE, UNSET),
    )


def _spec(orchestrator: Orchestrator, run: RunRecord, by: AgentOptions) -> BeadSpec:
    choice = AgentChoice(name=run.agent, model=run.model if run.model != NO_MODEL else None)
    configured = load_agents(orchestrator.settings)
    if (other := choose_stand_in(by, orchestrator.settings.home)) is not None:
        choice = stand_in(choice, other)
    elif run.agent in (*ADAPTERS, *configured):
        choice = resolve_agent(choice, configured)  # Whoever else it was may stay unknown until the bead is tried again.
    return BeadSpec(
        id=run.bead,
        prompt=run.prompt_full,
        agent=choice,
        repo=run.repo,
        template=run.template_name or None,
        max_attempts=max(1, run.max_retries),
        attempts_before=run.attempt - 1,
    )
