"""State files that were changed on disk while nobody drove their run: shown, and adopted only when a person says so.

Who changed a file cannot be known: an agent may have written it before or after its end. So an edit never stands for evidence
(each system refuses that), it is never adopted without a person's word, and not at all where a launch of the run may have been
alive when it was made. Nothing is lost: without that word the file is left where it is and the run stays where it stands.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from pathlib import Path

import msgspec

from agent_orchestrator.core.events import Event
from agent_orchestrator.core.ids import EffectId
from agent_orchestrator.core.inputs import Edited, Resume
from agent_orchestrator.core.printed import Printed
from agent_orchestrator.core.system import Document
from agent_orchestrator.core.units import iso
from agent_orchestrator.engine.files import move_aside
from agent_orchestrator.engine.journal import Folded, encode_events
from agent_orchestrator.errors import EditsUnconfirmed, InvalidDocument
from agent_orchestrator.projections.differences import differences
from agent_orchestrator.projections.inspection import PrintoutState, inspect
from agent_orchestrator.projections.writer import encode_document, identify, put_in_place, sync_folders, write_draft
from agent_orchestrator.runs.orchestrator import Orchestrator
from agent_orchestrator.store.port import Append, StoredRun

SHOWN = 20
REFUSED = "edit_refused"
"""The tag by which every system says that it does not take an edit."""


class Edit(msgspec.Struct, frozen=True, kw_only=True):
    """One changed file, sound as far as its shape goes."""

    path: Path
    document: Document
    edited: Edited
    changes: tuple[str, ...]
    lived: EffectId | None
    """A launch of the run that may have been alive when it was changed."""


class Adopted(msgspec.Struct, frozen=True, kw_only=True):
    """The edits that a run goes on with, and what a person is told."""

    inputs: tuple[Edited, ...] = ()
    notes: tuple[str, ...] = ()


def take_edits(orchestrator: Orchestrator, run: StoredRun, folded: Folded, now_us: int, adopt: bool | None) -> Adopted:
    """Return the edits that are adopted, moved out of the way of the next print-out.

    `adopt` is a person's word: yes, no, or None for none, which raises EditsUnconfirmed and touches nothing. An edit that its
    system refuses is put aside and raises InvalidDocument.
    """
    notes: list[str] = []
    found = _find(orchestrator, run, folded, now_us, notes)
    if found:
        orchestrator.sign(run, Resume(id=uuid.uuid4().hex))  # An agent that edits the state and resumes decides for a person.
    meant: list[Edit] = []
    trial = orchestrator.fold(run) if found else folded
    for edit in found:
        events = trial.decide(edit.edited, now_us)
        if problems := [one for event in events for one in _problems(event)]:
            _journal(orchestrator, run, folded, events, now_us)
            raise _put_aside(orchestrator, run, edit.document, problems, now_us)
        if events and not any(_is_refusal(event) for event in events):
            meant.append(edit)
        trial.apply(events, now_us)
    if meant and (adopt is None or (adopt and any(edit.lived for edit in meant))):
        raise _ask(run, meant)
    left = meant if adopt is False else []
    for edit in found:
        aside = move_aside(edit.path, f"edited-{iso(now_us)}", Path(run.context.home))
        done = "left out and kept" if edit in left else "kept"
        notes.append(f"{edit.path} was edited by hand; {done} as {aside.name}.")
        notes += [f"  {line}" for line in _clipped(edit.changes)] if edit in meant else []
    return Adopted(inputs=tuple(edit.edited for edit in found if edit not in left), notes=tuple(notes))


def _find(orchestrator: Orchestrator, run: StoredRun, folded: Folded, now_us: int, notes: list[str]) -> list[Edit]:
    home = Path(run.context.home)
    known = orchestrator.store.printed(run.id)
    launches = orchestrator.launches()
    sound: list[Edit] = []
    again: list[Printed] = []
    for document in folded.system.documents(folded.state, now_us):
        if document.append:
            continue  # Others may add to it as they like.
        path = home / document.path
        found = inspect(home, path, known.get(document.path, []))
        if found.state is PrintoutState.UNREACHED:
            notes.append(f"{path} is left alone: {found.problem}.")
            continue
        if found.state in (PrintoutState.OURS, PrintoutState.MISSING, PrintoutState.TORN):
            continue
        ours = encode_document(document)
        if (copy := identify(home, path, ours)) is not None:
            again.append(Printed(path=document.path, identity=copy))  # put back from a backup, and nothing else
            continue
        faults = [found.problem]
        if found.document is not None:
            faults = folded.system.faults(document.path, found.document)
        if faults:
            raise _put_aside(orchestrator, run, document, faults, now_us)
        assert found.document is not None
        changed_ns = path.stat().st_ctime_ns
        edit = Edit(
            path=path,
            document=document,
            edited=Edited(path=document.path, document=found.document),
            changes=tuple(differences(msgspec.json.decode(ours), found.document)),
            lived=launches.alive_between(changed_ns, changed_ns, run.id),
        )
        sound.append(edit)
    if again:
        orchestrator.store.append([Append(run=run.id, expected_seq=0, at_us=now_us, printed=tuple(again))])
    return sound


def _is_refusal(event: Event) -> bool:
    return type(event).__struct_config__.tag == REFUSED


def _problems(event: Event) -> Sequence[str]:
    return getattr(event, "problems", ()) if _is_refusal(event) else ()


def _ask(run: StoredRun, edits: Sequence[Edit]) -> EditsUnconfirmed:
    lines = [f"Run {run.id} stands still: its state was edited, and nothing of that counts until a person says so."]
    for edit in edits:
        lines.append(f"{edit.path}:")
        lines += [f"  {line}" for line in _clipped(edit.changes)]
    lived = next((edit for edit in edits if edit.lived is not None), None)
    if lived is None:
        lines.append("--adopt-edits continues with it, --no-adopt-edits without it; the file is kept beside the new one.")
    else:
        lines.append(f"It was changed while the launch {lived.lived} may have been alive, which could have done it.")
        lines.append(
            f"If it is yours, look at it and save it again (`touch {lived.path}`): then --adopt-edits continues with it."
        )
        lines.append("--no-adopt-edits continues without it; the file is kept beside the new one.")
    return EditsUnconfirmed(text="\n".join(lines), lived=lived is not None)


def _clipped(changes: Sequence[str]) -> list[str]:
    more = len(changes) - SHOWN
    return [*changes[:SHOWN], *([f"and {more} more"] if more > 0 else [])]


def _journal(orchestrator: Orchestrator, run: StoredRun, folded: Folded, events: Sequence[Event], now_us: int) -> None:
    """Put on record what somebody tried."""
    part = Append(run=run.id, expected_seq=folded.seq, at_us=now_us, body=encode_events(events))
    orchestrator.store.append([part])


def _put_aside(
    orchestrator: Orchestrator, run: StoredRun, document: Document, faults: Sequence[str], now_us: int
) -> InvalidDocument:
    """Put a file that cannot be adopted aside, and the journal's version in its place; return the error that says so."""
    home = Path(run.context.home)
    path = home / document.path
    aside = move_aside(path, f"edited-{iso(now_us)}", home)
    draft = write_draft(home, document, encode_document(document), first=True)
    orchestrator.store.append([Append(run=run.id, expected_seq=0, at_us=now_us, printed=(draft.printed,))])
    put_in_place(draft)
    sync_folders([draft])
    detail = "; ".join(faults[:5])
    detail += f". It was put aside as {aside.name} and the journal's version written instead: resume again to use that"
    return InvalidDocument(path=path, what="state file", detail=detail)
