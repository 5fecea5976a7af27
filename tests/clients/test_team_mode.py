"""A team with real clients: two groups, QA that fails, changes requested, a killed orchestrator, both merged, all confirmed."""

from __future__ import annotations

from typing import Any

import pytest

from agent_orchestrator.testing.model_cast import Part
from agent_orchestrator.testing.model_server import Behaviour, Held, Reply, Write
from tests.clients.modes import CLIENTS, ModeRig

REQUIREMENTS = """\
- People are greeted (check: `test -s greeting.txt`)
- People are seen off
"""
FAILURE = "The greeting has no name in it: run `grep Ada greeting.txt`."
ISSUE = {
    "priority": "high",
    "title": "One language only",
    "location": "greeting.txt:1",
    "description": "Only English is spoken.",
    "fix_suggestion": "Add bonjour.txt.",
}


def group(name: str, file: str) -> dict[str, Any]:
    """As the project manager plans it."""
    return {
        "id": name,
        "name": f"the {file}",
        "tasks": [f"T{name}"],
        "files_affected": [file],
        "branch_name": f"feature/group-{name}",
        "can_parallel": True,
        "depends_on": [],
        "complexity": "low",
        "estimated_effort_minutes": 10,
    }


PLAN = {
    "status": "PLANNING_COMPLETE",
    "summary": "Two groups.",
    "mode": "parallel",
    "mode_reasoning": "They share no file.",
    "tasks": [{"id": "TA", "description": "greet", "group_id": "A"}, {"id": "TB", "description": "see off", "group_id": "B"}],
    "groups": [group("A", "greeting.txt"), group("B", "farewell.txt")],
}
MET = [{"text": text, "met": True, "evidence": "I saw it."} for text in ("People are greeted", "People are seen off")]


def developer(name: str, unit: str, *words: str, writes: str, held: bool = False) -> Part:
    """A developer's turn; what it has to have been told is in `words`."""
    ready = Reply(
        {"status": "READY_FOR_QA", "summary": f"I wrote {writes}", "unit_tests": {"total": 1, "passed": 1, "failed": 0}}
    )
    script: list[Behaviour] = [Write(writes, "written"), Held(ready) if held else ready]
    return Part(name, "You are the developer of the group below", f'"group_id": "{unit}"', *words, script=script)


def qa(name: str, unit: str, **report: Any) -> Part:
    said = Reply({"status": "PASS", "summary": "I tested it", **report})
    return Part(name, "You are the QA expert", f'"group_id": "{unit}"', script=[said])


def reviewer(name: str, unit: str, **report: Any) -> Part:
    said = Reply({"status": "APPROVED", "summary": "I read it", "feedback": "Good work.", **report})
    return Part(name, "You are the tech lead. Review", f'"group_id": "{unit}"', script=[said])


def parts() -> list[Part]:
    return [
        Part("plan", "You are the project manager. Plan the work", script=[Reply(PLAN)]),
        developer("A", "A", writes="greeting.txt"),
        developer("B", "B", writes="farewell.txt", held=True),
        qa("A fails", "A", status="FAIL", failures=[FAILURE]),
        developer("A again", "A", f"QA: {FAILURE}", writes="names.txt", held=True),
        qa("A passes", "A"),
        reviewer("A changes", "A", status="CHANGES_REQUESTED", issues=[ISSUE]),
        developer("A once more", "A", ISSUE["title"], ISSUE["description"], writes="bonjour.txt"),
        qa("A passes again", "A"),
        reviewer("A approved", "A"),
        qa("B passes", "B"),
        reviewer("B approved", "B"),
        Part(
            "final",
            "You are the project manager. All groups are merged",
            script=[Reply({"status": "DONE", "summary": "All of it", "requirements": MET})],
        ),
        Part(
            "confirm",
            "You are the tech lead. Confirm each",
            script=[Reply({"status": "APPROVED", "summary": "All of it", "requirements": MET})],
        ),
    ]


@pytest.mark.parametrize("client", CLIENTS)
def test_a_team_from_start_to_completed(client: str, mode: ModeRig) -> None:
    cast = mode.begin(client, *parts(), files={"requirements.md": REQUIREMENTS})
    run = ("team", "run", "--requirements", "requirements.md", "--agent", client, "--check", "! test -e broken.txt")
    team = mode.kill_in(cast, ["A again", "B"], *run).split()[1]
    said = mode.orc("resume")
    assert f"team {team} completed" in said, said
    mode.check_books(cast, team)
    began = {name: cast.played.index(name) for name in cast.played}
    assert max(began["A approved"], began["B approved"]) < began["final"] < began["confirm"]
    groups = {one["group_id"]: one for one in mode.document("coordination/group_status.json").values()}
    assert [(one["status"], list(one["iterations"].values())) for one in groups.values()] == [
        ("complete", [3, 3, 2]),
        ("complete", [1, 1, 1]),
    ]
    assert mode.document("coordination/pm_state.json")["completion_percentage"] == 100
    assert ISSUE["description"] in (mode.repo / "coordination" / "messages" / "techlead_to_dev.json").read_text()
    assert len(mode.git("log", "--merges", "--format=%s").splitlines()) == 2
    made = {"greeting.txt", "names.txt", "bonjour.txt", "farewell.txt"}
    assert made < set(mode.git("ls-tree", "--name-only", "HEAD").split())
    assert mode.git("status", "--short") == ""
