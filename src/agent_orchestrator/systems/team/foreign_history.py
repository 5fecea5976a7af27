"""The history in foreign team files: how each group came along, the messages, the decisions."""

from __future__ import annotations

from typing import Any

import msgspec

from agent_orchestrator.core.foreign import read_entries, read_entry, read_fields, read_time_us
from agent_orchestrator.systems.team.fields import LEFT_OUT, list_entries, say_lost, spell
from agent_orchestrator.systems.team.foreign_plan import ForeignPlan
from agent_orchestrator.systems.team.messages import ENDS
from agent_orchestrator.systems.team.shapes import GroupStatus, ImportedGroup
from agent_orchestrator.systems.team.spellings import snake
from agent_orchestrator.systems.team.state import Blocker, Decision, Feedback

_FEEDBACK = {"iteration": 1, "decision": "changes_requested", "feedback": ""}
_DECISION = {"iteration": 0, "reasoning": ""}
_COUNTS = {"total", "passed", "failed"}


def read_group_status(where: str, told: dict[str, Any], status: str, notes: list[str]) -> ImportedGroup:
    """Read one group of a `group_status.json`, whose status is settled already."""
    plain = spell(told)
    assert isinstance(plain, dict)
    given = {name: value for name, value in plain.items() if name not in ("status", "state")}
    read = read_fields(given, where, GroupStatus, notes)
    unread = {name: value for name, value in told.items() if hasattr(read, snake(name)) and getattr(read, snake(name)) is None}
    rest = {name: value for name, value in told.items() if name not in unread and snake(name) not in ("status", "state")}
    say_lost(rest, msgspec.to_builtins(read), where, notes)
    rounds = read.iterations
    reviews = _dated([msgspec.to_builtins(one) for one in read.tech_lead_feedback or []], f"{where}.tech_lead_feedback", notes)
    blockers = [msgspec.to_builtins(one) for one in read.blockers or []]
    results = msgspec.to_builtins(read.test_results) if read.test_results is not None else {}
    quality = msgspec.to_builtins(read.quality_metrics) if read.quality_metrics is not None else {}
    for kind, counts in results.items():
        if counts and not counts.keys() >= _COUNTS:
            notes.append(f"{where}.test_results.{kind}: has no total, passed and failed; {LEFT_OUT}")
    ended = read_time_us(read.end_time, f"{where}.end_time", notes)
    if ended is not None and status != "complete":
        notes.append(f"{where}.end_time: {LEFT_OUT}, the group is {status}")
    return ImportedGroup(
        status=status,
        developer=max(0, (rounds.developer if rounds is not None else None) or 0),
        qa=max(0, (rounds.qa if rounds is not None else None) or 0),
        tech_lead=max(0, (rounds.tech_lead if rounds is not None else None) or 0),
        started_us=read_time_us(read.start_time, f"{where}.start_time", notes),
        ended_us=ended if status == "complete" else None,
        files_modified=tuple(read.files_modified or ()),
        commits=tuple(read.commits or ()),
        test_results={kind: counts for kind, counts in results.items() if counts.keys() >= _COUNTS},
        feedback=tuple(
            msgspec.to_builtins(one) for one in read_entries(reviews, f"{where}.tech_lead_feedback", Feedback, _FEEDBACK, notes)
        ),
        blockers=tuple(msgspec.to_builtins(one) for one in read_entries(blockers, f"{where}.blockers", Blocker, {}, notes)),
        quality={key: value for key, value in quality.items() if key != "first_pass_approval"},
    )


def read_decisions(given: object, notes: list[str]) -> tuple[dict[str, Any], ...]:
    """Read the decisions of an `orchestrator_state.json`; a bare text is one."""
    found = []
    for where, _, entry in list_entries(given, "decisions_log", notes):
        whole = {"decision": entry} if isinstance(entry, str) else spell(entry)
        (dated,) = _dated([whole], where, notes, numbered=False)
        if (read := read_entry(dated, where, Decision, _DECISION, notes)) is not None:
            plain = msgspec.to_builtins(read)
            say_lost(dated, plain, where, notes)
            found.append(plain)
    return tuple(found)


def read_messages(document: dict[str, Any], box: str, plan: ForeignPlan, notes: list[str]) -> tuple[dict[str, Any], ...]:
    """Read the messages of one box; fields that a team does not know are kept."""
    kept = []
    for number, message in enumerate(_sent(document, box, notes)):
        where = f"messages/{box}[{number}]"
        given = {snake(name): value for name, value in message.items()} if isinstance(message, dict) else message
        read = read_entry(given, where, _Message, {}, notes)
        if read is None:
            continue
        group = plan.find(read.group_id)
        if group is None:
            notes.append(f"{where}: {LEFT_OUT}, the plan has no group {read.group_id!r}")
        else:
            kept.append(_whole({**given, "group_id": group.id}, box))
    return tuple(kept)


def _sent(document: dict[str, Any], box: str, notes: list[str]) -> list[Any]:
    for name, value in document.items():
        if name != "messages" and value is not None:
            notes.append(f"messages/{box}.{name}: {LEFT_OUT}, a team has no such field")
    sent = document.get("messages")
    if sent is not None and not isinstance(sent, list):
        notes.append(f"messages/{box}.messages: is not a list; {LEFT_OUT}")
    return sent if isinstance(sent, list) else []


def _dated(entries: list[Any], where: str, notes: list[str], *, numbered: bool = True) -> list[Any]:
    """Give the entries, those whose time is none without it."""
    found = []
    for number, entry in enumerate(entries):
        given = entry.get("timestamp") if isinstance(entry, dict) else None
        path = f"{where}[{number}].timestamp" if numbered else f"{where}.timestamp"
        if given is not None and read_time_us(given, path, notes) is None:
            entry = {name: value for name, value in entry.items() if name != "timestamp"}
        found.append(entry)
    return found


def _whole(message: dict[str, Any], box: str) -> dict[str, Any]:
    """Fill a message with what its box says of it, in the seed's order, and without nulls."""
    given = {name: value for name, value in message.items() if value is not None}
    sender, receiver = ENDS[box]
    head = {"id": given["id"], "group_id": given["group_id"], "from": sender.value, "to": receiver.value}
    return {**head, **given, "read": given.get("read", False)}


class _Message(msgspec.Struct):
    """The fields that a message must have, and those that must have these types where they are there."""

    id: str
    group_id: str
    read: bool | None = None
    sender: str | None = msgspec.field(default=None, name="from")
    to: str | None = None
    timestamp: str | None = None
    subject: str | None = None
    context: dict[str, Any] | None = None
    feedback: str | None = None
