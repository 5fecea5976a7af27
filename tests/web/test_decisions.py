"""All that a person decides about a run, clicked in a real browser: every mode that asks, and the verbs that finish or undo."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.rig import wait_until
from tests.terminal.stages import say
from tests.web.rig import Scene, Tab, Visitor
from tests.web.server import Server

pytestmark = pytest.mark.xdist_group("browser")

Visit = Callable[..., Visitor]

TASK = "#### Task 1.{number}: {title}\n\n**Success Criteria**:\n- [ ] It is good\n\n"
TITLES = ("Prices in cents", "Totals", "Discounts")
DOCUMENT = "# Task: Checkout\n\n## Goal\n\nA cart that adds up.\n\n## Phases & Tasks\n\n### Phase 1: Cart\n\n"
STEPS = """\
name: release
steps:
  - {id: code, agent: coder, prompt: prompt.md}
  - {id: notes, agent: writer, prompt: prompt.md, needs: [code]}
"""
CLAUDE = ("--agent", "claude")


def report(status: str, **more: Any) -> dict[str, Any]:
    return {"report": {"status": status, **more}}


def make_phases(folder: Path) -> Scene:
    scene = Scene(folder, "phases", ("phases", "run", "task.md", *CLAUDE, "--no-supervisor", "--no-outer-ralph"))
    scene.arguments += ("--max-iterations", "1", "--run-id", "phased")
    tasks = "".join(TASK.format(number=number, title=title) for number, title in enumerate(TITLES, 1))
    (scene.repo / "task.md").write_text(DOCUMENT + tasks)
    scene.theatre.play({"*": report("FAILED", summary="It does not add up.")})
    return scene


def make_loop(folder: Path) -> Scene:
    words = ("loop", "run", "the cart rounds", "--completion", "the totals look right to a person", "--confirm-with", "person")
    scene = Scene(folder, "loop", (*words, *CLAUDE, "--max-iterations", "3", "--no-auto-test"))
    scene.theatre.play({"*": {"writes": {"cart.py": "def total(): ...\n"}, "report": {"done": True, "summary": "It rounds."}}})
    return scene


def make_team(folder: Path) -> Scene:
    scene = Scene(folder, "team", ("team", "run", "The cart adds up", *CLAUDE, "--check", "true", "--max-qa-rounds", "1"))
    scene.theatre.play({"pm.plan": {"report": {"status": "NEEDS_CLARIFICATION", "questions": ["Are prices net or gross?"]}}})
    return scene


def make_swarm(folder: Path) -> Scene:
    beads = [{"id": f"shop-{number}", "prompt": f"Fix issue {number}."} for number in (1, 2)]
    scene = Scene(folder, "swarm", ())
    file = scene.theatre.side / "beads.jsonl"
    file.write_text("".join(json.dumps(bead) + "\n" for bead in beads))
    scene.arguments = ("swarm", "run", str(file), *CLAUDE, "--branch", "fix", "--max-retries", "1", "--max-agents", "2")
    done = {"writes": {"stock.py": "COUNT = 1\n"}, "report": {"status": "DONE", "reason": "fixed"}}
    scene.theatre.play({"shop-1": {"report": {"status": "FAILED", "reason": "the stock is empty"}}, "shop-2": done})
    return scene


def make_workflow(folder: Path) -> Scene:
    words = ("run", "--workflow", "workflow.yaml", *CLAUDE, "--git-worktree", "--run-id", "release")
    scene = Scene(folder, "workflow", words)
    (scene.repo / "workflow.yaml").write_text(STEPS)
    scene.theatre.play({"code": {"acts": [say("I add a total.")], "writes": {"cart.py": "def total(): ...\n"}}})
    return scene


MADE = {"phases": make_phases, "loop": make_loop, "team": make_team, "swarm": make_swarm, "workflow": make_workflow}


class Desk:
    """Five repositories, each with a run that needs somebody, and one server for all."""

    def __init__(self, folder: Path) -> None:
        self.scenes = {mode: make(folder) for mode, make in MADE.items()}
        for scene in self.scenes.values():
            scene.start()
        self.server = Server(folder, *(scene.repo for scene in self.scenes.values()))

    def close(self) -> None:
        self.server.stop()
        for scene in self.scenes.values():
            scene.end()


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    made = Desk(tmp_path_factory.mktemp("desk"))
    yield made
    made.close()


def open_run(desk: Desk, visit: Visit, mode: str, rest: str = "") -> Tab:
    """Open the page of a mode's run."""
    scene = desk.scenes[mode]
    wait_until(lambda: scene.orc("list").get("runs"))
    return visit(desk.server).tab(f"/run/{mode}%3A{scene.run_id()}{rest}")


def wait_badge(tab: Tab, *words: str) -> None:
    tab.wait("(document.querySelector('.titles .badge') || {}).innerText", lambda said: said in words)


def choose_more(tab: Tab, name: str) -> None:
    """Choose something of the menu."""
    tab.press("More")
    tab.page.locator(".menu").get_by_role("button", name=name).click()


def test_a_plan_is_approved_and_failed_tasks_are_retried_rejected_and_skipped(desk: Desk, visit: Visit) -> None:
    scene = desk.scenes["phases"]
    overview = visit(desk.server).tab("/?repo=phases")
    overview.wait_text("Checkout › plan")
    overview.page.get_by_role("button", name="Approve Checkout plan").click()
    tab = open_run(desk, visit, "phases", "/unit/1.1")
    tab.wait_text("1.1", "waits for you")
    good = report("SUCCESS", summary="Cents.", criteria={"it_is_good": True})
    scene.theatre.play({"1.1": good, "*": report("FAILED", summary="It does not add up.")})
    tab.press("Retry", exact=True)
    tab.wait_text("1/3 tasks")
    tab.wait("(document.querySelector('.needs .strong') || {}).innerText", lambda unit: unit == "1.2")
    tab.press("Reject …")
    tab.page.get_by_label("What has to change").fill("Leave totals out.")
    tab.confirm("Reject")
    tab.wait("(document.querySelector('.needs .strong') || {}).innerText", lambda unit: unit == "1.3")
    tab.open(f"{desk.server.base}/run/phases%3Aphased/unit/1.3")
    tab.press("Skip …")
    tab.confirm("Cancel")
    assert "1.3" not in str(scene.orc("show", "phased").get("skipped", ""))
    tab.press("Skip …")
    tab.confirm("Skip")
    wait_badge(tab, "completed")
    shown = scene.orc("show", "phased")
    assert shown["status"] == "completed"
    choose_more(tab, "Merge …")
    tab.confirm("Merge")
    tab.wait_text("merged phases/checkout into main")


def test_a_result_is_rejected_with_words_and_approved_at_the_second_look(desk: Desk, visit: Visit) -> None:
    scene = desk.scenes["loop"]
    tab = open_run(desk, visit, "loop")
    tab.wait_text("loop", "waits for you")
    first = tab.page.evaluate("location.pathname")
    tab.press("Reject …")
    tab.page.get_by_label("What has to change").fill("Half a cent is rounded up.")
    tab.confirm("Reject")
    wait_until(lambda: any("Half a cent is rounded up." in prompt for prompt in scene.prompts("loop")))
    tab.wait("document.querySelectorAll('.strip .pass').length", lambda many: many == 2)
    tab.wait_text("waits for you")
    tab.open(f"{desk.server.base}{first}/review/loop")
    tab.wait_text("Review loop", "It waits for you", "def total(): ...")
    tab.press("Approve")
    wait_badge(tab, "completed")
    assert scene.orc("list")["runs"][0]["status"] == "completed"


def test_a_team_is_answered_in_words_then_approved_then_given_up_then_resumed(desk: Desk, visit: Visit) -> None:
    scene = desk.scenes["team"]
    tab = open_run(desk, visit, "team")
    tab.wait_text("Are prices net or gross?")
    group = {"id": "A", "name": "totals", "tasks": ["T1"], "branch_name": "team/totals", "files_affected": ["cart.py"]}
    plan = report("PLANNING_COMPLETE", mode="simple", mode_reasoning="one", groups=[group])
    plan["report"]["tasks"] = [{"id": "T1", "description": "Add it up", "group_id": "A"}]
    develop = {"writes": {"cart.py": "def total(): ...\n"}, **report("READY_FOR_QA", summary="Adds up.")}
    parts = {"pm.plan": plan, "A.develop": develop, "A.qa": report("FAIL", summary="One cent is missing.")}
    scene.theatre.play(parts)
    tab.press("Answer …")
    tab.page.get_by_label("Your answer").fill("Prices are gross.")
    tab.confirm("Send")
    wait_until(lambda: any("Prices are gross." in prompt for prompt in scene.prompts("pm")))
    tab.wait_text("A\nwaits for you")
    tab.page.get_by_role("link", name="Review").click()
    tab.page.get_by_label("What has to change").fill("Count the last cent.")
    tab.press("Approve")
    wait_until(lambda: any("Count the last cent." in prompt for prompt in scene.prompts("A")))
    tab.wait_text("A\nwaits for you")
    tab.press("Reject …")
    tab.confirm("Reject")
    tab.wait("document.querySelector('.needs') === null")
    good = report("APPROVED", summary="It adds up.")
    passed = {"A.qa": report("PASS", summary="All cents."), "A.review": good, "pm.final": report("DONE"), "confirm": good}
    scene.theatre.play({**parts, **passed})
    tab.press("Resume")
    wait_badge(tab, "completed")
    assert "def total" in (scene.repo / "cart.py").read_text(), "the group is merged"


def test_a_bead_is_retried_and_merged_from_its_panel(desk: Desk, visit: Visit) -> None:
    scene = desk.scenes["swarm"]
    tab = open_run(desk, visit, "swarm", "/unit/shop-1")
    tab.wait_text("the stock is empty")
    wait_until(lambda: scene.orc("list")["runs"][0]["driven_by"] is None)
    scene.theatre.play({"*": {"writes": {"cart.py": "STOCK = 1\n"}, "report": {"status": "DONE", "reason": "fixed"}}})
    tab.press("Retry", exact=True)
    wait_badge(tab, "completed")
    tab.press("Merge …")
    tab.page.get_by_label("Without a check").check()
    tab.confirm("Merge")
    tab.wait_text("merged shop-1: fix/shop-1 into main")
    assert "STOCK = 1" in (scene.repo / "cart.py").read_text()
    tab.open(f"{desk.server.base}/analytics?system=swarm&repo=swarm")
    tab.wait_text("Beads of the swarm in swarm by agent × model × template", "claude-sonnet-4-5", "custom")


def test_a_run_is_forked_on_the_time_bar_rewound_resumed_and_merged(desk: Desk, visit: Visit) -> None:
    scene = desk.scenes["workflow"]
    tab = open_run(desk, visit, "workflow")
    wait_badge(tab, "completed")
    shown = tab.page.evaluate("fetch('/api/runs/workflow%3Arelease').then((found) => found.json())")
    points = {point["name"]: point["row"] for point in shown["points"]}
    tab.open(f"{desk.server.base}/run/workflow%3Arelease?row={points['code']}")
    tab.press("Fork here …")
    tab.page.get_by_label("Id of the new run").fill("other")
    tab.confirm("Fork")
    tab.wait_text("run other is run release as it was at")
    assert {run["run_id"] for run in scene.orc("list")["runs"]} == {"release", "other"}
    tab.press("Rewind to here …")
    tab.confirm("Cancel")
    tab.press("Rewind to here …")
    tab.confirm("Rewind")
    tab.wait_text("run release is back at")
    tab.press("Back to now")
    tab.wait_text("1/2 steps")
    tab.press("Resume")
    wait_badge(tab, "completed")
    choose_more(tab, "Merge …")
    tab.page.get_by_label("Without a check").check()
    tab.confirm("Merge")
    tab.wait_text("merged orc/release into main")
    assert "def total" in (scene.repo / "cart.py").read_text()
    tab.open(f"{desk.server.base}/run/workflow%3Aother")
    tab.press("Resume")
    wait_badge(tab, "completed")
    choose_more(tab, "Discard the work …")
    tab.confirm("Discard")
    tab.wait_text("discarded orc/other, kept as")
