"""Composes what an agent is told: its slice of the state, the messages nobody told it yet, what earlier rounds left open.

Pure text. The requirements come verbatim and are never cut; diffs and conflicts give way when there is too much.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from agent_orchestrator.core.markdown import fenced, section
from agent_orchestrator.core.units import say_count
from agent_orchestrator.systems.team.roles import Purpose
from agent_orchestrator.systems.team.spec import QaMode
from agent_orchestrator.systems.team.state import Group, Requirement, TeamState, TeamUnit, Turn
from agent_orchestrator.systems.team.status import progress_of, status_of

DIFF_CHARS_MAX = 20_000


def compose(state: TeamState, unit: TeamUnit, turn: Turn) -> str:
    """Compose the prompt of a turn."""
    parts = [
        *_asked_of(unit, turn),
        section("Requirements, in the words of whoever gave them", state.requirements_text),
        *_BODIES[turn.purpose](state, unit),
        *_messages(state, turn),
        *_open_points(unit),
        section("What to report", _RULES[turn.purpose]),
    ]
    return "\n".join(parts)


def _asked_of(unit: TeamUnit, turn: Turn) -> list[str]:
    asked = {
        Purpose.PLAN: "You are the project manager. Plan the work below; change no files.",
        Purpose.FINAL: "You are the project manager. All groups are merged. Check the requirements one by one; change no files.",
        Purpose.CONFIRM: "You are the tech lead. Confirm each requirement that the merged work meets; change no files.",
        Purpose.DEVELOP: "You are the developer of the group below. You work in a worktree on its branch; commit there.",
        Purpose.QA: "You are the QA expert. Test the group's work in this worktree; do not repair it.",
        Purpose.REVIEW: "You are the tech lead. Review the group's work in this worktree; do not repair it.",
        Purpose.CONSULT: "You are the tech lead. A developer is blocked: find a way on, and say it so that it can be followed.",
    }
    return [f"{asked[turn.purpose]}\n"]


def _plan(state: TeamState, unit: TeamUnit) -> list[str]:
    answers = [f"- {ask}\n  Answer: {_indented(said)}" for ask, said in state.clarifications]
    parts = [section("Answered questions", "\n".join(answers))] if answers else []
    if state.plan.made:
        new = [one for one in state.requirements if not one.planned]
        parts.append(section("Planned already", fenced(_json(_groups(state)), "json")))
        parts.append(section("Asked for since", "\n".join(f"- {one.text}" for one in new)))
        parts.append("Plan groups for what was asked for since, if the planned ones do not cover it. Use new ids.\n")
    developers = say_count(state.spec.max_parallel, "developer")
    parts.append(section("How groups are worked on", _WORKED_ON.format(developers=developers)))
    taken = state.spec.taken_branches
    if taken:
        parts.append(section("Branches that exist already (choose others)", ", ".join(taken[:50])))
    return parts


_WORKED_ON = """\
Each group has a developer, a worktree and a branch of its own; at most {developers} at once. A group begins when those it
depends on are merged. Groups that affect the same files follow one another: divide the work by files where you can."""


def _final(state: TeamState, unit: TeamUnit) -> list[str]:
    return [
        section("Requirements, one by one", "\n".join(f"- {one.text}" for one in state.requirements if not _is_left_out(one))),
        *_left_out(state),
        section("What was done", fenced(_json(_groups(state)), "json")),
    ]


def _confirm(state: TeamState, unit: TeamUnit) -> list[str]:
    listed = [one for one in state.requirements if not one.met_by]
    lines = [f"- {one.text}" + (f" (the project manager points at: {one.evidence})" if one.evidence else "") for one in listed]
    return [
        section("Confirm each of these", "\n".join(lines)),
        *_left_out(state),
        section("What was done", fenced(_json(_groups(state)), "json")),
    ]


def _is_left_out(requirement: Requirement) -> bool:
    return requirement.met_by == "approval"


def _left_out(state: TeamState) -> list[str]:
    lines = [f"- {one.text}" for one in state.requirements if _is_left_out(one)]
    return [section("Left out with a person's approval", "\n".join(lines))] if lines else []


def _develop(state: TeamState, unit: TeamUnit) -> list[str]:
    assert isinstance(unit, Group)
    into = state.spec.into
    words = [
        f"Your branch is {unit.branch_name}; it will be merged into {into}. What you leave uncommitted is committed for you.",
    ]
    others = [f"{group.unit} ({group.name})" for group in state.groups.values() if group is not unit]
    if others:
        words.append(f"The requirements are the whole team's: do your group's tasks, and leave the rest to {', '.join(others)}.")
    if state.spec.check:
        words.append(f"`{state.spec.check}` has to pass on the merged tree before it lands: run it before you report.")
    if unit.because in ("conflict", "collision"):
        words.append(f"Bring {into} into your branch (`git merge {into}`), resolve the conflicts, and commit.")
    if unit.because == "partial":
        words.append("You said that you were not done: go on where you stopped.")
    if state.spec.testing is not QaMode.NONE:
        words.append("Write unit tests for what you do, and run them.")
    return [section("Your group", fenced(_json(_slice(state, unit)), "json")), section("How to work", "\n".join(words))]


def _test(state: TeamState, unit: TeamUnit) -> list[str]:
    assert isinstance(unit, Group)
    return [section("The group", fenced(_json(_slice(state, unit)), "json")), *_diff(unit)]


def _consult(state: TeamState, unit: TeamUnit) -> list[str]:
    assert isinstance(unit, Group)
    open_blockers = "\n".join(f"- {one.description}" for one in unit.blockers if not one.resolved)
    return [
        section("The group", fenced(_json(_slice(state, unit)), "json")),
        section("What blocks the developer", open_blockers or "Nothing was said."),
        *_diff(unit),
    ]


_BODIES: dict[Purpose, Callable[[TeamState, TeamUnit], list[str]]] = {
    Purpose.PLAN: _plan,
    Purpose.FINAL: _final,
    Purpose.CONFIRM: _confirm,
    Purpose.DEVELOP: _develop,
    Purpose.QA: _test,
    Purpose.REVIEW: _test,
    Purpose.CONSULT: _consult,
}


def _slice(state: TeamState, group: Group) -> dict[str, Any]:
    """Give the part of the state that an agent of a group has to know."""
    mine = [state.tasks[name] for name in group.tasks if name in state.tasks]
    # A person or the files of an imported team may say that a task is done before its group is.
    tasks = [
        {"id": task.id, "description": task.description} | ({"status": task.by_hand} if task.by_hand == "complete" else {})
        for task in mine
    ]
    return {
        "group_id": group.unit,
        "group_name": group.name,
        "tasks": tasks,
        "files_affected": list(group.files_affected),
        "branch_name": group.branch_name,
        "depends_on": list(group.depends_on),
        "iterations": {"developer": group.developer, "qa": group.qa, "tech_lead": group.tech_lead},
        "files_modified": list(group.files_modified),
        "commits": [str(commit) for commit in group.commits],
        "test_results": group.test_results,
        "tech_lead_feedback": [msgspec.to_builtins(one) for one in group.reviews],
    }


def _groups(state: TeamState) -> list[dict[str, Any]]:
    return [
        {
            "id": group.unit,
            "name": group.name,
            "status": progress_of(state, group),
            "stage": status_of(state, group),
            "depends_on": list(group.depends_on),
            "files_modified": list(group.files_modified),
            "commits": [str(commit) for commit in group.commits],
            "summary": group.summary,
        }
        for group in state.groups.values()
    ]


def _messages(state: TeamState, turn: Turn) -> list[str]:
    told = [state.known[name] for name in turn.told]
    return [section("Messages for you", fenced(_json(told), "json"))] if told else []


def _open_points(unit: TeamUnit) -> list[str]:
    lines = [f"- {_FINDERS[who]}: {_indented(point)}" for who, points in unit.points.items() for point in points]
    return [section("Open points of earlier rounds", "\n".join(lines))] if lines else []


_FINDERS = {
    "qa": "QA",
    "review": "the tech lead",
    "guidance": "the tech lead's guidance",
    "merge": "merging",
    "person": "a person",
    "saving": "saving your work",
    "sent_back": "your last answer was not accepted",
}


def _diff(group: Group) -> list[str]:
    if not group.diff:
        return []
    text = group.diff if len(group.diff) <= DIFF_CHARS_MAX else group.diff[:DIFF_CHARS_MAX] + "\n… (cut)"
    return [section("What the branch changes", fenced(text, "diff"))]


_RULES = {
    Purpose.PLAN: (
        "PLANNING_COMPLETE with `tasks` and `groups`: each task belongs to a group. NEEDS_CLARIFICATION with `questions` asks a "
        "person first. `mode` is simple or parallel."
    ),
    Purpose.FINAL: (
        "DONE when every requirement is met: it is checked requirement by requirement. CONTINUE with `groups` (new ids, as in a "
        "plan) has more done."
    ),
    Purpose.CONFIRM: (
        "APPROVED when every requirement is met. CHANGES_REQUESTED, or a requirement that is not met, sends the project manager "
        "back to plan what is missing."
    ),
    Purpose.DEVELOP: (
        "READY_FOR_QA when your tasks are done; READY_FOR_REVIEW when there is nothing for integration tests; BLOCKED with "
        "`blocker` when you need the tech lead; PARTIAL when there is more to do than you could."
    ),
    Purpose.QA: "PASS when it works. FAIL with `failures`, each a sentence that says what is wrong and how to see it.",
    Purpose.REVIEW: (
        "APPROVED merges the branch. CHANGES_REQUESTED with `issues` sends it back; their `priority` is critical, high, medium "
        "or low."
    ),
    Purpose.CONSULT: "UNBLOCKED: your `feedback` and `actionable_items` go to the developer.",
}
"""The meaning of a report's words; each client is told in its own way how to write one."""


def _json(value: Any) -> str:
    return msgspec.json.format(msgspec.json.encode(value), indent=2).decode()


def _indented(text: str) -> str:
    return text.rstrip().replace("\n", "\n  ")
