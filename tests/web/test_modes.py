"""A real run of each mode in a real browser: looked at, steered, paused, resumed and aborted."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import quote

import pytest

from tests.acceptance.rig import wait_until
from tests.web.rig import NAMES, Stage, Tab, Visitor
from tests.web.server import Server

pytestmark = pytest.mark.xdist_group("browser")

SEEN = {
    "workflow": ("checkout", "Approve step approve_design?", "implement", "release_notes", "1/5 steps"),
    "loop": ("the cart rounds as the shop does", "2/3 iterations", "Two checks side by side", "exit code 1"),
    "phases": ("Phase 1", "Phase 2", "Prices in cents", "✓ It is good", "checkpoint-001", "1/3 tasks"),
    "team": ("Developing", "Merging", "cart totals", "discounts", "0/2 groups"),
    "swarm": ("Ready", "Running", "shop-105", "/30 beads"),
}
"""The words on the page of each mode."""
BUSY = {
    "workflow": ("implement", "Bash pytest -q tests/test_cart.py"),
    "loop": ("loop", "rounding"),
    "phases": ("1.2", "Edit cart.py"),
    "team": ("B", "Half a cent is rounded up now."),
    "swarm": ("shop-106", "counted twice"),
}
"""A unit at work, and what its agent has just said or done."""
BENEATH_TABS = ".split"
"""The part of a run's page that its tabs change."""
LINKS = "[...document.querySelectorAll('.tabs a')].map((one) => one.innerText)"
Visit = Callable[..., Visitor]


class House:
    """Five repositories, a run of another mode in each, and one server for all."""

    def __init__(self, folder: Path) -> None:
        self.stages = {mode: Stage(folder, mode) for mode in NAMES}
        for stage in self.stages.values():
            stage.start()
        self.server = Server(folder, *(stage.repo for stage in self.stages.values()))

    def close(self) -> None:
        self.server.stop()
        for stage in self.stages.values():
            stage.end()


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    made = House(tmp_path_factory.mktemp("web"))
    yield made
    made.close()


def page_of(visitor: Visitor, mode: str) -> tuple[Tab, str]:
    """Open the page of a mode's run from the list of runs."""
    tab = visitor.tab("/")
    cell = f"row.querySelector('.c-repo').innerText === {NAMES[mode]!r}"
    link = f"[...document.querySelectorAll('a.vrow')].filter((row) => {cell})[0]"
    path = tab.wait(f"({link} || {{pathname: ''}}).pathname")
    tab.page.evaluate(f"{link}.click()")
    return tab, path


@pytest.mark.parametrize("mode", NAMES)
def test_a_run_shows_its_mode_and_what_its_agents_say(house: House, visit: Visit, mode: str) -> None:
    tab, path = page_of(visit(house.server), mode)
    tab.wait_text(*SEEN[mode])
    if mode != "loop":
        tab.open(f"{house.server.base}{path}?tab=graph")
        tab.wait("document.querySelectorAll('tr[data-unit]').length")
        tab.wait("document.querySelector('.graph canvas').width")
        wait_until(lambda: tab.colours() > 3)
    unit, said = BUSY[mode]
    tab.open(f"{house.server.base}{path}/unit/{quote(unit)}")
    tab.wait_text("Launches", said)
    tab.page.get_by_text("Prompt as sent").first.click()
    tab.wait("document.querySelector('.panel details pre.output')")
    if mode == "workflow":
        assert tab.serious() == []


def test_every_tab_of_a_run_and_the_figures_are_good_for_everybody(house: House, visit: Visit) -> None:
    visitor = visit(house.server)
    tab, found = visitor.tab("/analytics"), {}
    tab.wait_text("Success by agent × model × step", "Beads of the swarm in stock")
    found["analytics"] = tab.serious()
    for mode in NAMES:
        tab = page_of(visitor, mode)[0]
        tab.wait(LINKS)
        for number, name in enumerate(tab.page.evaluate(LINKS)):
            tab.page.get_by_role("link", name=name, exact=True).click()
            tab.wait("document.querySelector('.split .loading') === null")
            found[f"{mode}: {name}"] = tab.serious(BENEATH_TABS if number else "html")
            assert tab.page.evaluate("document.documentElement.scrollWidth") <= 1280, f"{name} of {mode} is wider than the page"
            said = tab.page.evaluate("document.querySelector('.split').innerText")
            assert len(said) > 10, f"{name} of {mode} says nothing"
        tab.page.close()
    assert {name: serious for name, serious in found.items() if serious} == {}
    assert {"workflow: Timeline", "loop: Cost", "phases: Journal", "team: Decisions", "swarm: Cost"} <= found.keys()


@pytest.mark.parametrize("mode", NAMES)
def test_a_run_is_steered_paused_resumed_and_aborted_from_its_page(house: House, visit: Visit, mode: str) -> None:
    stage = house.stages[mode]
    tab, path = page_of(visit(house.server), mode)
    tab.press("Steer …")
    tab.page.get_by_label("What they should know").fill("Prices are whole cents.")
    tab.confirm("Send")
    tab.page.get_by_role("link", name="Messages").click()
    tab.wait_text("Prices are whole cents.")
    tab.press("More")
    tab.press("Pause now")
    tab.wait_text("paused")
    stage.theatre.go(held=True)
    tab.press("Resume")
    tab.wait("document.body.innerText", lambda said: "continues" in said or "is continued" in said)
    tab.wait("document.querySelector('.titles .badge').innerText", lambda said: said in ("running", "needs you"))
    tab.press("Abort …")
    tab.confirm("Abort the run")
    tab.wait("document.querySelector('.titles .badge').innerText", lambda said: said == "aborted")
    assert stage.orc("show", path.rsplit("%3A", 1)[-1])["status"] == "aborted"
