"""Directives to runs that other processes drive: sent, and waited for a moment until they are taken."""

from __future__ import annotations

import uuid

import msgspec

from agent_orchestrator import typed
from agent_orchestrator.core.effects import AskHuman
from agent_orchestrator.core.events import DirectiveRefused
from agent_orchestrator.core.inputs import Abort, Answer, Instruct, Pause, Posted
from agent_orchestrator.core.lifecycle import Phase
from agent_orchestrator.engine.journal import decode_events
from agent_orchestrator.errors import Refused
from agent_orchestrator.runs.follow import pause
from agent_orchestrator.runs.orchestrator import Orchestrator
from agent_orchestrator.store.port import StoredRun
from agent_orchestrator.systems import find_system

TAKEN_POLL_S = 0.02
TAKEN_POLLS_MAX = 150


class Sent(msgspec.Struct, frozen=True, kw_only=True):
    """A directive that stands in a run's inbox or was taken from it."""

    directive: str
    """Its id."""
    taken: bool
    """True once the process that drives the run has taken it; what waits is taken by whoever drives the run next."""
    owner: str | None
    """The process that drives the run; None if nobody does."""


def new_id() -> str:
    """Return an id for one directive."""
    return uuid.uuid4().hex


def send_and_wait(orchestrator: Orchestrator, run: StoredRun, directive: Posted) -> Sent:
    """Put the directive into the inbox; if another process drives the run, wait until it is taken. Raise Refused.

    A process that was about to leave may do so without it: then nobody drives the run, and the directive waits.
    Sent from the process that drives the run, it is taken when the caller gives control back.
    """
    last = orchestrator.send(run, directive)
    owner = orchestrator.owner(run)
    for _ in range(0 if owner is None or orchestrator.owned(run.id) is not None else TAKEN_POLLS_MAX):
        left = orchestrator.owner(run) is None  # Asked before the inbox: it may take the directive and leave.
        if not any(waiting == directive.id for waiting, _ in orchestrator.store.inbox(run.id)):
            _raise_if_refused(orchestrator, run, directive.id, last)
            return Sent(directive=directive.id, taken=True, owner=owner)
        if left:
            return Sent(directive=directive.id, taken=False, owner=None)
        pause(TAKEN_POLL_S)
    return Sent(directive=directive.id, taken=False, owner=owner)


def _raise_if_refused(orchestrator: Orchestrator, run: StoredRun, directive: str, after: int) -> None:
    """Raise what the driver refused: somebody else may have been quicker."""
    system = find_system(run.system)
    for _, _, body in orchestrator.store.rows(run.id, after):
        for event in decode_events(system, body):
            if isinstance(event, DirectiveRefused) and event.directive == directive:
                raise Refused(why=f"Run {run.id}: {event.why}.")


def refuse_second_answer(orchestrator: Orchestrator, run: StoredRun, unit: str | None = None) -> None:
    """Raise while an earlier answer to the same question waits for somebody to drive the run: it would be lost."""
    if orchestrator.owner(run) is not None:
        return
    found = [one for _, body in orchestrator.store.inbox(run.id) if (one := _read(body)) is not None]
    said = [one.unit for one in found if isinstance(one, Answer)]
    said += [one.values.get("unit") for one in found if isinstance(one, Instruct) and one.what == "answer"]
    if any(unit is None or other in (None, unit) for other in said):
        raise Refused(why=f"Run {run.id} has an answer already that waits to be taken; continue with `orc resume {run.id}`.")


def _read(body: bytes) -> Posted | None:
    """Read a directive of somebody who counts; None for what will be refused when it is taken."""
    try:
        said = typed.decode(body, Posted)
    except msgspec.DecodeError:
        return None
    return said if said.who is not None and said.who.launch is None else None


def send_judgement(orchestrator: Orchestrator, run: StoredRun, said: Answer) -> Sent:
    """Send a person's yes or no; one that names no question is for the one that is asked now."""
    refuse_second_answer(orchestrator, run, said.unit)
    return send_and_wait(orchestrator, run, said)


def send_words(orchestrator: Orchestrator, run: StoredRun, unit: str | None, text: str) -> Sent:
    """Send a person's answer in words, to the unit that asks for one where none is named."""
    if unit is None:
        asked = [one.unit for one in orchestrator.fold(run).state.doing if isinstance(one, AskHuman) and one.in_words]
        if not asked:
            raise Refused(why=f"Run {run.id} asks nothing that is answered in words.")
        unit = asked[0]
    refuse_second_answer(orchestrator, run, unit)
    return send_and_wait(orchestrator, run, Instruct(id=new_id(), what="answer", values={"text": text, "unit": unit}))


def send_stop(orchestrator: Orchestrator, run: StoredRun, directive: Posted) -> None:
    """Put a directive into the inbox of a run that nobody drives; a stop that was cut short is not asked for a second time."""
    folded = orchestrator.fold(run)
    state = folded.state
    life, stops = state.lifecycle, isinstance(directive, Pause) and directive.now
    aborting = life.phase is Phase.ABORTING and isinstance(directive, Abort)
    if not aborting and not (stops and life.phase is Phase.PAUSED and life.halting and state.doing.at_work):
        orchestrator.send(run, directive, folded)
