"""A question in a real browser: approved, rejected with a comment on a line, and a run looked at as it was."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from agent_orchestrator.engine.journal import fold
from agent_orchestrator.runs.orchestrator import Orchestrator
from agent_orchestrator.systems import find_system
from tests.acceptance.rig import wait_until
from tests.terminal.stages import say
from tests.web.rig import Scene, Visitor
from tests.web.server import Server

pytestmark = pytest.mark.xdist_group("browser")

GATE = """\
name: checkout
steps:
  - {id: implement, agent: coder, prompt: prompt.md, check: "test -f cart.py"}
  - {id: approve_design, agent: planner, prompt: prompt.md, needs: [implement], human_in_the_loop: true, loop_back_to: implement}
  - {id: release_notes, agent: writer, prompt: prompt.md, needs: [approve_design]}
"""
Visit = Callable[..., Visitor]


class Gate(Scene):
    """A run whose second step asks a person; a no sends it back to the first."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, "gate", ("run", "--workflow", "workflow.yaml", "--agent", "claude", "--run-id", "gate"))
        (self.repo / "workflow.yaml").write_text(GATE)
        self.theatre.play({"implement": {"acts": [say("I add a total.")], "writes": {"cart.py": "def total(): ...\n"}}})


@pytest.fixture
def gate(tmp_path: Path) -> Iterator[Gate]:
    made = Gate(tmp_path)
    made.start()
    yield made
    made.end()


@pytest.fixture
def server(tmp_path: Path, gate: Gate) -> Iterator[Server]:
    made = Server(tmp_path, gate.repo)
    yield made
    made.stop()


def test_a_comment_on_a_line_reaches_the_agent_and_every_fact_can_be_looked_at(gate: Gate, server: Server, visit: Visit) -> None:
    tab = visit(server).tab("/")
    tab.wait_text("Needs you", "approve_design", "1 file +1 −0")
    assert tab.serious() == []
    tab.page.keyboard.press("j")
    tab.wait("document.querySelector('.need.focus')")
    tab.page.keyboard.press("Enter")
    tab.wait_text("Review approve_design", "def total(): ...")
    assert tab.serious() == []
    tab.page.get_by_label("Comment on line 2 of cart.py").click()
    tab.page.get_by_label("Comment on cart.py:2").fill("Totals are whole cents.")
    tab.press("Keep the comment")
    tab.press("Reject with 1 comment")
    wait_until(lambda: any("Totals are whole cents." in prompt for prompt in gate.prompts("implement")))
    tab.wait_text("waits for you")
    tab.open(f"{server.base}/run/gate/unit/implement")
    tab.wait_text("iteration 1")
    tab.page.get_by_text("Prompt as sent").first.click()
    tab.wait_text("Totals are whole cents.", "cart.py")
    assert_the_bar_shows_the_past(gate, server, visit)
    tab.page.keyboard.press("a")
    tab.wait("document.querySelector('.titles .badge').innerText", lambda said: said == "completed")
    assert gate.orc("show", "gate")["status"] == "completed"


def assert_the_bar_shows_the_past(gate: Gate, server: Server, visit: Visit) -> None:
    """Each fact of the journal on the page is what the journal folds to there."""
    tab = visit(server).tab("/run/gate?tab=table")
    last = int(tab.wait("(document.querySelector('.timebar input') || {}).max"))
    with Orchestrator(str(gate.repo)) as orchestrator:
        run = orchestrator.find("gate")
        rows = [row for row, _, _ in orchestrator.store.rows(run.id)]
        for index in range(last - 1, -1, -max(1, last // 8)):
            tab.page.evaluate(
                f"(() => {{ const bar = document.querySelector('.timebar input'); bar.value = {index};"
                " bar.dispatchEvent(new Event('input', {bubbles: true})); })()"
            )
            past = fold(orchestrator.store, find_system(run.system), run, rows[index])
            tab.wait_text(f"fact {rows[index]}")
            tab.wait("!document.querySelector('.past-strip').innerText.includes('…')")
            assert tab.statuses() == {unit: str(step.status) for unit, step in past.state.steps.items()}
    before = tab.page.url
    tab.page.keyboard.press("ArrowRight")
    wait_until(lambda: tab.page.url != before)
    tab.page.keyboard.press("Escape")
    wait_until(lambda: "row=" not in tab.page.url)


def test_somebody_approves_from_a_phone(gate: Gate, server: Server, visit: Visit) -> None:
    tab = visit(server, viewport={"width": 390, "height": 844}, color_scheme="dark", has_touch=True).tab("/")
    tab.wait_text("approve_design")
    assert tab.page.evaluate("document.documentElement.scrollWidth") <= 390, "the page is wider than the phone"
    assert tab.serious() == []
    tab.page.get_by_role("button", name="Approve checkout approve_design").tap()
    wait_until(lambda: gate.orc("show", "gate")["status"] == "completed")
    tab.wait_text("completed")


def test_ten_tabs_share_one_stream_and_survive_the_leading_one_the_server_and_the_run(
    gate: Gate, server: Server, visit: Visit
) -> None:
    visitor = visit(server)
    tabs = [visitor.tab("/run/gate") for _ in range(10)]
    for tab in tabs:
        tab.wait_text("waits for you", "Live")
    tabs.pop(0).page.close()
    visitor.tabs.pop(0)
    tabs[-1].press("Steer …")
    tabs[-1].page.get_by_label("What they should know").fill("Round up.")
    tabs[-1].confirm("Send")
    facts = int(tabs[-1].wait("document.querySelector('.timebar input').max"))
    for tab in tabs:
        tab.wait("Number(document.querySelector('.timebar input').max)", lambda many: many >= facts)
        tab.away = True
    server.stop(signal.SIGKILL)
    for tab in tabs[:2]:
        tab.wait_text("No connection")
    server.start()
    for tab in tabs:
        tab.wait_text("Live")
    assert gate.process is not None
    os.kill(gate.process.pid, signal.SIGKILL)
    gate.process.wait()
    tabs[0].wait_text("nothing runs it")
    tabs[0].press("Resume")
    tabs[1].wait("document.querySelector('.facts').innerText", lambda said: "nothing runs it" not in said)
    tabs[1].press("Approve")
    for tab in tabs:
        tab.wait("document.querySelector('.titles .badge').innerText", lambda said: said == "completed")
    assert gate.orc("show", "gate")["status"] == "completed"
