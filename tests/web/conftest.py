"""A real browser, and who comes with it."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Browser, sync_playwright

from tests.web.rig import CHROMIUM, Visitor, launch
from tests.web.server import Server


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    # Of a module and not of the session: while Playwright's loop runs in this thread no other test could run its own.
    assert CHROMIUM is not None, "chromium was not found; `make system-packages` installs it"
    with sync_playwright() as playwright:
        made = launch(playwright)
        yield made
        made.close()


@pytest.fixture
def visit(browser: Browser) -> Iterator[Callable[..., Visitor]]:
    """Return how a visitor comes; all have left, without an error on any page, when the test ends."""
    came: list[Visitor] = []

    def come(server: Server, **options: object) -> Visitor:
        came.append(Visitor(browser, server, **{"viewport": {"width": 1280, "height": 900}, **options}))
        return came[-1]

    yield come
    for visitor in came:
        visitor.check()
        visitor.context.close()
