"""Terminals for tests, closed at their end."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from tests.acceptance.rig import ORC, Rig
from tests.terminal.tmux import Terminal

Open = Callable[..., Terminal]


@pytest.fixture
def orc_at() -> Iterator[Open]:
    """Start `orc` at a terminal of a size: `orc_at(rig, "run", …, size=(80, 24))`."""
    opened: list[Terminal] = []

    def open_at(rig: Rig, *arguments: str, size: tuple[int, int] = (80, 24), **environ: str) -> Terminal:
        terminal = Terminal(*size)
        opened.append(terminal)
        terminal.start([*ORC, *arguments], rig.repo, rig.environment(environ))
        return terminal

    yield open_at
    for terminal in opened:
        terminal.close()
