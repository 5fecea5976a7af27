"""Decides what a person's answer, directive and edited file mean; a refusal says why and changes nothing."""

from __future__ import annotations

from typing import Any

import msgspec

from agent_orchestrator import typed
from agent_orchestrator.core.effects import AskHuman
from agent_orchestrator.core.events import Concluded, DirectiveRefused, HumanJudged, Resumed, StopReason
from agent_orchestrator.core.ids import unit_of
from agent_orchestrator.core.inputs import Answer, Edited, HumanAnswered, Instruct, Resume
from agent_orchestrator.core.lifecycle import Phase
from agent_orchestrator.core.text import clip
from agent_orchestrator.systems.team.documents import GROUP_STATUS, MESSAGES, ORCHESTRATOR_STATE, PM_STATE
from agent_orchestrator.systems.team.events import (
    EditRefused,
    OptionsChanged,
    RequirementAdded,
    ScopeReduced,
    SentBack,
    StatusesEdited,
    TeamEvent,
)
from agent_orchestrator.systems.team.messages import ENDS
from agent_orchestrator.systems.team.shapes import GroupStatus, Messages, OrchestratorState, PmState
from agent_orchestrator.systems.team.spec import TeamSpec, read_wanted
from agent_orchestrator.systems.team.state import TeamState
from agent_orchestrator.systems.team.status import progress_of, status_of, task_status

CHANGEABLE = ("max_parallel", "max_attempts", "max_qa_rounds", "max_review_rounds")
"""Limits that may be given anew when a team goes on."""
REQUIREMENTS_MAX = 200


def resume_run(state: TeamState, directive: Resume, now_us: int) -> list[TeamEvent]:
    """Go on; what ended without being completed is tried again."""
    life = state.lifecycle
    if life.phase is Phase.ABORTING:
        return _refused(directive, "the run is being aborted")
    if life.ended and life.stop is StopReason.ABORTED:
        return _refused(directive, "it was aborted; its branches are kept, and a new team can go on from them")
    if life.ended and life.stop is StopReason.COMPLETED:
        return _refused(directive, "it is completed; there is nothing left to do")
    try:
        change_spec(state.spec, directive.changes)
    except (msgspec.ValidationError, ValueError) as error:
        return _refused(directive, str(error))
    changes: list[TeamEvent] = [OptionsChanged(changes=dict(directive.changes))] if directive.changes else []
    if not life.running:
        return [*changes, Resumed()]
    return changes or _refused(directive, "the run is running already")


def change_spec(spec: TeamSpec, changes: dict[str, Any]) -> TeamSpec:
    """Give the specification with these limits; raises ValueError or ValidationError for what cannot be changed."""
    unknown = [name for name in changes if name not in CHANGEABLE]
    if unknown:
        raise ValueError(f"{', '.join(unknown)} cannot be changed; these can: {', '.join(CHANGEABLE)}")
    made = typed.convert(msgspec.to_builtins(spec) | changes, TeamSpec)
    for name in CHANGEABLE:
        if getattr(made, name) < 1:
            raise ValueError(f"{name} is {getattr(made, name)}; it must be at least 1")
    return made


def answer_question(state: TeamState, directive: Answer, now_us: int) -> list[TeamEvent]:
    """Approve or reject what a person was asked."""
    found = _asked(state, directive.unit)
    if found not in _waiting(state):
        return _refused(directive, found)
    return _judge(state, found, directive.approved, directive.comments)


def instruct_run(state: TeamState, directive: Instruct, now_us: int) -> list[TeamEvent]:
    """Follow what only teams understand: one more requirement, an answer to a question."""
    values = directive.values
    text = clip(str(values.get("text", "")))
    if directive.what == "require":
        return _required(state, directive, text)
    if directive.what == "answer":
        return _told(state, directive, text)
    return _refused(directive, f"a team knows no {directive.what!r}")


def _told(state: TeamState, directive: Instruct, text: str) -> list[TeamEvent]:
    """Take words as an answer to the project manager's questions; they are no yes to anything else, whatever they say."""
    waiting = _waiting(state)
    asks = next((name for name in waiting if state.unit(name).asking == "clarification"), None)
    if asks is not None:
        return _judge(state, asks, True, text) if text else _refused(directive, "there is no answer in it")
    if not waiting:
        return _refused(directive, "nobody is asked anything now")
    run, verb = state.context.run, "waits" if len(waiting) == 1 else "wait"
    way = f"`orc approve {run} {waiting[0]} --comments TEXT` or `orc reject {run} {waiting[0]} --comments TEXT`"
    return _refused(directive, f"{', '.join(waiting)} {verb} for a yes or a no, not for words: {way}")


def _required(state: TeamState, directive: Instruct, text: str) -> list[TeamEvent]:
    if state.lifecycle.ended or state.lifecycle.phase is Phase.ABORTING:
        return _refused(directive, "the run has ended: start a new one for what else is wanted")
    if not text:
        return _refused(directive, "there is no requirement in it")
    check = directive.values.get("check")
    wanted = read_wanted(text, check if isinstance(check, str) and check.strip() else None)
    if any(one.text == wanted.text for one in state.requirements):
        return _refused(directive, "that is a requirement already")
    if len(state.requirements) >= REQUIREMENTS_MAX:
        return _refused(directive, f"there are {REQUIREMENTS_MAX} requirements already")
    return [RequirementAdded(text=wanted.text, check=wanted.check)]


def _waiting(state: TeamState) -> list[str]:
    return [effect.unit for effect in state.doing if isinstance(effect, AskHuman)]


def _asked(state: TeamState, unit: str | None) -> str:
    """Find the unit that waits for a person, or say why it is not clear which one is meant."""
    waiting = _waiting(state)
    if not waiting:
        return "nobody is asked anything now"
    if unit is None:
        return waiting[0] if len(waiting) == 1 else f"several wait for a person, name one: {', '.join(waiting)}"
    return unit if unit in waiting else f"{unit!r} does not wait for a person; these do: {', '.join(waiting)}"


def _refused(directive: Resume | Answer | Instruct, why: str) -> list[TeamEvent]:
    return [DirectiveRefused(directive=directive.id, why=why)]


LIMITS = ("qa_rounds", "review_rounds", "blocked", "partial", "saving")


def settle_answer(state: TeamState, outcome: HumanAnswered, now_us: int) -> list[TeamEvent]:
    """Take the answer of a person who was asked."""
    return _judge(state, unit_of(outcome.effect), outcome.approved, outcome.comments)


def _judge(state: TeamState, unit: str, approved: bool, comments: str) -> list[TeamEvent]:
    """Go on after a yes, with the comments in the next prompt; a no gives up, but for questions and for the scope."""
    asked = state.unit(unit)
    about, comments = asked.asking, clip(comments)
    answer = HumanJudged(step=unit, about=about, approved=approved, comments=comments)
    if about == "scope":
        if approved:
            return [answer, ScopeReduced(requirements=state.open, comments=comments or "approved by a person")]
        why = f"a person wants it done: {comments or 'the scope stays as it is'}"
        # In this order: the rounds are counted anew after a person's word.
        return [SentBack(reasons=(why,), open=state.open), answer]
    if approved or about == "clarification":
        return [answer]
    stop = StopReason.LIMIT_REACHED if about in LIMITS else StopReason.FAILED
    said = f": {comments}" if comments else ""
    return [answer, Concluded(stop=stop, detail=f"{asked.error or asked.question} (a person gave it up{said})")]


_PROGRESS = {"pending": "pending", "assigned": "pending", "in_progress": "dev_working", "complete": "complete"}


def shape_of(path: str) -> Any:
    """Give the shape of a file of the seed, or None for one that is not ours."""
    if path.startswith(f"{MESSAGES}/"):
        return Messages
    return {PM_STATE: PmState, GROUP_STATUS: dict[str, GroupStatus], ORCHESTRATOR_STATE: OrchestratorState}.get(path)


def team_file(path: str) -> str | None:
    """Give the file of `coordination/` that a path names, wherever the folder lies; None when it names none."""
    name = path.rpartition("/")[2]
    places = (PM_STATE, GROUP_STATUS, ORCHESTRATOR_STATE, *(f"{MESSAGES}/{box}.json" for box in ENDS))
    return next((place for place in places if place.rpartition("/")[2] == name), None)


def check_document(path: str, document: object) -> list[str]:
    """List what is wrong with an edited file, with the field at fault; unknown fields are no fault."""
    shape = shape_of(path)
    if shape is None:
        return []
    try:
        typed.convert(document, shape)
    except msgspec.ValidationError as error:
        return [str(error)]
    return []


def adopt_edit(state: TeamState, edit: Edited, now_us: int) -> list[TeamEvent]:
    """Adopt what a person changed, or refuse the edit with its fault."""
    faults = check_document(edit.path, edit.document)
    groups: dict[str, str] = {}
    tasks: dict[str, str] = {}
    if not faults and edit.path == PM_STATE:
        read = typed.convert(edit.document, PmState)
        if read.session_id != state.context.run:
            faults = [f"session_id: {read.session_id!r} is another session"]
        groups, tasks = _planned(state, read)
    elif not faults and edit.path == GROUP_STATUS:
        groups = _statuses(state, typed.convert(edit.document, dict[str, GroupStatus]))
    unknown = [f"there is no group {name!r}" for name in groups if name not in state.groups]
    unknown += [f"there is no task {name!r}" for name in tasks if name not in state.tasks]
    if state.lifecycle.ended and (groups or tasks):
        unknown = ["the run has ended"]
    if not (faults or unknown):
        faults = _unproven(state, groups, tasks)
    if faults or unknown:
        return [EditRefused(path=edit.path, problems=(*faults, *unknown))]
    return [StatusesEdited(groups=groups, tasks=tasks)] if groups or tasks else []


_PROVEN = {"waiting_review": 1, "tech_review": 1, "complete": 2}
"""The verdicts that a status stands for: QA has passed it; the tech lead approved it, and it was merged."""
_JUDGES = {1: "QA decides that", 2: "the review and the merge decide that"}


def _unproven(state: TeamState, groups: dict[str, str], tasks: dict[str, str]) -> list[str]:
    """List what only a verdict can make of a group or task, and not an edit."""
    found = []
    for name, status in groups.items():
        proven = _PROVEN.get(status, 0)
        if proven > _PROVEN.get(status_of(state, state.groups[name]), 0):
            way = "commit the work on its branch, set it to waiting_qa and resume"
            found.append(f"{name}.status: an edit cannot make it {status}: {_JUDGES[proven]}; {way}")
    for name, status in tasks.items():
        if status == "complete" and task_status(state, state.tasks[name]) != status:
            found.append(f"all_tasks: an edit cannot complete task {name}: it is complete when its group is")
    return found


def _planned(state: TeamState, read: PmState) -> tuple[dict[str, str], dict[str, str]]:
    groups: dict[str, str] = {}
    tasks: dict[str, str] = {}
    for entry in read.task_groups:
        name, status = entry.id or "", entry.status
        known = state.groups.get(name)
        if status is not None and (known is None or progress_of(state, known) != status):
            groups[name] = _PROGRESS[status]
    for task in read.all_tasks or []:
        name, wanted = task.id or "", task.status
        held = state.tasks.get(name)
        if wanted is not None and (held is None or task_status(state, held) != wanted):
            tasks[name] = wanted
    return groups, tasks


def _statuses(state: TeamState, read: dict[str, GroupStatus]) -> dict[str, str]:
    found: dict[str, str] = {}
    for name, entry in read.items():
        known = state.groups.get(name)
        if entry.status is not None and (known is None or status_of(state, known) != entry.status):
            found[name] = entry.status
    return found
