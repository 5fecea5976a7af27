"""The history in foreign team files: how each group came along, the messages, the decisions."""

from __future__ import annotations

from typing import Any

import msgspec

from agent_orchestrator.core.foreign.account import FieldAccount
from agent_orchestrator.core.foreign.records import Readers, read_record
from agent_orchestrator.core.foreign.values import any_of, count_of, flag_of, label_of, say, snake, text_of, time_of, word_of
from agent_orchestrator.core.units import from_iso
from agent_orchestrator.systems.team.fields import LEFT_OUT, NOT_A_TIME, TeamFields, list_entries
from agent_orchestrator.systems.team.foreign_plan import ForeignPlan
from agent_orchestrator.systems.team.messages import ENDS
from agent_orchestrator.systems.team.shapes import ImportedGroup
from agent_orchestrator.systems.team.state import Blocker, Decision, Feedback

_FEEDBACK = {"iteration": 1, "decision": "changes_requested", "feedback": ""}
_DECISION = {"iteration": 0, "reasoning": ""}
_COUNTS = ("total", "passed", "failed")
_KINDS = ("unit_tests", "integration_tests", "contract_tests", "e2e_tests")
_DECISIONS = ("approved", "changes_requested", "unblocked")
_TIME = (("timestamp", "time", "at"), time_of)
_FEEDBACK_READERS: Readers = {
    "iteration": (("iteration", "round"), count_of),
    "decision": (("decision", "verdict", "status"), lambda given: _decision(given)),
    "feedback": (("feedback", "comments", "comment", "summary", "notes"), text_of),
    "timestamp": _TIME,
}
_BLOCKER_READERS: Readers = {
    "description": (("description", "blocker", "issue", "reason", "title"), text_of),
    "resolved": (("resolved",), flag_of),
    "resolution": (("resolution",), text_of),
}
_DECISION_READERS: Readers = {
    "iteration": (("iteration",), count_of),
    "decision": (("decision", "action"), text_of),
    "reasoning": (("reasoning", "reason"), text_of),
    "timestamp": _TIME,
}


_MESSAGE = {"context": lambda given: given if isinstance(given, dict) else None, "feedback": label_of}
"""Readers of a message's fields that must be of some kind; all others are kept as they are."""


def read_group_status(fields: TeamFields, group: str, status: str, plan: ForeignPlan) -> ImportedGroup:
    """Read one group of a `group_status.json`, whose status is settled already."""
    account = fields.account
    for key, value in fields.spellings("group_id", "id"):
        found = plan.find(value)
        if value is None or (found is not None and found.id == group):
            account.take(fields.place(key))
        else:
            account.leave(f"{fields.place(key)} ({say(value)}, it stands there for group {group})")
    if status != "complete":
        fields.ignore(f"the group is {status}", "end_time", "ended_at", "completed_at")
    rounds = {"developer": 0, "qa": 0, "tech_lead": 0}
    if (given := fields.one("iterations", "rounds")) is not None:
        rounds = {"developer": given.take_count("developer", "dev"), "qa": given.take_count("qa", "qa_expert")}
        rounds["tech_lead"] = given.take_count("tech_lead", "techlead", "review")
        given.finish()
    quality: dict[str, float] = {}
    if (given := fields.one("quality_metrics", "quality")) is not None:
        given.put_down("first_pass_approval")
        scores = {name: given.take_number(name) for name in ("code_quality_score", "security_issues_count")}
        quality |= {name: score for name, score in scores.items() if score is not None}
        given.finish()
    reviews = _entries(fields, Feedback, "feedback", _FEEDBACK, _FEEDBACK_READERS, "tech_lead_feedback", "review_feedback")
    blockers = _entries(fields, Blocker, "description", {}, _BLOCKER_READERS, "blockers")
    read = ImportedGroup(
        status=status,
        filed=True,
        **rounds,
        started_us=_time_us(fields, "start_time", "started_at"),
        ended_us=_time_us(fields, "end_time", "ended_at", "completed_at"),
        files_modified=tuple(fields.take_texts("files_modified", "files_changed")),
        commits=tuple(fields.take_texts("commits")),
        test_results=_test_results(fields),
        feedback=reviews,
        blockers=blockers,
        quality=quality,
    )
    fields.put_down("current_agent", "duration_minutes", "last_update", "last_updated", "updated_at")
    fields.finish()
    return read


def _time_us(fields: TeamFields, *names: str) -> int | None:
    moment = fields.read(names[0], time_of, *names[1:], wrong=NOT_A_TIME)
    return from_iso(moment) if moment is not None else None


def _test_results(fields: TeamFields) -> dict[str, dict[str, int]]:
    found: dict[str, dict[str, int]] = {}
    results = fields.one("test_results")
    if results is None:
        return found
    for kind in _KINDS:
        if (given := results.one(kind)) is None:
            continue
        counts = {name: given.read(name, count_of, wrong="is not a count") for name in _COUNTS}
        given.finish()
        known = {name: count for name, count in counts.items() if count is not None}
        if len(known) == len(_COUNTS):
            found[kind] = known
        else:
            fields.account.change(f"{given.root}: it lacks one of total, passed and failed; {LEFT_OUT}")
    results.finish()
    return found


def _entries(
    fields: TeamFields, kind: type[Any], text: str, blanks: dict[str, Any], readers: Readers, *names: str
) -> tuple[dict[str, Any], ...]:
    """Read the entries of a list that can be used; one that is only a text is its `text`."""
    given = fields.take(*names)
    found = []
    for where, _, entry in list_entries(given, fields.path(names[0]), fields.account, split=False):
        whole = {text: entry} if isinstance(entry, str) else entry
        read = read_record(whole, where, kind, fields.account, blanks, readers)
        if read is not None:
            found.append(msgspec.to_builtins(read))
    return tuple(found)


def _decision(given: object) -> str | None:
    word = word_of(given) if isinstance(given, str) else ""
    return word if word in _DECISIONS else None


def read_decisions(story: TeamFields) -> tuple[dict[str, Any], ...]:
    """Read the decisions of an `orchestrator_state.json`; a bare text is one."""
    return _entries(story, Decision, "decision", _DECISION, _DECISION_READERS, "decisions_log", "decisions")


def read_messages(document: dict[str, Any], box: str, plan: ForeignPlan, account: FieldAccount) -> tuple[dict[str, Any], ...]:
    """Read the messages of one box; fields that a team does not know are kept."""
    file = TeamFields(document, account, f"messages/{box}")
    sent = file.take("messages")
    kept = []
    for where, _, message in list_entries(sent, file.path("messages"), account, split=False):
        if isinstance(message, dict):
            kept += _read_message(TeamFields(message, account, where), box, plan)
        else:
            account.change(f"{where}: {say(message)} is not a message; {LEFT_OUT}")
    file.finish()
    return tuple(kept)


def _read_message(fields: TeamFields, box: str, plan: ForeignPlan) -> list[dict[str, Any]]:
    """Give the message by the names of the seed and in its order, without nulls; nothing if it is of no group."""
    account, (sender, receiver) = fields.account, ENDS[box]
    name, told = fields.take_text("id"), fields.take_text("group_id")
    group = plan.find(told)
    if name is None or group is None:
        why = "it has no id" if name is None else "it names no group" if told is None else f"the plan has no group {told!r}"
        account.change(f"{fields.root}: {LEFT_OUT}, {why}")
        return []
    for end, role in (("from", sender), ("to", receiver)):
        for key, value in fields.spellings(end):
            if value in (None, role.value):
                account.take(fields.place(key))
            else:
                account.change(f"{fields.place(key)}: was {say(value)}, is {role.value}, as in all of {box}.json")
    moment, subject = fields.read("timestamp", time_of, wrong=NOT_A_TIME), fields.take_text("subject")
    seen = fields.take_flag("read") or False
    head = {"id": name, "group_id": group.id, "from": sender.value, "to": receiver.value, "timestamp": moment, "subject": subject}
    more = {key: fields.read(key, _MESSAGE.get(key, any_of)) for key in dict.fromkeys(map(snake, fields.unread))}
    return [{key: value for key, value in {**head, **more, "read": seen}.items() if value is not None}]
