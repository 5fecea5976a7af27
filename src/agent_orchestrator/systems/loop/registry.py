"""The documents over all loops of a repository: the registry, and the file that older tools expect."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from agent_orchestrator import typed
from agent_orchestrator.core.foreign.values import count_of, snake
from agent_orchestrator.core.ids import RunId
from agent_orchestrator.core.system import Document, ListedRun
from agent_orchestrator.core.text import stamp
from agent_orchestrator.errors import InvalidDocument
from agent_orchestrator.systems.loop.imports import read_name
from agent_orchestrator.systems.loop.spellings import NAMES, status_of
from agent_orchestrator.systems.loop.transitions import ACTIVE

REGISTRY = ".aiwg/ralph/registry.json"
LEGACY = ".aiwg/ralph/current-loop.json"
VERSION = "2.0.0"
LOOPS_MAX = 4
_ENTRY = {
    *("loop_id", "status", "iteration", "task", "completion_criteria", "started_at", "last_active", "pid", "owner"),
    *("working_directory", "state_file", "max_iterations", "timeout_minutes"),
}
HEARTBEAT_S = 60.0
"""The time between two writes of the registry while a loop runs: its readers take a loop for dead after five minutes."""


def active_loops(runs: Sequence[ListedRun]) -> list[ListedRun]:
    """Running, paused and completing loops, oldest first: these are listed and count."""
    active = [run for run in runs if run.summary.facts.get("status") in ACTIVE]
    return sorted(active, key=lambda run: (run.context.created_us, run.id))


def overview(runs: Sequence[ListedRun], driven: Callable[[RunId], bool], now_us: int) -> list[Document]:
    """registry.json, and current-loop.json where there is one about a loop of ours, unless several are active."""
    listed = [_entry(run, now_us, driven=driven(run.id)) for run in active_loops(runs)]
    body = {
        "version": VERSION,
        "max_concurrent_loops": LOOPS_MAX,
        "active_loops": listed,
        "last_updated": stamp(now_us),
    }
    documents = [Document(path=REGISTRY, body=body)]
    shown = listed[0] if len(listed) == 1 else None if listed else _ended_last(runs, now_us)
    if shown is not None:
        known = frozenset(run.id for run in runs)
        documents.append(Document(path=LEGACY, body=None, onto=lambda content: _put_onto(content, shown, known)))
    return documents


def is_registry(document: object) -> bool:
    """Tell whether a registry.json is a print-out of ours; one of another tool has other fields."""
    if not isinstance(document, dict) or set(document) != {"version", "max_concurrent_loops", "active_loops", "last_updated"}:
        return False
    entries = document["active_loops"]
    return isinstance(entries, list) and all(isinstance(one, dict) and set(one) == _ENTRY for one in entries)


def _put_onto(content: bytes, entry: dict[str, Any], known: frozenset[str]) -> dict[str, Any] | None:
    """Return the file in step with a loop, None to leave it: one about a loop that is not ours is never written.

    A file about this very loop keeps all its fields in its own spelling, for the tools that expect it; one about another
    gives way only if it has no other fields than ours have.
    """
    named = loop_named_in(content)
    if named not in known:
        return None
    document = typed.decode(_plain(content), dict[str, Any])
    if named != entry["loop_id"]:
        made = _legacy(entry)
        return made if set(document) == set(made) else None
    step = {**document, **_steps(document, entry)}
    return None if step == document else step


def _steps(document: dict[str, Any], entry: dict[str, Any]) -> dict[str, Any]:
    """Return the fields that changed, in the file's own spelling; a word or number that means the same stays."""
    spelled = {snake(key): key for key in document}
    changed: dict[str, Any] = {}
    status = spelled.get("status", "status")
    if status_of(document.get(status)) != entry["status"]:
        changed[status] = entry["status"]
    for name in ("iteration", "max_iterations"):
        key = next((spelled[one] for one in NAMES[name] if one in spelled), None)
        if key is not None and count_of(document[key]) != entry[name]:
            changed[key] = entry[name]
    for name, value in (("pid", entry["pid"]), ("active", entry["status"] in ACTIVE)):
        if name in spelled and document[spelled[name]] != value:
            changed[spelled[name]] = value
    if changed:
        updated = next((spelled[one] for one in NAMES["last_updated"] if one in spelled), None)
        changed |= {} if updated is None else {updated: entry["last_active"]}
        changed |= {} if any(name in spelled for name in NAMES["loop_id"]) else {"loop_id": entry["loop_id"]}
    return changed


def _plain(content: bytes) -> bytes:
    """Return the content without a byte order mark."""
    return content.removeprefix(b"\xef\xbb\xbf")


def loop_named_in(content: bytes) -> str | None:
    """The loop that a current-loop.json is about, known or not; None for a file that is about none."""
    try:
        document = typed.decode(_plain(content), dict[str, Any])
        return read_name(document, LEGACY)
    except (msgspec.DecodeError, RecursionError, InvalidDocument):
        return None


def _ended_last(runs: Sequence[ListedRun], now_us: int) -> dict[str, Any] | None:
    """The loop whose end left none active: who reads only the old file learns how it ended."""
    ended = [run for run in runs if "task" in run.summary.facts]  # Those of older versions say too little.
    last = max(ended, key=lambda run: (run.updated_us, run.id), default=None)
    return _entry(last, now_us, driven=False) if last is not None else None


def _entry(run: ListedRun, now_us: int, *, driven: bool) -> dict[str, Any]:
    facts = run.summary.facts
    return {
        "loop_id": run.id,
        "status": facts["status"],
        "iteration": facts["iteration"],
        "task": facts["task"],
        "completion_criteria": facts["completion_criteria"],
        "started_at": facts["started_at"],
        "last_active": stamp(now_us if driven else run.updated_us),
        "pid": facts["pid"] if driven else None,
        "owner": facts["owner"],
        "working_directory": facts["working_directory"],
        "state_file": facts["state_file"],
        "max_iterations": facts["max_iterations"],
        "timeout_minutes": facts["timeout_minutes"],
    }


def _legacy(entry: dict[str, Any]) -> dict[str, Any]:
    kept = {name: entry[name] for name in ("loop_id", "status", "iteration", "task", "completion_criteria", "started_at")}
    limits = {"max_iterations": entry["max_iterations"], "timeout_minutes": entry["timeout_minutes"]}
    return {"version": VERSION, **kept, "last_updated": entry["last_active"], "pid": entry["pid"], "configuration": limits}
