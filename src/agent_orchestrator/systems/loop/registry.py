"""The documents over all loops of a repository: the registry, and the file that older tools expect."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from agent_orchestrator.core.ids import RunId
from agent_orchestrator.core.system import Document, ListedRun
from agent_orchestrator.core.text import stamp
from agent_orchestrator.errors import InvalidDocument
from agent_orchestrator.systems.loop.decide.edits import import_state
from agent_orchestrator.systems.loop.transitions import ACTIVE

REGISTRY = ".aiwg/ralph/registry.json"
LEGACY = ".aiwg/ralph/current-loop.json"
VERSION = "2.0.0"
LOOPS_MAX = 4
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
        documents.append(Document(path=LEGACY, body=_legacy(shown), over=lambda content: loop_named_in(content) in known))
    return documents


def loop_named_in(content: bytes) -> str | None:
    """The loop that a current-loop.json is about, known or not; None for a file that is about none."""
    try:
        document = msgspec.json.decode(content, type=dict[str, Any])
        return import_state(document, LEGACY).name
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
