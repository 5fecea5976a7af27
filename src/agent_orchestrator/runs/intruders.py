"""Refuses what agents say to runs, and puts it on record: the run's journal names the launch that tried.

A launch that tries the same thing again and again is journaled once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

import msgspec

from agent_orchestrator.core.consent import name_of
from agent_orchestrator.core.inputs import Answer, Posted
from agent_orchestrator.engine.journal import encode_events
from agent_orchestrator.errors import FromLaunch, RunBusy
from agent_orchestrator.runs.directives import TAKEN_POLL_S, TAKEN_POLLS_MAX
from agent_orchestrator.runs.follow import pause
from agent_orchestrator.store.port import Append, StoredRun

if TYPE_CHECKING:
    from agent_orchestrator.runs.orchestrator import Orchestrator


def refuse_launch(orchestrator: Orchestrator, run: StoredRun, directive: Posted) -> NoReturn:
    """Journals a directive that carries the launch it came from as refused, and raises FromLaunch.

    Whoever drives the run takes it from the inbox and writes that down; nobody does, then it is written here.
    """
    launch = directive.who.launch if directive.who is not None else None
    name = name_of(directive)
    unit = directive.unit or "" if isinstance(directive, Answer) else ""
    directive = msgspec.structs.replace(directive, id=f"{launch}:{name}:{unit}")
    store, now_us = orchestrator.store, orchestrator.clock.now_us()
    if store.post(run.id, directive.id, msgspec.json.encode(directive), now_us):
        _journal(orchestrator, run, directive)
    raise FromLaunch(name=name, run=run.id, launch=launch)


def _journal(orchestrator: Orchestrator, run: StoredRun, directive: Posted) -> None:
    if orchestrator.owned(run.id) is not None:
        _append(orchestrator, run, directive)
        return
    for _ in range(TAKEN_POLLS_MAX):
        if orchestrator.store.posted(run.id, directive.id):
            return
        if orchestrator.owner(run) is None and _journal_unowned(orchestrator, run, directive):
            return
        pause(TAKEN_POLL_S)  # Whoever drives the run may leave it without another look at its inbox.


def _journal_unowned(orchestrator: Orchestrator, run: StoredRun, directive: Posted) -> bool:
    try:
        owner = orchestrator.own(run.id)
    except RunBusy:
        return False
    try:
        if not orchestrator.store.posted(run.id, directive.id):
            _append(orchestrator, run, directive)
    finally:
        owner.release()
    return True


def _append(orchestrator: Orchestrator, run: StoredRun, directive: Posted) -> None:
    folded = orchestrator.fold(run)
    now_us = max(orchestrator.clock.now_us(), folded.at_us)
    body = encode_events(folded.decide(directive, now_us))
    part = Append(run=run.id, expected_seq=folded.seq, at_us=now_us, body=body, taken=(directive.id,))
    orchestrator.store.append([part])
