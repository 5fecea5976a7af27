"""Phases with real clients: a supervisor that changes the plan and mends, a killed orchestrator, a finding that is fixed."""

from __future__ import annotations

from typing import Any

import pytest

from agent_orchestrator.testing.model_cast import Part
from agent_orchestrator.testing.model_server import Held, Reply, Write
from tests.clients.modes import CLIENTS, ModeRig

DOCUMENT = """\
# Task: Greeting

## Goal

People are greeted.

## Success Criteria (Global)

- [ ] Nothing is broken `test ! -e broken.txt`

## Phases & Tasks

### Phase 1: Only

#### Task 1.1: Write the greeting

**Success Criteria**:
- [ ] It is there `test -s greeting.txt`
- [ ] It is friendly

## Supervisor Checks

- **Enable**: yes
- **Frequency**: after each task
- **Auto-fix**: yes

## Outer Ralph Loop

- **Enable**: yes
- **Maximum iterations**: 3
"""
CONFLICT = {
    "type": "architecture",
    "severity": "high",
    "details": "Nobody says goodbye.",
    "recommendation": "Add a task for it.",
}
CHANGE: dict[str, Any] = {
    "action": "add",
    "task": "1.2",
    "name": "Write the farewell",
    "description": "Say goodbye as kindly as hello.",
    "criteria": ["It is there too `test -s farewell.txt`"],
}
MENDED = {"file": "names.txt", "issue": "The names are missing.", "fix": "I wrote them down."}
FINDING = {"priority": "P1", "file": "greeting.txt", "issue": "Nobody translated the greeting."}


def success(**criteria: bool) -> Reply:
    return Reply(
        {
            "status": "SUCCESS",
            "summary": "It is written",
            "criteria": [{"name": key, "value": met} for key, met in criteria.items()] or None,
        }
    )


def parts() -> list[Part]:
    """In the order in which they are played. What a supervisor reports has to come back in the prompt of the new task."""
    replan = {"status": "RE_PLAN", "summary": "It is half", "conflicts": [CONFLICT], "affected_tasks": ["1.1"]}
    mended = {"status": "AUTO_FIX", "summary": "I mended it", "auto_fixes": [MENDED]}
    fixed = {"status": "FIXED", "summary": "It is translated"}
    return [
        Part(
            "1.1",
            "Task 1.1: Write the greeting",
            "This is iteration 1",
            script=[Write("greeting.txt", "hello"), success(it_is_friendly=True)],
        ),
        Part("check 1.1", "Task 1.1 has just been done", "+hello", script=[Reply({**replan, "recommended_changes": [CHANGE]})]),
        Part("1.1 again", "Task 1.1: Write the greeting", "This is iteration 2", script=[success(it_is_friendly=True)]),
        Part("check 1.1 again", "Task 1.1 has just been done", script=[Reply({"status": "PASS", "summary": "Fine"})]),
        Part(
            "1.2", "Task 1.2: Write the farewell", CHANGE["description"], script=[Write("farewell.txt", "bye"), Held(success())]
        ),
        Part("check 1.2", "Task 1.2 has just been done", "+bye", script=[Write("names.txt", "Ada"), Reply(mended)]),
        Part(
            "scan",
            "All phases are complete",
            "This is iteration 1",
            script=[Reply({"status": "FOUND", "summary": "One", "findings": [FINDING]})],
        ),
        Part("repair", "Mend (P1)", FINDING["issue"], script=[Write("bonjour.txt", "bonjour"), Reply(fixed)]),
        Part(
            "scan again",
            "All phases are complete",
            "This is iteration 2",
            script=[Reply({"status": "CLEAN", "summary": "Fine"})],
        ),
    ]


@pytest.mark.parametrize("client", CLIENTS)
def test_phases_from_start_to_completed(client: str, mode: ModeRig) -> None:
    cast = mode.begin(client, *parts(), files={"task.md": DOCUMENT})
    said = mode.kill_in(cast, ["1.2"], "phases", "run", "task.md", "--agent", client, "--yes", "--run-id", "one")
    assert "iteration 1 was not enough: the plan was changed (It is half; approved with --yes)" in said
    assert "run one completed: 2/2 tasks" in mode.orc("resume", "one")
    assert cast.played == [part.name for part in parts()]
    mode.check_books(cast, "one")
    state = mode.document(".claude/agent-state.json")
    assert (state["orchestrator"]["status"], state["pending_tasks"]) == ("completed", [])
    done = {task["task"]: (task["iterations"], task["files_modified"]) for task in state["completed_tasks"]}
    assert done == {"1.1": (2, ["greeting.txt"]), "1.2": (1, ["farewell.txt", "names.txt"])}
    seen = [(one["task"], one["conflict_type"], one["action"]) for one in state["supervisor"]["interventions"]]
    assert seen == [("1.1", "architecture", "re_plan"), ("1.2", "pattern", "auto_fix")]
    assert (client == "claude") == state["safety_bounds"]["cost_so_far"].startswith("$")
    assert mode.git("branch", "--show-current") == "phases/greeting"
    assert mode.git("log", "--reverse", "--format=%s").splitlines() == [
        "first",
        "Task 1.1: Write the greeting",
        "Task 1.2: Write the farewell",
        "Auto-fix in task 1.2: names.txt: The names are missing.",
        "Task 1.2: Write the farewell",
        "Review: Nobody translated the greeting.",
    ]
    made = {"greeting.txt", "farewell.txt", "names.txt", "bonjour.txt"}
    assert made < set(mode.git("ls-tree", "--name-only", "HEAD").split())
    assert mode.git("status", "--short") == ""
