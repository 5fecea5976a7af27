"""`orc run --plan`: the graph in levels, with agents, prompts, checks, gates and loops. Creates nothing."""

from __future__ import annotations

from typing import Any

from agent_orchestrator.agents import find_agent
from agent_orchestrator.agents.options import silence_s
from agent_orchestrator.core.units import say_count, say_duration
from agent_orchestrator.surfaces.cli.screen import Screen, plain
from agent_orchestrator.systems.workflow.spec import StepSpec, WorkflowSpec


def levels(spec: WorkflowSpec) -> list[list[StepSpec]]:
    """Steps that can run side by side, level by level; a step comes one level below the lowest of its needs."""
    depth: dict[str, int] = {}
    by_id = {step.id: step for step in spec.steps}
    for first in spec.steps:
        stack = [first.id]
        while stack:
            needs = by_id[stack[-1]].needs
            missing = [need for need in needs if need not in depth]
            if missing:
                stack.extend(missing)
            else:
                unit = stack.pop()
                depth[unit] = 1 + max((depth[need] for need in needs), default=-1)
    found: list[list[StepSpec]] = [[] for _ in range(1 + max(depth.values(), default=-1))]
    for step in spec.steps:
        found[depth[step.id]].append(step)
    return found


def plan_facts(spec: WorkflowSpec) -> dict[str, Any]:
    """The plan as data."""
    return {
        "workflow": spec.name,
        "description": spec.description,
        "steps": len(spec.steps),
        "max_parallel": spec.max_parallel,
        "max_attempts": spec.max_attempts,
        "max_iterations": spec.max_iterations,
        "levels": [[_step_facts(spec, step) for step in level] for level in levels(spec)],
    }


def _step_facts(spec: WorkflowSpec, step: StepSpec) -> dict[str, Any]:
    choice = spec.choice_for(step)
    timeout_s = step.timeout_s if step.timeout_s is not None else spec.timeout_s
    return {
        "id": step.id,
        "role": step.agent,
        "agent": choice.name,
        "adapter": choice.performer,
        "model": choice.model,
        "prompt": step.prompt_path,
        "needs": list(step.needs),
        "when": step.when,
        "gates": list(step.gates),
        "check": step.check,
        "loop_back_to": step.loop_back_to,
        "human_in_the_loop": step.human_in_the_loop,
        "items": step.loop is not None,
        "max_attempts": spec.attempts_of(step),
        "timeout_s": timeout_s,
        "idle_timeout_s": silence_s(spec.idle_timeout_s, find_agent(choice.performer)),
    }


def print_plan(spec: WorkflowSpec, screen: Screen) -> None:
    """The plan for people."""
    facts = plan_facts(spec)
    attempts, iterations = say_count(spec.max_attempts, "attempt"), say_count(spec.max_iterations, "iteration")
    limits = f"{spec.max_parallel} at once, {attempts}, {iterations}"
    screen.line(f"{screen.paint(plain(spec.name), 'bold')}: {say_count(len(spec.steps), 'step')}; {limits}")
    if spec.description:
        screen.line(plain(spec.description))
    for number, level in enumerate(facts["levels"], 1):
        screen.line()
        screen.line(screen.paint(f"level {number}", "dim"))
        for step in level:
            screen.line(f"  {screen.paint(step['id'], 'bold')}")
            for label, value in _told(step):
                screen.line(f"    {label:<8}{plain(value)}")
    screen.line()
    screen.line("Nothing was created; run it without --plan.")


def _told(step: dict[str, Any]) -> list[tuple[str, str]]:
    agent = step["agent"] + (f":{step['model']}" if step["model"] else "")
    if step["adapter"] != step["agent"]:
        agent += f" ({step['adapter']})"
    told = [("agent", agent if agent == step["role"] else f"{agent} as {step['role']}"), ("prompt", step["prompt"])]
    if step["needs"]:
        told.append(("needs", ", ".join(step["needs"])))
    if step["when"]:
        told.append(("when", step["when"]))
    if step["gates"]:
        told.append(("gates", ", ".join(step["gates"])))
    if step["items"]:
        told.append(("loop", "once for each item"))
    if step["human_in_the_loop"]:
        told.append(("person", "must approve"))
    if step["check"]:
        told.append(("check", step["check"]))
    if step["loop_back_to"]:
        told.append(("else", f"back to {step['loop_back_to']}"))
    if step["timeout_s"]:
        told.append(("limit", say_duration(step["timeout_s"])))
    if step["idle_timeout_s"]:
        told.append(("silence", f"at most {say_duration(step['idle_timeout_s'])}"))
    return told
