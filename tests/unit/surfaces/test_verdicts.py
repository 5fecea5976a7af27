"""Pass and fail are coloured at a terminal, and only there."""

from __future__ import annotations

import io

import pytest

from agent_orchestrator.surfaces.cli.progress import paint_verdict
from agent_orchestrator.surfaces.cli.screen import Screen


class Terminal(io.StringIO):
    """An output that says that it is one."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("words", "painted"),
    [
        ("check passed (0.0s)", "check \x1b[32mpassed\x1b[0m (0.0s)"),
        ("check failed with exit code 1", "check \x1b[31mfailed\x1b[0m with exit code 1"),
        ("agent ended after 3s: all tests passed", "agent ended after 3s: all tests passed"),
        ("started (attempt 1)", "started (attempt 1)"),
    ],
)
def test_the_word_of_a_verdict_has_its_colour_and_what_an_agent_said_has_none(words: str, painted: str) -> None:
    assert paint_verdict(words, Screen({"TERM": "xterm"}, Terminal())) == painted
    assert paint_verdict(words, Screen({"TERM": "xterm", "NO_COLOR": "1"}, Terminal())) == words
    assert paint_verdict(words, Screen({"TERM": "xterm"}, io.StringIO())) == words
