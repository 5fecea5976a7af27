"""Sends directives to runs that other processes drive, and waits a moment to see them taken."""

from __future__ import annotations

import uuid
from typing import Any

import msgspec

from agent_orchestrator.core.events import DirectiveRefused
from agent_orchestrator.core.ids import EffectId
from agent_orchestrator.core.inputs import Abort, Answer, Directive, Instruct, Pause, Posted
from agent_orchestrator.core.lifecycle import Phase
from agent_orchestrator.engine.journal import decode_events
from agent_orchestrator.errors import Refused
from agent_orchestrator.runs.orchestrator import Orchestrator
from agent_orchestrator.store.port import StoredRun
from agent_orchestrator.surfaces.cli.facts import run_facts
from agent_orchestrator.surfaces.cli.follow import pause
from agent_orchestrator.surfaces.cli.options import open_orchestrator, pick
from agent_orchestrator.surfaces.cli.screen import Screen, print_json
from agent_orchestrator.systems import find_system

TAKEN_POLL_S = 0.02
TAKEN_POLLS_MAX = 150


class Sent(msgspec.Struct, frozen=True, kw_only=True):
    """What became of a directive."""

    directive: str
    taken: bool
    owner: str | None


def new_id() -> str:
    """An id for one directive."""
    return uuid.uuid4().hex


def send_and_wait(orchestrator: Orchestrator, run: StoredRun, directive: Posted) -> Sent:
    """Puts the directive into the inbox; if somebody drives the run, waits until he took it. Raises Refused."""
    last = orchestrator.fold(run).seq
    orchestrator.send(run, directive)
    owner = orchestrator.owner(run)
    for _ in range(TAKEN_POLLS_MAX if owner is not None else 0):
        if not any(waiting == directive.id for waiting, _ in orchestrator.store.inbox(run.id)):
            _raise_if_refused(orchestrator, run, directive.id, last)
            return Sent(directive=directive.id, taken=True, owner=owner)
        pause(TAKEN_POLL_S)
    return Sent(directive=directive.id, taken=False, owner=owner)


def _raise_if_refused(orchestrator: Orchestrator, run: StoredRun, directive: str, after: int) -> None:
    """Somebody else may have been quicker: what the driver refused is refused here."""
    system = find_system(run.system)
    for _, _, body in orchestrator.store.rows(run.id, after):
        for event in decode_events(system, body):
            if isinstance(event, DirectiveRefused) and event.directive == directive:
                raise Refused(why=f"Run {run.id}: {event.why}.")


def refuse_second_answer(orchestrator: Orchestrator, run: StoredRun, unit: str | None = None) -> None:
    """Raises while an earlier answer to the same question waits for somebody to drive the run: it would be lost."""
    if orchestrator.owner(run) is not None:
        return
    found = [one for _, body in orchestrator.store.inbox(run.id) if (one := _read(body)) is not None]
    said = [one.unit for one in found if isinstance(one, Answer)]
    said += [one.values.get("unit") for one in found if isinstance(one, Instruct) and one.what == "answer"]
    if any(unit is None or other in (None, unit) for other in said):
        raise Refused(why=f"Run {run.id} has an answer already that waits to be taken; go on with `orc resume {run.id}`.")


def _read(body: bytes) -> Posted | None:
    """A directive of somebody who counts; None for what will be refused when it is taken."""
    try:
        said = msgspec.json.decode(body, type=Posted)
    except msgspec.DecodeError:
        return None
    return said if said.who is not None and said.who.launch is None else None


def report_sent(orchestrator: Orchestrator, run: StoredRun, sent: Sent, text: str, *, as_json: bool) -> int:
    """Says that it was sent."""
    if as_json:
        fresh = orchestrator.store.run(run.id) or run
        more: dict[str, Any] = {"directive": sent.directive, "taken": sent.taken, "message": text}
        print_json({**run_facts(fresh, orchestrator.owner(run)), **more})
    else:
        Screen(orchestrator.settings.environ).line(text)
    return 0


def say(orchestrator: Orchestrator, run: StoredRun, directive: Directive) -> None:
    """Puts a directive into the inbox of a run that nobody drives; a stop that was cut short is not asked for a second time."""
    state = orchestrator.fold(run).state
    life, stops = state.lifecycle, isinstance(directive, Pause) and directive.now
    aborting = life.phase is Phase.ABORTING and isinstance(directive, Abort)
    if not aborting and not (stops and life.phase is Phase.PAUSED and life.halting and state.doing.at_work):
        orchestrator.send(run, directive)


def stop_here(orchestrator: Orchestrator, run: StoredRun, directive: Directive, *, as_json: bool) -> int:
    """Takes up a run that nobody drives, just long enough for the directive to be carried out."""
    from agent_orchestrator.surfaces.cli.drive import Manner, drive

    say(orchestrator, run, directive)
    drive(orchestrator, run, orchestrator.own(run.id), Manner(as_json=as_json, rest=True))
    return 0


def answer(
    repo: str | None,
    run: str | None,
    unit: str | None,
    *,
    approved: bool,
    comments: str,
    as_json: bool,
    asked: str | None = None,
) -> int:
    """Sends a person's judgement, for `approve` and `reject`; `asked` is the question that was seen, else the one asked now."""
    with open_orchestrator(repo) as orchestrator:
        found = pick(orchestrator, run)
        refuse_second_answer(orchestrator, found, unit)
        said = Answer(
            id=new_id(), approved=approved, unit=unit, comments=comments, asked=EffectId(asked) if asked is not None else None
        )
        sent = send_and_wait(orchestrator, found, said)
        word = "Approved" if approved else "Rejected"
        text = f"{word} in run {found.id}."
        if sent.owner is None:
            text = f"{word} in run {found.id}: recorded. Nobody drives it now; go on with: orc resume {found.id}"
        elif not sent.taken:
            text = f"{word} in run {found.id}: recorded; {sent.owner} has not taken it yet."
        return report_sent(orchestrator, found, sent, text, as_json=as_json)
