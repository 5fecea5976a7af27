"""A loop made of a state file without a journal: a state.json, a current-loop.json, an entry of a registry.

Files of older tools and of people are read generously, and what became of every field is said. A loop that is done stays
done; one that is not stands still until it is resumed. Times and durations are those of the file.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from functools import partial
from typing import Any

import msgspec

from agent_orchestrator.core.events import Ended, Paused, StopReason
from agent_orchestrator.core.foreign.account import FieldAccount
from agent_orchestrator.core.foreign.fields import ForeignFields
from agent_orchestrator.core.foreign.values import count_of, flag_of, name_kind, number_of, say, snake, text_of, texts_of, time_of
from agent_orchestrator.core.units import US, from_iso
from agent_orchestrator.errors import InvalidDocument
from agent_orchestrator.systems.loop.decide.directives import changed_spec
from agent_orchestrator.systems.loop.decide.edits import VERSION_FORM, configuration_faults
from agent_orchestrator.systems.loop.events import Concluded, Imported, LoopEvent
from agent_orchestrator.systems.loop.history import History, read_checks, read_history
from agent_orchestrator.systems.loop.spec import LoopSpec, is_loop_id, loop_id, named_loop
from agent_orchestrator.systems.loop.spellings import NAMES, status_of
from agent_orchestrator.systems.loop.transitions import ENDED, LoopStatus

IMPORTED = "imported"
UNSAID = "the task is done"
"""The criterion of a file that has none: the agent says so, and a person confirms it."""
_LOOPLIKE = ("status", "iteration", "max_iterations", "started_at", "completion_criteria", "loop_id", "active", "history")
_LASTING = (*NAMES["task"], *NAMES["started_at"])
_METRICS = {
    "successes": ("successful_iterations", count_of),
    "failures": ("failed_iterations", count_of),
    "tokens": ("total_tokens", count_of),
    "cost_usd": ("total_cost_usd", number_of),
    "spent_s": ("total_duration_seconds", number_of),
    "average_s": ("average_iteration_time_seconds", number_of),
    "total": ("total_iterations", count_of),
}


class ImportedLoop(msgspec.Struct, frozen=True, kw_only=True):
    """A loop made of a foreign state file: what it is asked to do, its facts after those of `begin`, and the account."""

    name: str
    """The loop's id: its own, or one that is the same whenever the same loop is read."""
    spec: LoopSpec
    criteria: tuple[str, ...]
    """The criteria one by one; the specification has them as one text."""
    facts: tuple[LoopEvent, ...]
    status: LoopStatus
    taken: tuple[str, ...]
    notes: tuple[str, ...]
    left: tuple[str, ...]


def is_idle(document: object) -> bool:
    """Tell whether a file says that there is no loop: it has a field for the task, and nothing in it."""
    if not isinstance(document, dict):
        return False
    tasks = [value for key, value in document.items() if snake(key) in NAMES["task"][:2]]
    return bool(tasks) and not any(tasks)


def read_name(document: dict[str, Any], path: str) -> str:
    """Read only which loop a file is about; raise InvalidDocument for one that is about none."""
    account = FieldAccount()
    fields = ForeignFields(document, account, names=NAMES)
    return _read_name(fields, _read_task(fields, document, path), document, account)


def import_state(document: object, path: str) -> ImportedLoop:
    """Read a state file as far as it can be; raise InvalidDocument for one that is about no loop."""
    if not isinstance(document, dict):
        raise InvalidDocument(path=path, what="loop state", detail=f"it is not a JSON object but {name_kind(document)}")
    account = FieldAccount()
    fields = ForeignFields(document, account, names=NAMES)
    task = _read_task(fields, document, path)
    criteria = fields.read("completion_criteria", texts_of)
    if criteria is None:
        account.change("completion_criteria: the file has none; it is done when the agent says so and a person confirms it")
    name = _read_name(fields, task, document, account)
    status = _read_status(fields, account)
    fields.read("version", lambda value: value if isinstance(value, str) and VERSION_FORM.match(value) else None)
    spec = _read_spec(fields, task, criteria or (UNSAID,), account)
    story = read_history(fields, account)
    checks = read_checks(fields, account)
    fact = _read_facts(fields, status, story, checks, account)
    context = _read_error(fields, status, account)
    for key, value in fields.spellings("pid"):
        account.leave(f"{key} ({say(value)} is no process of ours)") if value is not None else account.take(key)
    for key, _ in fields.spellings("working_directory"):
        account.leave(f"{key} (the loop works where it is imported)")
    fields.leave_rest()
    fact = msgspec.structs.replace(fact, error=context or None, left_out=account.lines("left"))
    return ImportedLoop(
        name=name,
        spec=spec,
        criteria=criteria or (),
        facts=(fact, *_stand_still(status, context)),
        status=status,
        taken=account.lines("taken"),
        notes=account.lines("changed"),
        left=account.lines("left"),
    )


def _read_task(fields: ForeignFields, document: Mapping[str, Any], path: str) -> str:
    names = {snake(key): key for key in document}
    spelled = [names[name] for name in NAMES["task"] if name in names]
    task = fields.read("task", text_of)
    if task is None and spelled:
        detail = f"it is about no loop, its {spelled[0]} is {say(document[spelled[0]])}"
        raise InvalidDocument(path=path, what="loop state", detail=detail)
    if task is None or not any(name in names for one in _LOOPLIKE for name in NAMES[one]):
        has = f"it has {', '.join(map(str, list(document)[:8]))}" if document else "it is empty"
        lacks = "no task" if task is None else "a task, but no criterion, status or iteration"
        raise InvalidDocument(path=path, what="loop state", detail=f"{lacks} is in it ({has})")
    return task


def _read_name(fields: ForeignFields, task: str, document: Mapping[str, Any], account: FieldAccount) -> str:
    for key, value in fields.spellings("loop_id"):
        if is_loop_id(value):
            account.take(fields.place(key))
            return value
        if text_of(value) is not None:
            name = named_loop(str(value))
            account.change(f"{fields.place(key)}: {say(value)} is not of the form ralph-NAME-8 hex digits; the loop is {name}")
            return name
        account.change(f"{fields.place(key)}: {say(value)} is not an id; one is made")
    kept = {key: value for key, value in document.items() if snake(key) in _LASTING}
    name = loop_id(task, hashlib.sha256(msgspec.json.encode(kept)).hexdigest()[:8])
    account.change(f"loop_id: the file has none; the loop is {name}")
    return name


def _read_status(fields: ForeignFields, account: FieldAccount) -> LoopStatus:
    """Read the status in whatever words; a loop that is done by any of its fields is done."""
    said = fields.read("status", status_of)
    done, active = fields.read("completed", flag_of), fields.read("active", flag_of)
    result = fields.read("result", status_of) if said is None else None
    found = said or result
    if done and found not in ENDED:
        found = LoopStatus.COMPLETED
        account.change("status: the file says that the loop is completed, and so it is")
    if found is not None and (found in ENDED or found is LoopStatus.PAUSED):
        return found
    was = f"was {found}" if found is not None else "is not said" if active is None else f"is not said, active is {active}"
    account.change(f"status: {was}, is paused until it is resumed")
    return LoopStatus.PAUSED


def _read_spec(fields: ForeignFields, task: str, criteria: tuple[str, ...], account: FieldAccount) -> LoopSpec:
    spec = LoopSpec(task=task, completion="; ".join(criteria), owner=fields.read("owner", text_of) or "")
    inner = fields.within("configuration")
    for name in ("max_iterations", "timeout_minutes", "interactive", "auto_test", "checkpoint_interval", "execution_mode"):
        values = [place.read(name, partial(_option, name)) for place in (*inner, fields)]
        usable = next((value for value in values if value is not None), None)
        if usable is not None:
            spec = changed_spec(spec, {name: usable})
    for place in (*inner, fields):
        minutes = place.read("timeout_ms", _minutes)
        if minutes is not None and spec.timeout_minutes is None:
            spec = changed_spec(spec, {"timeout_minutes": minutes})
    for place in inner:
        place.leave_rest()
    return spec


def _minutes(value: object) -> int | None:
    number = number_of(value)
    return max(1, round(number / 60_000)) if number else None


def _option(name: str, value: object) -> Any:
    if name in ("interactive", "auto_test"):
        return flag_of(value)
    usable = value if name == "execution_mode" else count_of(value, 1)
    return None if usable is None or configuration_faults({name: usable}) else usable


def _read_facts(
    fields: ForeignFields, status: LoopStatus, story: History, checks: tuple[dict[str, Any], ...], account: FieldAccount
) -> Imported:
    counted = _read_metrics(fields, account)
    total, average = counted.pop("total", None), counted.pop("average_s", None)
    iteration = fields.read("iteration", count_of)
    if iteration is None:
        counts = (story.count, total, max((one.iteration for one in story.tried), default=0))
        iteration = next(count for count in counts if count is not None)
    started, ended = fields.read("started_at", time_of), fields.read("completed_at", time_of)
    updated = fields.read("last_updated", time_of)
    known = [moment for moment in (story.began, story.ended, *(check["timestamp"] for check in checks)) if moment]
    started = started or story.began or min(known, key=from_iso, default=None)
    until = ended or updated or max([*known, *([started] if started else [])], key=from_iso, default=None)
    if started is None:
        account.change("started_at: the file does not say when; the time of the import is used")
    elif status is LoopStatus.COMPLETED and ended is None:
        account.change(f"completed_at: the file does not say when; {until}, the last time in it, is used")
    spent_s = counted.pop("spent_s", None)
    if spent_s is None:
        spent_s = max(0, from_iso(until) - from_iso(started)) // US if started and until else story.worked_s
    made, worked_s = _average(average, iteration, story, spent_s)
    return Imported(
        iteration=iteration,
        checks=checks,
        started_at=started,
        ended_at=until if status in ENDED else None,
        spent_s=int(spent_s),
        tried=story.tried,
        learnings=story.learnings,
        last_result=fields.read("last_result", text_of) or "",
        last_checkpoint=_read_checkpoint(fields, account),
        made=made,
        worked_s=worked_s,
        **counted,
    )


def _average(average: float | None, iteration: int, story: History, spent_s: float) -> tuple[int, float]:
    """Return how many iterations were made in how much time, by the best that the file has to say about it."""
    if average is not None:
        return max(iteration, 1), average * max(iteration, 1)
    if story.timed:
        return story.timed, story.worked_s
    return (iteration, float(int(spent_s))) if iteration and spent_s >= 1 else (0, 0)


def _read_metrics(fields: ForeignFields, account: FieldAccount) -> dict[str, Any]:
    """Read what the file counted and a journal cannot recompute; what it does not say is left out."""
    kept: dict[str, Any] = {}
    for metrics in fields.within("metrics"):
        for mine, (name, convert) in _METRICS.items():
            value = metrics.read(name, convert)
            if value is not None:
                kept.setdefault(mine, value)
        metrics.leave_rest()
    return kept


def _read_checkpoint(fields: ForeignFields, account: FieldAccount) -> str | None:
    """Read the path of the newest checkpoint: by name, or the last of a list of them."""
    named = fields.read("last_checkpoint", text_of)
    for key, value in fields.spellings("checkpoints"):
        entries = value if isinstance(value, list) else []
        files = [one.get("file") or one.get("path") if isinstance(one, dict) else one for one in entries]
        paths = [file for file in map(text_of, files) if file is not None]
        if paths and named is None:
            named = paths[-1]
        listed = f": {', '.join(paths)} stay where they are" if paths else ""
        account.leave(f"{fields.place(key)}{listed}") if value else account.take(fields.place(key))
    return named


def _read_error(fields: ForeignFields, status: LoopStatus, account: FieldAccount) -> dict[str, Any]:
    """Read why a loop failed; a loop that did not fail has no error."""
    found: dict[str, Any] = {}
    for key, value in fields.spellings("error_context"):
        place = fields.place(key)
        if value in (None, "", [], {}):
            account.take(place)
        elif isinstance(value, dict):
            inner = ForeignFields(value, account, f"{place}", {"error_message": ("error_message", "message", "error")})
            read = {
                "error_message": inner.read("error_message", text_of),
                "error_timestamp": inner.read("error_timestamp", time_of) or inner.read("timestamp", time_of),
                "stack_trace": inner.read("stack_trace", text_of),
                "recovery_attempted": inner.read("recovery_attempted", flag_of),
            }
            inner.leave_rest()
            found |= {name: usable for name, usable in read.items() if usable is not None and name not in found}
        elif text_of(value) is not None and "error_message" not in found:
            found["error_message"] = value
            account.take(f"{place} as error_context.error_message")
        else:
            account.leave(place)
    if found and status not in (LoopStatus.FAILED, LoopStatus.CRASHED):
        kept = {name: value for name, value in found.items() if name == "recovery_attempted" and status is LoopStatus.ABORTED}
        if len(kept) < len(found):
            account.leave(f"error_context (a loop that is {status} has no error)")
        return kept
    return found


def _stand_still(status: LoopStatus, context: Mapping[str, Any]) -> list[LoopEvent]:
    """Leave it as it is until it is resumed: ended as it was, or paused."""
    why = context.get("error_message", IMPORTED)
    match status:
        case LoopStatus.COMPLETED:
            return [Ended(stop=StopReason.COMPLETED, detail=IMPORTED)]
        case LoopStatus.ABORTED:
            return [Ended(stop=StopReason.ABORTED, detail=IMPORTED)]
        case LoopStatus.FAILED:
            return [Ended(stop=StopReason.FAILED, detail=why)]
        case LoopStatus.CRASHED:
            return [Concluded(stop=StopReason.FAILED, detail=why, crashed=True), Ended(stop=StopReason.FAILED, detail=why)]
    return [Paused(reason=IMPORTED)]
