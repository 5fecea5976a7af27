"""Composes what agents are told: pure text from the plan and what the run knows. The task itself is never cut."""

from __future__ import annotations

import re

from agent_orchestrator.core.markdown import fenced, section
from agent_orchestrator.systems.phases.spec import Lesson, PhasesPlan, PlanTask, ReviewFinding
from agent_orchestrator.systems.phases.state import PhasesState
from agent_orchestrator.systems.phases.works import TaskWork

LESSONS_SHOWN = 20
DIFF_CHARS = 8_000
STUCK_AFTER = 2
"""Failed iterations after which the agent is asked for another approach."""
_WORD = re.compile(r"[a-z]{4,}")


def compose_task(state: PhasesState, work: TaskWork) -> str:
    """Compose the prompt for an iteration of a task."""
    task = state.plan[work.task]
    parts = [*_attention(work), *_notes(work.notes), section(f"Task {task.id}: {task.name}", task.description or task.name)]
    parts += [section("When it is done", _criteria(task)), *_phase(state, task), *_frame(state.spec.plan), *_answers(state)]
    if task.files:
        parts.append(section("Files that are yours", "\n".join(f"- {path}" for path in task.files)))
    parts += _lessons(state, task)
    keys = ", ".join(f"`{one.key}`" for one in task.criteria if one.command is None)
    criteria = f" Say in `criteria` of each of these whether it is met: {keys}." if keys else ""
    parts.append(
        f"This is iteration {work.iteration} of at most {state.bounds.max_iterations}. Work in the current directory; do not "
        "commit, it is done for you. Report SUCCESS when it is done, PARTIAL when something is left, FAILED when you could not "
        f"do it.{criteria} A criterion with a command is run for you, whatever you say.\n"
    )
    return "\n".join(parts)


def compose_check(state: PhasesState, task: str, check_type: str, diff: str) -> str:
    """Compose the prompt for the supervisor."""
    one, plan = state.plan.get(task), state.spec.plan
    when = {"pre_task": "is about to start", "post_task": "has just been done", "on_demand": "is to be looked at"}[check_type]
    asked = [f"Task {task} {when}. Look at the working tree and at the plan for conflicts with what is there already."]
    if check_type == "post_task":
        asked.append("Confirm each criterion that nobody can run; one that is not met is false in your `criteria`, by its key.")
    mend = "mend it in the tree, it is committed for you" if plan.supervision.auto_fix else "name it, but change nothing"
    asked.append(f"A conflict of type pattern: {mend}. Of type architecture, dependency, api or security: change no file.")
    if plan.supervision.focus:
        asked.append(f"Look for these too: {'; '.join(plan.supervision.focus)}.")
    parts = [section("You supervise", "\n".join(asked))]
    if one is not None:
        parts += [section(f"Task {one.id}: {one.name}", one.description or one.name), section("Criteria", _criteria(one))]
    parts += _frame(plan)
    parts.append(section("The plan from here on", "\n".join(f"- {t.id} {t.name}" for t in state.pending()) or "- nothing"))
    if diff:
        parts.append(section("What the task changed", fenced(diff[:DIFF_CHARS], "diff")))
    if one is not None:
        parts += _lessons(state, one)
    parts.append(
        "Report PASS when nothing has to be done, AUTO_FIX when you mended something, each in `auto_fixes`, and RE_PLAN when the "
        "plan has to change: `conflicts` says why and `recommended_changes` how.\n"
    )
    return "\n".join(parts)


def compose_planning(state: PhasesState) -> str:
    """Compose the prompt for the planner."""
    plan = state.spec.plan
    tasks = "\n".join(f"- {task.id} {task.name}: {task.description or task.name}" for task in plan.tasks)
    ask = (
        "Read the plan and the code before anything starts. Change nothing. If something must be known that neither says, "
        "ask it now, all at once: report QUESTIONS with `questions`, else READY.\n"
    )
    return "\n".join([section(f"Plan: {plan.name}", tasks), *_frame(plan), ask])


def compose_scan(state: PhasesState, iteration: int, failing: list[ReviewFinding]) -> str:
    """Compose the prompt for the scanner of the outer loop."""
    plan = state.spec.plan
    known = "\n".join(f"- {one.priority} {one.issue}" for one in failing)
    focus = f" Look at these most of all: {'; '.join(plan.outer_focus)}." if plan.outer_focus else ""
    parts = [
        section("Review", f"All phases are complete. Look at the whole work for what is wrong or could be better.{focus}"),
        *_frame(plan),
        *_answers(state),
        *([section("Known to be wrong", known)] if known else []),
    ]
    ask = (
        f"This is iteration {iteration} of at most {plan.outer_max}. Report what you find, do not mend it: FOUND with "
        "`findings`, their `priority` from P0, the most urgent, to P3; CLEAN when there is nothing.\n"
    )
    return "\n".join([*parts, ask])


def compose_repair(state: PhasesState, finding: ReviewFinding) -> str:
    """Compose the prompt for mending one finding."""
    where = f" in {finding.file}" if finding.file else ""
    ask = (
        "Mend this one thing and nothing else; it is committed for you. Report FIXED when it is mended, CLEAN when there was "
        "nothing to mend, FOUND when it is left.\n"
    )
    about = section(f"Mend ({finding.priority})", f"{finding.issue}{where}")
    return "\n".join([about, *_frame(state.spec.plan), *_answers(state), ask])


def relevant_lessons(state: PhasesState, task: PlanTask) -> list[Lesson]:
    """List what this run learned, and of earlier runs what shares a word with the task; the newest last."""
    words = set(_WORD.findall(f"{task.name} {task.description}".lower()))
    told = [one for one in state.spec.earlier if words & set(_WORD.findall(f"{one.lesson} {one.pattern} {one.context}".lower()))]
    return [*told, *state.learnings][-LESSONS_SHOWN:]


def _attention(work: TaskWork) -> list[str]:
    if work.failed_in_a_row < STUCK_AFTER:
        return []
    text = f"The last {work.failed_in_a_row} iterations failed. Do not try the same again: take another approach, and say which."
    return [section("Attention", text)]


def _notes(notes: list[str]) -> list[str]:
    return [section("First of all", "\n".join(f"- {text}" for text in notes))] if notes else []


def _criteria(task: PlanTask) -> str:
    return "\n".join(f"- {one.text} [{one.key}]" + ("" if one.command is None else " (run for you)") for one in task.criteria)


def _phase(state: PhasesState, task: PlanTask) -> list[str]:
    phase = state.spec.plan.phases[task.phase]
    return [section(f"Phase {phase.number}: {phase.name}", phase.text)] if phase.text else []


def _frame(plan: PhasesPlan) -> list[str]:
    parts = [section(f"Goal of the whole: {plan.name}", plan.goal)]
    if plan.context:
        parts.append(section("Context", plan.context))
    if plan.criteria:
        parts.append(section("In the end", "\n".join(f"- {one.text}" for one in plan.criteria)))
    return parts


def _answers(state: PhasesState) -> list[str]:
    parts = []
    if state.answers:
        asked = "\n".join(f"- {text}" for text in state.questions)
        parts.append(section("What a person said", f"{asked}\n\n{state.answers}".strip()))
    if state.rejected:
        parts.append(section("Why a person rejected the work before", state.rejected))
    return parts


def _lessons(state: PhasesState, task: PlanTask) -> list[str]:
    told = relevant_lessons(state, task)
    lines = [f"- ({one.type}) {one.lesson}" + (f" → {one.pattern}" if one.pattern else "") for one in told]
    return [section("Learned so far", "\n".join(lines))] if lines else []
