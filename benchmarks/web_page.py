"""`python -m benchmarks.web_page`: the page of `orc web` in a real browser, by bytes and by the work of its main thread.

A thousand runs stand in the overview; the graph has 2,000 steps. Both are CPU and bytes, which a busy machine does not change.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from playwright.sync_api import Browser, CDPSession, Page, Playwright, sync_playwright

from agent_orchestrator.systems.workflow.spec import StepSpec, WorkflowSpec
from benchmarks.rig import PLAYED, Rig, chain
from tests.web.rig import Visitor, launch
from tests.web.server import Server

FRAMES = 60
PATIENCE_S = 60.0


class Figure(NamedTuple):
    """A value and the bound that it should keep."""

    what: str
    value: float
    bound: float
    unit: str

    def line(self) -> str:
        """Say it in one line."""
        verdict = "met   " if self.value <= self.bound else "MISSED"
        return f"{verdict}  {self.what:<58} {self.value:8.2f} {self.unit:<4} target ≤ {self.bound:g}"


def mesh(wide: int, long: int, prompt: Path) -> WorkflowSpec:
    """Return steps in columns; each needs two of the column before."""
    steps = tuple(
        StepSpec(
            id=f"s{column}x{row}",
            agent="worker",
            prompt="p",
            prompt_path=str(prompt),
            needs=tuple(sorted({f"s{column - 1}x{row}", f"s{column - 1}x{(row * 7 + 3) % wide}"})) if column else (),
        )
        for column in range(long)
        for row in range(wide)
    )
    return WorkflowSpec(name="mesh", steps=steps, agents=PLAYED)


class Meter:
    """Counts what a page loads and the CPU time of its main thread."""

    def __init__(self, page: Page) -> None:
        self.page, self.bytes = page, 0
        self._session: CDPSession = page.context.new_cdp_session(page)
        self._session.send("Network.enable")
        self._session.send("Performance.enable", {"timeDomain": "threadTicks"})
        self._session.on("Network.loadingFinished", self._count)

    def _count(self, event: dict[str, Any]) -> None:
        self.bytes += int(event["encodedDataLength"])

    def work_s(self) -> float:
        """Return the CPU time of the main thread so far."""
        found = self._session.send("Performance.getMetrics")["metrics"]
        return float(next(one["value"] for one in found if one["name"] == "TaskDuration"))

    def wait(self, script: str) -> None:
        """Wait until a script's value is true."""
        end_s = time.monotonic() + PATIENCE_S
        while not self.page.evaluate(script):
            assert time.monotonic() < end_s, script
            time.sleep(0.05)


def measure(browser: Browser, server: Server, runs: int, steps: int) -> Iterator[Figure]:
    """Open the overview and the graph, each in a browser that knows nothing but its session."""
    Visitor(browser, server).context.close()
    page = Visitor(browser, server).context.new_page()
    overview = Meter(page)
    page.goto(server.base)
    overview.wait("document.querySelectorAll('a.vrow').length > 10")
    yield Figure(f"overview with {runs:,} runs, cold: bytes", overview.bytes / 1000, 80, "kB")
    yield Figure(f"overview with {runs:,} runs, cold: main thread", overview.work_s(), 0.5, "s")
    page.close()
    page = Visitor(browser, server).context.new_page()
    page.goto(server.base)
    graph = Meter(page)
    graph.wait("document.querySelectorAll('a.vrow').length > 10")
    before, began_s = graph.bytes, graph.work_s()
    page.evaluate("history.pushState(null, '', '/run/mesh'); dispatchEvent(new PopStateEvent('popstate'))")
    graph.wait("(document.querySelector('.graph canvas') || {}).width > 300 && document.querySelectorAll('tr[data-unit]').length")
    page.wait_for_timeout(300)
    yield Figure(f"graph of {steps:,} steps, with its page: bytes", (graph.bytes - before) / 1000, 60, "kB")
    yield Figure(f"graph of {steps:,} steps, drawn: main thread", graph.work_s() - began_s, 0.5, "s")
    began_s = graph.work_s()
    page.evaluate(
        f"""(async () => {{ const canvas = document.querySelector('.graph canvas'), box = canvas.getBoundingClientRect();
          for (let i = 0; i < {FRAMES}; i++) {{
            const sign = i % 20 < 10 ? -1 : 1, more = i % 2 ? {{deltaX: 40 * sign, deltaY: 0}} : {{deltaX: 0, deltaY: 60 * sign}};
            const at = {{clientX: box.left + 300, clientY: box.top + 150, cancelable: true}};
            canvas.dispatchEvent(new WheelEvent('wheel', {{...more, ...at}}));
            await new Promise(requestAnimationFrame); }} }})()"""
    )
    yield Figure(f"graph of {steps:,} steps, panned and zoomed: per frame", (graph.work_s() - began_s) * 1000 / FRAMES, 12, "ms")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.web_page", description=__doc__)
    parser.add_argument("--scale", type=float, default=1.0, help="the size of everything: 1 is what counts")
    scale = parser.parse_args().scale
    with tempfile.TemporaryDirectory(prefix="orc-bench-") as folder:
        # Made before the browser starts: its loop takes this thread.
        rig = Rig(Path(folder) / "repo")
        wide = max(2, round(50 * scale))
        rig.create("mesh", mesh(wide, 40, rig.prompt))
        runs = [rig.create(f"run{number}", chain(5, rig.prompt)) for number in range(max(20, round(1_000 * scale)))]
        rig.drive(*runs[::2])
        rig.close()
        with sync_playwright() as playwright:
            _print(playwright, Path(folder), len(runs) + 1, wide * 40)


def _print(playwright: Playwright, folder: Path, runs: int, steps: int) -> None:
    server, browser = Server(folder, folder / "repo"), launch(playwright)
    try:
        for figure in measure(browser, server, runs, steps):
            print(figure.line(), flush=True)
    finally:
        server.stop()
        browser.close()


if __name__ == "__main__":
    main()
