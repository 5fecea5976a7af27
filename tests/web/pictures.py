"""Makes the pictures of docs/web.md: the page of each mode in a real browser, light and dark, as `make pictures`."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from urllib.parse import quote

from playwright.sync_api import Browser, sync_playwright

from tests.acceptance.rig import ROOT
from tests.web.rig import NAMES, Stage, Visitor, launch
from tests.web.server import Server

FOLDER = ROOT / "docs" / "pictures"
WIDE, PHONE = (1280, 800), (390, 780)
MODES = {
    "workflow": ("approve_design", "Approve step approve_design?"),
    "loop": ("", "Two checks side by side"),
    "phases": ("1.2", "Phase 2"),
    "team": ("B", "Developing"),
    "swarm": ("shop-106", "Running"),
}
"""The unit whose panel is open on the picture of each mode, and a text to wait for."""


def picture_of(name: str) -> Path:
    """Return the file of a picture."""
    return FOLDER / f"web-{name}.png"


def take(
    browser: Browser, server: Server, name: str, path: str, *texts: str, size: tuple[int, int] = WIDE, dark: bool = False
) -> None:
    """Go to a page, wait until it says this, and keep its picture."""
    options = {"viewport": {"width": size[0], "height": size[1]}, "color_scheme": "dark" if dark else "light"}
    visitor = Visitor(browser, server, **options, reduced_motion="reduce")
    tab = visitor.tab(path)
    tab.wait_text(*texts)
    tab.page.wait_for_timeout(700)
    tab.page.screenshot(path=picture_of(name))
    visitor.context.close()
    sys.stdout.write(f"{picture_of(name).relative_to(ROOT)}\n")


def main() -> None:
    FOLDER.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="orc-") as folder, sync_playwright() as playwright:
        stages = {mode: Stage(Path(folder), mode) for mode in NAMES}
        browser = launch(playwright)
        for stage in stages.values():
            stage.start()
        server = Server(Path(folder), *(stage.repo for stage in stages.values()))
        try:
            for mode, (unit, text) in MODES.items():
                key = quote(f"{NAMES[mode]}:{stages[mode].run_id()}", safe="")
                take(
                    browser,
                    server,
                    mode,
                    f"/run/{key}{f'/unit/{quote(unit)}' if unit else ''}",
                    text,
                    dark=mode in ("loop", "team"),
                )
            key = quote(f"{NAMES['workflow']}:{stages['workflow'].run_id()}", safe="")
            take(browser, server, "review", f"/run/{key}/review/approve_design", "Review approve_design", "plan.md")
            take(browser, server, "runs", "/", "approve_design", "Spent today")
            take(browser, server, "phone", "/", "approve_design", size=PHONE, dark=True)
        finally:
            server.stop()
            for stage in stages.values():
                stage.end()
            browser.close()


if __name__ == "__main__":
    main()
