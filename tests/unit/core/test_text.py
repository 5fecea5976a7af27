"""Text that agents and people wrote, cut to what is kept of it."""

from __future__ import annotations

import pytest

from agent_orchestrator.core.limits import ERROR_LINE_CHARS, TAIL_CHARS
from agent_orchestrator.core.text import clip, clip_line, last_line, stamp


@pytest.mark.parametrize(
    ("text", "most", "kept"),
    [("  as it is \n", 10, "as it is"), ("123456", 6, "123456"), ("1234567", 6, "12345…"), ("a\nb", 6, "a\nb"), ("", 6, "")],
)
def test_text_is_cut_to_a_length_and_the_cut_is_marked(text: str, most: int, kept: str) -> None:
    assert clip(text, most) == kept


def test_without_a_length_as_much_is_kept_as_of_a_programs_output() -> None:
    assert len(clip("x" * 10_000)) == TAIL_CHARS


def test_a_line_has_no_line_breaks_and_no_runs_of_blanks() -> None:
    assert clip_line(" one\n  two\tthree ", 9) == "one two …"
    assert len(clip_line("x y " * 1_000)) == ERROR_LINE_CHARS


@pytest.mark.parametrize(("output", "line"), [("one\ntwo \n\n  \n", "two"), ("", ""), ("\n \n", ""), ("é" * 400, "é" * 300)])
def test_the_last_line_is_the_last_one_with_something_in_it(output: str, line: str) -> None:
    assert last_line(output) == line


def test_times_are_spelled_in_whole_seconds() -> None:
    assert stamp(1_767_225_599_999_999) == "2025-12-31T23:59:59Z"
