"""Takes a stored run up again: what people changed on disk meanwhile, what they ask for now, and a place for a new run.

Edits are adopted only here, explicitly, and only while nothing of the run is alive; a file that cannot be adopted is
put aside, never overwritten and never read as truth.
"""

from __future__ import annotations

import uuid
from pathlib import Path

import msgspec

from agent_orchestrator.config import load_agents
from agent_orchestrator.core.budget import Budget
from agent_orchestrator.core.effects import ACTIVE
from agent_orchestrator.core.events import DirectiveRefused
from agent_orchestrator.core.inputs import Edited, Given, Resume, SetAgents, SetLimits
from agent_orchestrator.core.lifecycle import Phase
from agent_orchestrator.core.printed import Printed
from agent_orchestrator.core.system import Document
from agent_orchestrator.core.units import iso
from agent_orchestrator.engine.files import move_aside
from agent_orchestrator.engine.journal import Folded
from agent_orchestrator.engine.launches import Standing
from agent_orchestrator.errors import InvalidDocument, Refused
from agent_orchestrator.projections.inspection import PrintoutState, inspect
from agent_orchestrator.projections.writer import encode_document, identify, put_in_place, sync_folders, write_draft
from agent_orchestrator.runs.budget import refuse_unmetered
from agent_orchestrator.runs.hooks import hooks_of
from agent_orchestrator.runs.orchestrator import Orchestrator
from agent_orchestrator.runs.settings import reread
from agent_orchestrator.runs.start import UNCHANGED, Change
from agent_orchestrator.runs.trees import enter_again
from agent_orchestrator.store.port import Append, StoredRun


class TakeUp(msgspec.Struct, frozen=True, kw_only=True):
    """The first inputs for the engine of a run that is taken up, and what a person is told."""

    inputs: tuple[Given, ...]
    notes: tuple[str, ...]


def take_up(orchestrator: Orchestrator, run: StoredRun, change: Change = UNCHANGED) -> TakeUp:
    """Adopt edits and ask the run to go on, with what is changed on the way; raise Refused when it cannot.

    Settings of agents are read again; a configuration with faults is told before anything is touched. The caller owns the run.
    """
    load_agents(orchestrator.settings)
    orchestrator.refuse_kept(run)
    hooks = hooks_of(run.system)
    continuation = hooks.go_on(orchestrator, run, change.values, adopt=change.adopt)
    beside = enter_again(orchestrator, run, shared=change.shared)
    hooks.claim(orchestrator, run)
    folded = orchestrator.fold(run)
    now_us = max(orchestrator.clock.now_us(), folded.at_us)
    inputs: list[Given] = []
    published, said = hooks.publish(orchestrator, run, change.publish)
    notes = [*beside, *said]
    if not _anything_alive(orchestrator, folded):
        for edited, note in _edits(orchestrator, run, folded, now_us):
            inputs.append(edited)
            notes.append(note)
            folded.apply(folded.decide(edited, now_us), now_us)
    if inputs:
        orchestrator.sign(run, Resume(id=uuid.uuid4().hex))  # An agent that edits the state and resumes decides for a person.
    adopted, told = continuation.compare(folded.state)
    changes = {**change.values, **published, **adopted}
    if change.budget.is_set:
        inputs.append(orchestrator.sign(run, SetLimits(id=uuid.uuid4().hex, limits=change.budget)))
    life = folded.state.lifecycle
    if changes or not (life.running or life.phase is Phase.ABORTING):  # an abort that was cut short only has to be ended
        resume = orchestrator.sign(run, Resume(id=uuid.uuid4().hex, changes=changes))
        for event in folded.decide(resume, now_us):
            if isinstance(event, DirectiveRefused):
                _print_ended(orchestrator, run, folded)
                raise Refused(why=f"Run {run.id} cannot go on: {event.why}.")
            folded.apply([event], now_us)
        inputs.append(resume)
    read = reread(orchestrator, folded.state.spec, change.permissions)
    if read.agents:
        inputs.append(orchestrator.sign(run, SetAgents(id=uuid.uuid4().hex, agents=read.agents, changes=read.changes)))
    notes += [*told, *read.notes, *read.changes]
    refuse_unkept(folded, change.budget)
    continuation.check(folded.state, adopted)
    return TakeUp(inputs=tuple(inputs), notes=tuple(notes))


def refuse_unkept(folded: Folded, budget: Budget) -> None:
    """Raises a UsageError when a stored run is given a budget that its agents, who do not say what they consume, would escape."""
    if budget.limits_cost or budget.limits_tokens:
        refuse_unmetered(folded.state.doing.budget.override(budget), folded.state.spec.choices)


def _print_ended(orchestrator: Orchestrator, run: StoredRun, folded: Folded) -> None:
    """A process that died between the last fact and its print-out left an old file, or somebody deleted it."""
    if folded.state.lifecycle.ended:
        orchestrator.settle(run)


def _anything_alive(orchestrator: Orchestrator, folded: Folded) -> bool:
    launches = orchestrator.launches()
    return any(
        launches.standing(effect.id, same_boot=True) is Standing.ALIVE
        for effect in folded.state.doing
        if isinstance(effect, ACTIVE)
    )


def _edits(orchestrator: Orchestrator, run: StoredRun, folded: Folded, now_us: int) -> list[tuple[Edited, str]]:
    known = orchestrator.store.printed(run.id)
    sound: list[tuple[Path, Edited]] = []
    again: list[Printed] = []
    for document in folded.system.documents(folded.state, now_us):
        if document.append:
            continue  # Others may add to it as they like.
        path = Path(run.context.home, document.path)
        found = inspect(path, known.get(document.path, []))
        if found.state in (PrintoutState.OURS, PrintoutState.MISSING, PrintoutState.TORN):
            continue
        if (copy := identify(path, encode_document(document))) is not None:
            again.append(Printed(path=document.path, identity=copy))  # put back from a backup, and nothing else
            continue
        faults = [found.problem]
        if found.document is not None:
            faults = folded.system.faults(document.path, found.document)
        if faults:
            aside = _replace(orchestrator, run, document, now_us)
            detail = "; ".join(faults[:5])
            detail += f". It was put aside as {aside.name} and the journal's version written instead: resume again to use that"
            raise InvalidDocument(path=path, what="state file", detail=detail)
        assert found.document is not None
        sound.append((path, Edited(path=document.path, document=found.document)))
    if again:
        orchestrator.store.append([Append(run=run.id, expected_seq=0, at_us=now_us, printed=tuple(again))])
    kept = [(edited, path, move_aside(path, f"edited-{iso(now_us)}")) for path, edited in sound]
    return [(edited, f"{path} was edited by hand; kept as {aside.name}.") for edited, path, aside in kept]


def _replace(orchestrator: Orchestrator, run: StoredRun, document: Document, now_us: int) -> Path:
    """Puts a file that cannot be adopted aside, and what the journal says in its place; answers with where it is kept."""
    home = Path(run.context.home)
    aside = move_aside(home / document.path, f"edited-{iso(now_us)}")
    draft = write_draft(home, document, encode_document(document), first=True)
    orchestrator.store.append([Append(run=run.id, expected_seq=0, at_us=now_us, printed=(draft.printed,))])
    put_in_place(draft)
    sync_folders([draft])
    return aside
