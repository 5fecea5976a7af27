"""`orc web` over repositories in which plain programs work, and a real browser that looks at it."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, Playwright, Response

from tests.acceptance.rig import ORC, ROOT, WAIT_S, wait_until
from tests.terminal.stages import STAGES, Theatre
from tests.web.server import Server, environment

AXE = ROOT / ".cache" / "node" / "node_modules" / "axe-core" / "axe.min.js"
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
NAMES = {"workflow": "shop", "loop": "cart", "phases": "checkout", "team": "billing", "swarm": "stock"}
"""The repository of each mode's run."""
_GIVEN: dict[str, Any] = {}
"""The cookie and the token that the link of a server gave."""


def launch(playwright: Playwright) -> Browser:
    """Start the browser; a page's CSP stays as it is."""
    return playwright.chromium.launch(executable_path=CHROMIUM, headless=True, args=list(FLAGS))


class Stage:
    """A repository with a run of one mode whose agents are held at a moment at which there is much to see."""

    def __init__(self, folder: Path, mode: str) -> None:
        self.mode, self.folder, self.theatre = mode, folder, Theatre(folder / mode, NAMES[mode])
        self.arguments = STAGES[mode](self.theatre).arguments
        self.repo = self.theatre.repo
        self.process: subprocess.Popen[bytes] | None = None

    def start(self, *arguments: str) -> None:
        """Start the run, or another command that drives it."""
        with (self.folder / f"{self.mode}.out").open("ab") as out:
            words = [*ORC, *(arguments or self.arguments)]
            self.process = subprocess.Popen(
                words, cwd=self.repo, env=environment(self.folder), stdin=subprocess.DEVNULL, stdout=out, stderr=out
            )

    def orc(self, *arguments: str) -> Any:
        """Return the answer of a command, as data."""
        done = subprocess.run(
            [*ORC, *arguments, "--json"], cwd=self.repo, env=environment(self.folder), capture_output=True, text=True, check=False
        )
        return json.loads(done.stdout)

    def run_id(self) -> str:
        """Return the id of the run."""
        return str(self.orc("list")["runs"][0]["run_id"])

    def end(self) -> None:
        """Let the agents go and end the run."""
        self.theatre.go()
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(WAIT_S)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()


class Scene(Stage):
    """A repository with a run of a test's own: its parts are played again by others at any time."""

    def __init__(self, folder: Path, name: str, arguments: tuple[str, ...]) -> None:
        self.mode, self.folder, self.theatre = name, folder, Theatre(folder / name, name)
        self.repo, self.process, self.arguments = self.theatre.repo, None, arguments

    def prompts(self, unit: str) -> list[str]:
        """Return what the launches of a unit were told."""
        folders = sorted((self.repo / ".git" / "orc" / "launches").glob(f"*/{unit}~*"))
        return [
            "".join(path.read_text() for path in folder.rglob("*") if path.is_file() and "prompt" in path.name)
            for folder in folders
        ]


class Tab:
    """A page of the browser that notes every error it shows."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.errors: list[str] = []
        self.away = False
        """True while the server is down on purpose: a browser says so in its console."""
        page.on("console", self._note)
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        self._refusals: list[Response] = []
        page.on("response", lambda response: self._refusals.append(response) if response.status >= 400 else None)

    def _note(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning") and not (self.away and "ERR_" in message.text):
            self.errors.append(f"{message.text} ({message.location['url']})")

    def refusals(self) -> list[str]:
        """Return what the server said to requests that it refused."""
        return [f"{one.request.post_data}: {one.text()}" for one in self._refusals]

    def open(self, address: str) -> Tab:
        """Go to an address."""
        self.page.goto(address)
        return self

    def text(self) -> str:
        """Return what the page says."""
        return str(self.page.evaluate("document.body.innerText"))

    def wait_text(self, *texts: str) -> None:
        """Wait until the page says all of this."""
        try:
            wait_until(lambda: all(text in self.text() for text in texts))
        except AssertionError:
            raise AssertionError(f"the page does not say {texts}; it says:\n{self.text()}\nerrors: {self.errors}") from None

    def wait(self, script: str, what: Callable[[Any], bool] = bool) -> Any:
        """Poll a script until its value is as wanted: `wait_for_function` is forbidden by the page's CSP."""
        deadline = time.monotonic() + WAIT_S
        while not what(value := self.page.evaluate(script)):
            assert time.monotonic() < deadline, f"{script} stays {value!r}; the page says:\n{self.text()}\nerrors: {self.errors}"
            time.sleep(0.03)
        return value

    def press(self, name: str, exact: bool = False) -> None:
        """Press the first button with this name."""
        self.page.get_by_role("button", name=name, exact=exact).first.click()

    def confirm(self, name: str) -> None:
        """Press a button of the dialog that is open."""
        self.page.locator("dialog").get_by_role("button", name=name).click()

    def statuses(self) -> dict[str, str]:
        """Return the status of each unit in the table of steps."""
        script = "[...document.querySelectorAll('tr[data-unit]')].map((row) => [row.dataset.unit, row.dataset.status])"
        return dict(self.page.evaluate(script))

    def colours(self) -> int:
        """Count the colours of the canvas, in a copy: a blank one has one, and to read the page's own again slows it down."""
        script = """(() => { const c = document.querySelector('.graph canvas'); if (!c || !c.width) return 0;
          const copy = Object.assign(document.createElement('canvas'), {width: c.width, height: c.height});
          const pen = copy.getContext('2d', {willReadFrequently: true}); pen.drawImage(c, 0, 0);
          const d = pen.getImageData(0, 0, c.width, c.height).data, seen = new Set();
          for (let i = 0; i < d.length; i += 64) seen.add(d[i] << 16 | d[i + 1] << 8 | d[i + 2]); return seen.size; })()"""
        return int(self.page.evaluate(script))

    def serious(self, part: str = "html") -> list[str]:
        """Return what axe-core finds in a part of the page that is serious or worse, light, and of the colours, dark."""
        found = self._find_serious(part, {})
        self.page.emulate_media(color_scheme="dark")
        found += [f"dark: {one}" for one in self._find_serious(part, {"runOnly": ["color-contrast"]})]
        self.page.emulate_media(color_scheme="light")
        return found

    def _find_serious(self, part: str, rules: dict[str, Any]) -> list[str]:
        if os.environ.get("CLIENTS") == "0" and not AXE.exists():
            return []  # Left out, with all that comes from npm.
        assert AXE.exists(), "axe-core is not installed; `make clients` does it"
        # Evaluated from outside, as a debugger does: the page's CSP is not loosened for it.
        if not self.page.evaluate("!!window.axe"):
            self.page.evaluate(AXE.read_text())
        script = "([part, rules]) => axe.run(part, {resultTypes: ['violations'], ...rules})"
        found = self.page.evaluate(script, [part, rules])
        grave = [one for one in found["violations"] if one["impact"] in ("serious", "critical")]
        return [f"{one['id']}: {one['help']}: {[node['html'][:160] for node in one['nodes'][:3]]}" for one in grave]


class Visitor:
    """Somebody with a browser: a context that has come in through the link, which works once, or has what it gave."""

    def __init__(self, browser: Browser, server: Server, **options: Any) -> None:
        self.context: BrowserContext = browser.new_context(**options, storage_state=_GIVEN.get(server.base))
        self.server, self.tabs = server, list[Tab]()
        if server.base not in _GIVEN:
            page = self.context.new_page()
            page.goto(server.url)
            assert "token" not in page.url, "the token stays in the address"
            page.close()
            _GIVEN[server.base] = self.context.storage_state()

    def tab(self, path: str = "/") -> Tab:
        """Open a page in a new tab."""
        made = Tab(self.context.new_page())
        self.tabs.append(made)
        return made.open(self.server.base + path)

    def check(self) -> None:
        """No page has shown an error, nor broken the policy of what it may load."""
        errors = [tab.errors for tab in self.tabs if tab.errors]
        assert errors == [], f"{errors}; the server said: {[tab.refusals() for tab in self.tabs]}"
