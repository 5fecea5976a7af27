"""The plan of a task document as data and for people: phases, tasks, criteria, bounds, what runs side by side."""

from __future__ import annotations

from typing import Any

from agent_orchestrator.agents.cli import CliAgent
from agent_orchestrator.agents.command import CommandAgent
from agent_orchestrator.agents.options import silence_s
from agent_orchestrator.config import Settings
from agent_orchestrator.core.units import say_count, say_duration
from agent_orchestrator.runs.phases.publication import choose_publication
from agent_orchestrator.surfaces.cli.screen import Screen, plain
from agent_orchestrator.systems.phases.publication import say_published
from agent_orchestrator.systems.phases.spec import Criterion, PhasesPlan, PlanTask, branch_of, overlaps


def side_by_side(plan: PhasesPlan, phase: int, most: int) -> list[list[str]]:
    """The tasks of a phase in the groups in which they would start, if each took as long as the others."""
    left = [task for task in plan.tasks if task.phase == phase]
    done = {task.id for task in plan.tasks if task.phase < phase}
    groups: list[list[str]] = []
    while left:
        group: list[PlanTask] = []
        for task in left:
            free = all(need in done for need in task.needs)
            if free and len(group) < most and (not group or _fits(task, group)):
                group.append(task)
        group = group or left[:1]
        groups.append([task.id for task in group])
        done |= set(groups[-1])
        left = [task for task in left if task.id not in done]
    return groups


def _fits(task: PlanTask, group: list[PlanTask]) -> bool:
    if not task.files:
        return False
    return all(other.files and not any(overlaps(a, b) for a in task.files for b in other.files) for other in group)


def plan_facts(plan: PhasesPlan, parallel: int) -> dict[str, Any]:
    """The plan as data."""
    bounds, supervision = plan.bounds, plan.supervision
    return {
        "name": plan.name,
        "goal": plan.goal,
        "bounds": {
            "max_iterations_per_task": bounds.max_iterations,
            "max_cost": bounds.max_cost,
            "max_time": bounds.max_time,
        },
        "supervisor": {
            "enabled": supervision.enabled,
            "before": supervision.before,
            "after": supervision.after,
            "auto_fix": supervision.auto_fix,
        },
        "outer_ralph": {"enabled": plan.outer_ralph, "max_iterations": plan.outer_max},
        "criteria": [_criterion(one) for one in plan.criteria],
        "phases": [
            {
                "phase": number,
                "name": phase.name,
                "tasks": [_task(task) for task in plan.tasks if task.phase == number],
                "side_by_side": side_by_side(plan, number, parallel),
            }
            for number, phase in enumerate(plan.phases)
        ],
    }


def publish_facts(plan: PhasesPlan, settings: Settings, flag: bool | None) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return what a run of the plan would publish and where, as data, and what a person should know."""
    said, doubt = choose_publication(settings, flag)
    if said is not None and said.remote:
        facts = {name: getattr(said, name) for name in ("remote", "address", "repository")}
        branch = branch_of(plan)
        more = {"branch": branch, "issues": len(plan.phases), "says": say_published(plan, branch, said)}
        return {"wanted": True, **facts, **more}, ()
    return {"wanted": False}, (doubt,) if doubt else ()


def silence_facts(given_s: float | None) -> dict[str, float | None]:
    """Return how long agents may be silent, whichever are chosen for the run; None for ever."""
    return {"clients": silence_s(given_s, CliAgent), "programs": silence_s(given_s, CommandAgent)}


def _criterion(one: Criterion) -> dict[str, Any]:
    return {"key": one.key, "text": one.text, "command": one.command}


def _task(task: PlanTask) -> dict[str, Any]:
    return {
        "task": task.id,
        "name": task.name,
        "description": task.description,
        "criteria": [_criterion(one) for one in task.criteria],
        "needs": list(task.needs),
        "files": list(task.files),
        "agents": list(task.agents),
        "complexity": task.complexity,
        "effort": task.effort,
    }


def print_plan(facts: dict[str, Any], screen: Screen) -> None:
    """The plan for people."""
    bounds = facts["bounds"]
    screen.line(screen.paint(plain(facts["name"]), "bold"))
    screen.line(plain(facts["goal"]))
    screen.line(
        f"bounds: {say_count(bounds['max_iterations_per_task'], 'iteration')} per task, cost {plain(bounds['max_cost'])}, "
        f"time {plain(bounds['max_time'])}"
    )
    screen.line(f"supervisor: {_when(facts['supervisor'])}; outer loop: {_outer(facts['outer_ralph'])}")
    screen.line(f"silence: {_silence(facts['idle_timeout_s'])}")
    for phase in facts["phases"]:
        screen.line()
        head = screen.paint(f"Phase {phase['phase'] + 1}", "bold")
        screen.line(f"{head}: {plain(phase['name'])}")
        for task in phase["tasks"]:
            _print_task(task, screen)
        for group in phase["side_by_side"]:
            if len(group) > 1:
                screen.line(f"  side by side: {', '.join(group)}")
    if facts["criteria"]:
        screen.line()
        screen.line("in the end:")
        for one in facts["criteria"]:
            screen.line(f"  {_said(one)}")
    screen.line()
    screen.line(f"publish: {_published(facts['publish'])}")
    screen.line("Nothing was created; `orc phases run` executes it.")


def _print_task(task: dict[str, Any], screen: Screen) -> None:
    screen.line(f"  {screen.paint(task['task'], 'bold')} {plain(task['name'])}")
    for one in task["criteria"]:
        screen.line(f"      {_said(one)}")
    for label, values in (("needs", task["needs"]), ("files", task["files"])):
        if values:
            screen.line(f"      {label}: {plain(', '.join(values))}")


def _said(one: dict[str, Any]) -> str:
    how = f"run: {plain(one['command'])}" if one["command"] is not None else "judged"
    return f"- {plain(one['text'])} ({how})"


def _published(publish: dict[str, Any]) -> str:
    if publish["wanted"]:
        return plain(publish["says"])
    return "nothing; milestones and the pull request are files in .claude/milestones/ (--publish publishes them)"


def _when(supervisor: dict[str, Any]) -> str:
    if not supervisor["enabled"]:
        return "off"
    times = [word for word, on in (("before", supervisor["before"]), ("after", supervisor["after"])) if on]
    return f"{' and '.join(times)} each task" if times else "on demand"


def _silence(limits: dict[str, float | None]) -> str:
    client, program = (say_duration(limit_s) if limit_s else None for limit_s in (limits["clients"], limits["programs"]))
    if client is None:
        return "an agent may say nothing for ever"
    other = f" ({program} if it is no known client)" if program not in (client, None) else ""
    return f"an agent that says nothing for {client} is stopped{other}"


def _outer(outer: dict[str, Any]) -> str:
    return f"at most {say_count(outer['max_iterations'], 'iteration')}" if outer["enabled"] else "off"
