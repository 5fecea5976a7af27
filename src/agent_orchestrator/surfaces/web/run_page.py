"""The page of one run as plain data, as of now or of any row of its journal: facts, graph, units, documents, words of people."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from agent_orchestrator.core import consent
from agent_orchestrator.core.events import DirectiveRefused, UnitSteered
from agent_orchestrator.core.lifecycle import Phase
from agent_orchestrator.core.system import Document
from agent_orchestrator.core.units import iso
from agent_orchestrator.engine.journal import decode_events
from agent_orchestrator.errors import UnknownUnit
from agent_orchestrator.runs.budget import budget_facts
from agent_orchestrator.runs.hooks import hooks_of
from agent_orchestrator.runs.orchestrator import Orchestrator
from agent_orchestrator.store.port import StoredRun, sum_spending
from agent_orchestrator.surfaces.cli.phrases import say_event
from agent_orchestrator.surfaces.web.launches import describe_launch, find_attach, read_numbers
from agent_orchestrator.surfaces.web.repositories import Repository
from agent_orchestrator.surfaces.web.watched import GRAPH_COLUMNS, Moment, WatchedRun, graph_rows
from agent_orchestrator.systems import about, find_system

ENTRIES_MAX = 500
DOCUMENTS_MAX = 400
"""A swarm prints two for each bead; the board shows what they say without them."""


def show_run(orchestrator: Orchestrator, repository: Repository, watched: WatchedRun, moment: Moment) -> dict[str, Any]:
    """Return a run as a whole: what can be done with it, what it asks, what it may spend."""
    run, folded = moment.run, moment.folded
    words = about(run.system)
    details = dict(folded.system.details(folded.state))
    details.pop("steps", None)
    owner = orchestrator.owner(run)
    return {
        "seq": folded.seq,
        "row": folded.seq if moment.is_past else None,
        "last_row": moment.last_row,
        "at_us": folded.at_us,
        "run": repository.row(run, owner, orchestrator.store.costs(run.id).get(run.id)),
        "words": {"noun": words.noun, "unit": words.unit, "iterates": words.iterates},
        "actions": list_actions(watched, moment, owner),
        "questions": list_questions(folded.state),
        "budget": budget_facts(orchestrator, run, folded),
        "points": [{"name": name, "row": row} for name, row in watched.read_history(orchestrator).facts()["points"]],
        "details": details,
    }


def list_actions(watched: WatchedRun, moment: Moment, owner: str | None) -> list[str]:
    """Return what a person can do with a run now; with its past, only to go back to it, or to fork it there."""
    run, state = moment.run, moment.folded.state
    if run.id != run.context.run:
        return []
    if moment.is_past:
        return ["fork", "rewind"]
    life = state.lifecycle
    asked = consent.list_questions(state.doing) if not life.ended else []
    found = ["approve", "reject"] if any(not one.in_words for one in asked) else []
    found += ["answer"] if any(one.in_words for one in asked) else []
    if not life.ended and life.phase is not Phase.ABORTING:
        found += ["pause"] if life.running and owner is not None else ["resume"]
        found += ["abort", "steer"]
    elif life.ended and run.summary.status != "completed":
        found.append("resume")
    found += ["retry"] if run.summary.failed or (life.ended and run.summary.status != "completed") else []
    found += ["skip"] if hooks_of(run.system).skips and not life.ended else []
    finishes = watched.finishes()
    found += [*(["merge"] if finishes.merge else []), *(["discard"] if finishes.discard else [])]
    return [*found, "fork", "rewind"]


def list_questions(state: Any) -> list[dict[str, Any]]:
    """Return what a run asks people."""
    if state.lifecycle.ended:
        return []
    asked = consent.list_questions(state.doing)
    return [{"effect": one.id, "unit": one.unit, "text": one.question, "in_words": one.in_words} for one in asked]


def show_graph(moment: Moment) -> dict[str, Any]:
    """Return the units of a run with what each needs."""
    state = moment.folded.state
    rows = [row for _, row in graph_rows(moment)]
    numbers = {row[0]: number for number, row in enumerate(rows)}
    back = hooks_of(moment.run.system).loop_backs(state)
    edges = [(numbers[one], numbers[other]) for one, other in back if one in numbers and other in numbers]
    return {"seq": moment.folded.seq, "columns": GRAPH_COLUMNS, "rows": rows, "back": edges}


def show_unit(orchestrator: Orchestrator, moment: Moment, unit: str) -> dict[str, Any]:
    """Return a unit with its launches, its evidence, and what it was told; raise UnknownUnit."""
    run, folded = moment.run, moment.folded
    found = graph_rows(moment, {unit})
    if not found:
        raise UnknownUnit(run=run.id, unit=unit, known=", ".join(list(folded.state.steps)[:20]))
    steps = list(folded.state.steps)
    facts = dict(zip(GRAPH_COLUMNS, found[0][1], strict=True))
    facts["needs"] = [steps[number] for number in facts["needs"]]
    more = dict(folded.system.details(folded.state)["steps"].get(unit, {}))
    usage = {line.effect: line for line in orchestrator.store.usage(run.id) if line.unit == unit}
    launches = [describe_launch(orchestrator, moment, one, usage.get(one["effect"])) for one in more.pop("launches", ())]
    evidence = [
        {**one, "passed": one["exit_code"] == 0 and not one["void"] and not one["failure"]} if "exit_code" in one else one
        for one in more.pop("evidence", ())
    ]
    return {
        "seq": folded.seq,
        "unit": facts,
        "launches": launches,
        "evidence": evidence,
        "feedback": more.pop("feedback", []),
        "warnings": more.pop("warnings", []),
        "steering": [one.text for one in folded.state.doing.steering if one.unit in ("", unit)],
        "attach": find_attach(folded.state, unit),
        "more": more,
    }


def show_documents(moment: Moment, now_us: int) -> dict[str, Any]:
    """Return the print-outs of a run as plain data, by path."""
    folded = moment.folded
    found: dict[str, Any] = {}
    for document in folded.system.documents(folded.state, now_us):
        if document.once or len(found) >= DOCUMENTS_MAX:
            continue
        found[document.path] = _body(document)
    return {"seq": folded.seq, "documents": found}


def _body(document: Document) -> Any:
    body = document.body
    return body.decode("utf-8", "replace") if isinstance(body, bytes) else body


def show_iterations(moment: Moment) -> dict[str, Any]:
    """Return the iterations of a run that is one unit."""
    return {"seq": moment.folded.seq, "iterations": hooks_of(moment.run.system).iterations(moment.folded.state)}


def show_journal(orchestrator: Orchestrator, run: StoredRun, after: int, before: int | None, limit: int) -> dict[str, Any]:
    """Return facts of a journal in words: those after a row, or the newest before one, newest first."""
    system = find_system(run.system)
    rows = orchestrator.store.rows(run.id, after)
    limit = max(1, min(limit, ENTRIES_MAX))
    if before is not None or not after:
        rows = [row for row in rows if before is None or row[0] < before][::-1]
    entries = [entry for row in rows[:limit] for entry in list_entries(run.system, row[0], row[1], decode_events(system, row[2]))]
    return {"entries": entries, "more": len(rows) > limit}


def list_entries(system: str, seq: int, at_us: int, events: list[Any]) -> Iterator[dict[str, Any]]:
    """Yield the events of a row as data and in words."""
    for event in events:
        told = say_event(system, event)
        data = msgspec.to_builtins(event)
        name = data.pop("event")
        yield {"row": seq, "at": iso(at_us), "event": name, "unit": told.unit, "text": told.words, "data": data}


def show_messages(orchestrator: Orchestrator, run: StoredRun) -> dict[str, Any]:
    """Return the words of people to a run, and what it asked them."""
    system = find_system(run.system)
    found: list[dict[str, Any]] = []
    for seq, at_us, body in orchestrator.store.rows(run.id):
        if b'"who"' not in body and b"steered" not in body:
            continue
        for event in decode_events(system, body):
            if event.who is None and not isinstance(event, UnitSteered | DirectiveRefused):
                continue
            told = say_event(run.system, event)
            kind = str(event.__struct_config__.tag)
            text = event.text if isinstance(event, UnitSteered) else told.words
            sender = str(event.who) if event.who is not None else ""
            found.append({"row": seq, "at": iso(at_us), "from": sender, "to": told.unit, "kind": kind, "text": text})
    return {"messages": found}


def show_usage(orchestrator: Orchestrator, moment: Moment) -> dict[str, Any]:
    """Return what the launches of a run consumed: each, by agent and model, by unit."""
    lines = orchestrator.store.usage(moment.run.id)
    units: dict[str, list[Any]] = {}
    for line in lines:
        units.setdefault(line.unit, []).append(line)
    return {
        "usage": [
            {"effect": one.effect, "unit": one.unit, "agent": one.agent, "at_us": one.at_us, "tokens": one.usage.tokens}
            | read_numbers(one.effect)
            | msgspec.to_builtins(one.usage)
            for one in lines
        ],
        "by_agent": [msgspec.to_builtins(one) for one in sum_spending(lines)],
        "by_unit": [{"unit": unit, **msgspec.to_builtins(one)} for unit, some in units.items() for one in sum_spending(some)],
        "budget": budget_facts(orchestrator, moment.run, moment.folded),
    }
