"""Journals of every released version are folded for ever, to what they meant when they were written."""

from __future__ import annotations

from pathlib import Path
from typing import Any, get_args

import msgspec
import pytest

from agent_orchestrator.core.summary import Summary
from agent_orchestrator.core.system import Context, Document
from agent_orchestrator.engine.journal import fold
from agent_orchestrator.projections.writer import encode_document
from agent_orchestrator.store.memory import MemoryStore
from agent_orchestrator.store.port import Append, NewRun
from agent_orchestrator.systems import SYSTEMS, find_system
from tests.journals.record import Recorded

NULLABLE = {
    "state/runs": ("finished_at", "duration_seconds", "exit_code", "output_summary", "failure_reason", "template_name"),
    "state/results": ("duration_seconds",),
}
JOURNALS = sorted(Path(__file__).parent.glob("*/*.json"))


def read(path: Path) -> Recorded:
    return msgspec.json.decode(path.read_bytes(), type=Recorded)


@pytest.mark.parametrize("path", JOURNALS, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_a_recorded_journal_means_what_it_meant(path: Path) -> None:
    recorded = read(path)
    context = msgspec.convert(recorded.context, Context)
    store, run = MemoryStore(), context.run
    bodies = [msgspec.json.encode(events) for _, events in recorded.rows]
    appends = [
        Append(run=run, expected_seq=seq, at_us=at_us, body=body)
        for seq, ((at_us, _), body) in enumerate(zip(recorded.rows, bodies, strict=True))
    ]
    new = NewRun(
        system=recorded.system,
        name="recorded",
        context=context,
        spec=msgspec.json.encode(recorded.spec),
        summary=Summary(status="running"),
    )
    store.create(new, appends[0])
    assert [store.append([part]) for part in appends[1:]] == [[None]] * len(appends[1:])
    stored = store.run(run)
    assert stored is not None
    system = find_system(recorded.system)
    folded = fold(store, system, stored)
    known = _as_printed_now(recorded.documents)
    printed = {one.path: _as_recorded(one, known.get(one.path)) for one in system.documents(folded.state, folded.at_us)}
    assert printed == known


def _as_recorded(document: Document, known: object) -> Any:
    """Return what a document says; the bytes of its file where these were recorded."""
    is_bytes = isinstance(known, str) and not isinstance(document.body, str)
    return msgspec.to_builtins(encode_document(document) if is_bytes else document.body)


def _as_printed_now(documents: dict[str, Any]) -> dict[str, Any]:
    """Say where version 0.1.0 would print a record of a bead today, with null for what it left out.

    It also gave loops that were not completed a `completed_at`.
    """
    found = {}
    for path, document in documents.items():
        place = path
        for folder, kind in (("state/runs/", "run"), ("state/results/", "result")):
            if path.startswith(f"{folder}attempts/"):
                place = f"state/attempts/{path.removeprefix(f'{folder}attempts/').removesuffix('.json')}.{kind}.json"
        nulls = NULLABLE.get("/".join(path.split("/")[:2]), ())
        found[place] = {**dict.fromkeys(nulls), **document} if nulls else document
        if path.startswith(".aiwg/ralph/loops/") and path.endswith("/state.json") and document["status"] != "completed":
            found[place] = {**document, "completed_at": None}
    return found


@pytest.mark.parametrize("name", SYSTEMS)
def test_every_event_a_system_can_write_is_in_a_recorded_journal(name: str) -> None:
    known = {event.__struct_config__.tag for event in get_args(find_system(name).event_type)}
    seen = {_tag(event) for path in JOURNALS for _, events in read(path).rows for event in events if read(path).system == name}
    assert known - seen == set()


def _tag(event: Any) -> Any:
    return event["event"]
