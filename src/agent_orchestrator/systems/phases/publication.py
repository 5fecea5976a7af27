"""Milestones and the pull request: their texts, and the commands that publish them where a person asked for it.

`gh` is at-least-once: it is asked first whether something with our mark exists, then told to make it.
"""

from __future__ import annotations

from typing import NamedTuple
from urllib.parse import quote

import msgspec

from agent_orchestrator import typed
from agent_orchestrator.core.units import say_count
from agent_orchestrator.systems.phases.spec import PhasesPlan, PhasesSpec, Publication
from agent_orchestrator.systems.phases.state import PhasesState
from agent_orchestrator.systems.phases.works import MilestoneWork

PULL_REQUEST_FILE = "pull-request.md"
URLS_SHOWN = 1


class Tool(NamedTuple):
    """A program to run, and what it reads."""

    argv: tuple[str, ...]
    stdin: str = ""


def mark_of(state: PhasesState, unit: str) -> str:
    """Give the mark that makes an issue or a pull request ours: the same however often it is tried."""
    return f"orc-{state.context.run}-{unit}"


def first_step(state: PhasesState, work: MilestoneWork) -> str:
    """Say how a milestone or the pull request begins to be recorded."""
    if not state.spec.publishes:
        return "record"
    return "push" if work.phase is None else "look"


def tool_of(state: PhasesState, work: MilestoneWork) -> Tool:
    """Give the command for the unit's purpose: `push`, `look` or `create`."""
    kind = "pr" if work.phase is None else "issue"
    mark = mark_of(state, work.unit)
    if work.purpose == "push":
        return Tool(("git", "push", "--quiet", "--set-upstream", state.spec.remote, state.spec.branch))
    where = ("--repo", state.spec.repository) if state.spec.repository else ()
    if work.purpose == "look":
        search = ("--state", "all", "--search", f"{mark} in:body", "--json", "url", "--limit", str(URLS_SHOWN))
        return Tool(("gh", kind, "list", *where, *search))
    body = pull_request_body(state) if work.phase is None else milestone_body(state, work.phase)
    title = ("--title", state.spec.plan.name if work.phase is None else milestone_title(state, work.phase))
    place = ("--head", state.spec.branch, *(("--base", state.spec.target) if state.spec.target else ())) if kind == "pr" else ()
    return Tool(("gh", kind, "create", *where, *title, *place, "--body-file", "-"), f"{body}\n{mark}\n")


def say_published(plan: PhasesPlan, branch: str, to: PhasesSpec | Publication) -> str:
    """Say what a run publishes, and where."""
    where = to.repository or "the repository that gh finds by the remotes"
    issues = say_count(len(plan.phases), "issue")
    return f"the branch {branch} to {to.remote} ({to.address}), {issues} and a pull request in {where}"


def read_url(purpose: str, output: str) -> str | None:
    """Read the address in what `gh` wrote: the first of a list, or the last line of what was made."""
    if purpose == "look":
        try:
            listed = typed.decode(output.strip() or "[]", list[dict[str, str]])
        except msgspec.DecodeError:
            return None
        return listed[0].get("url") if listed else None
    lines = [line.strip() for line in output.splitlines() if line.strip().startswith("http")]
    return lines[-1] if lines else None


def milestone_title(state: PhasesState, phase: int) -> str:
    """Give the title of a milestone."""
    one = state.spec.plan.phases[phase]
    return f"{state.spec.plan.name}: phase {one.number}, {one.name}"


def milestone_files(spec: PhasesSpec) -> list[str]:
    """List the files that a run's milestones and its pull request may become."""
    return [*(milestone_file(phase) for phase in range(len(spec.plan.phases))), PULL_REQUEST_FILE]


def milestone_file(phase: int) -> str:
    """Give the name of a milestone that is a file."""
    return f"phase-{phase + 1}.md"


def milestone_body(state: PhasesState, phase: int) -> str:
    """Write a milestone: the tasks of the phase and what became of them."""
    lines = [f"# {milestone_title(state, phase)}", ""]
    for task in state.tasks_of(phase):
        done = state.completed.get(task.id)
        if done is not None:
            times = say_count(done.iterations, "iteration")
            lines.append(f"- [x] {task.id} {task.name}: {times}, {done.time_elapsed}, {done.cost}")
        else:
            lines.append(f"- [ ] {task.id} {task.name}: skipped, {state.skipped.get(task.id, 'not done')}")
    return "\n".join(lines) + "\n"


def pull_request_body(state: PhasesState) -> str:
    """Write the pull request: the goal, all tasks, what was skipped."""
    plan = state.spec.plan
    lines = [f"# {plan.name}", "", plan.goal.strip(), "", f"Branch: {state.spec.branch}", ""]
    for task in state.plan.values():
        mark = "x" if task.id in state.completed else " "
        lines.append(f"- [{mark}] {task.id} {task.name}")
    if plan.criteria:
        lines += ["", "In the end:", "", *(f"- {one.text}" for one in plan.criteria)]
    return "\n".join(lines) + "\n"


def file_url(state: PhasesState, name: str) -> str:
    """Give the address of a milestone that is a file."""
    return f"{folder_url(state, '.claude')}milestones/{name}"


def folder_url(state: PhasesState, folder: str) -> str:
    """Give the address of a folder of the run's home."""
    return f"file://{quote(state.context.home)}/{folder}/"
