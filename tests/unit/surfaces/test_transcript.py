"""A transcript as text: words wrapped, code kept, calls in one line, and nothing that steers a terminal."""

from __future__ import annotations

import pytest

from agent_orchestrator.agents import events
from agent_orchestrator.agents.transcript import CallEnded, CallState, Item, TextLine, Unread, WorkEnded
from agent_orchestrator.core.inputs import Usage
from agent_orchestrator.surfaces.transcript import TranscriptText, cells_of, clip_cells, say_bytes

HOSTILE = "\x1b[2J\x1b]0;title\x07a\x1b]8;;http://x\x1b\\b\x9b31m\x00\x08\u202e\u2066\x1bPq\x1b\\\ud800c"
SAFE = "ab31mqc"


def show(*items: Item, width: int = 80, wrap: bool = True) -> list[str]:
    text = TranscriptText(width, wrap=wrap)
    return ["".join(span.text for span in line) for item in items for line in text.lines(item)]


def said(text: str) -> events.Said:
    return events.Said(text=text)


def test_words_are_wrapped_below_their_bullet_and_stand_apart() -> None:
    call = CallEnded(tool="Bash", state=CallState.OK, about="ls")
    lines = show(call, said("- one two three four\n\nfive"), call, width=14)
    assert lines == ["● Bash ls · ok", "", "- one two", "  three four", "", "five", "", "● Bash ls · ok"]


def test_code_is_kept_as_it_is() -> None:
    code = "```python\nif  long_name_of_a_thing == another_long_name: pass\n```"
    table = "| a long row of a table | b |\n    indented code that is long"
    assert show(said(f"{code}\n{table}"), width=20) == [*code.split("\n"), *table.split("\n")]


def test_a_fence_that_is_never_closed_ends_with_its_message() -> None:
    assert show(said("```\na b c d e f"), said("one two three"), width=10)[-2:] == ["one two", "three"]


def test_a_word_that_is_too_long_stays_whole() -> None:
    assert show(said("see https://example.org/a/long/way now"), width=12) == ["see", "https://example.org/a/long/way", "now"]


def test_nothing_is_wrapped_in_a_pipe() -> None:
    words = "word " * 100
    assert show(said(words), wrap=False) == [words.rstrip()]


@pytest.mark.parametrize("width", [40, 80, 140])
def test_a_call_is_one_line_whatever_it_is_about(width: int) -> None:
    ended = CallEnded(tool="Bash", state=CallState.FAILED, about="echo one\n" + "two " * 90, took_s=65.2, result_bytes=2_345_678)
    (line,) = show(ended, width=width)
    assert cells_of(line) <= width
    assert line.startswith("● Bash echo one two")
    assert line.endswith("… · failed" if width == 40 else "… · 1m 05s · failed · 2.3 MB")


def test_of_a_long_path_the_end_is_shown() -> None:
    (line,) = show(CallEnded(tool="Read", state=CallState.OK, about="/home/me/" + "deep/" * 30 + "file.py"), width=40)
    assert line.startswith("● Read …")
    assert line.endswith("deep/file.py · ok")


def test_wide_characters_take_two_columns() -> None:
    assert cells_of("日本") == 4
    assert cells_of("e\u0301") == 1
    assert clip_cells("日本語", 5) == "日本…"
    assert clip_cells("日本語", 4) == "日…"


@pytest.mark.parametrize(
    "item",
    [
        TextLine(text=HOSTILE),
        said(HOSTILE),
        CallEnded(tool=HOSTILE, state=CallState.DENIED, about=HOSTILE, why=HOSTILE),
        events.Retried(why=HOSTILE),
        events.Limited(window=HOSTILE),
        events.Noted(text=HOSTILE),
        events.SessionBegan(session=HOSTILE, model=HOSTILE),
        Unread(what=HOSTILE),
        WorkEnded(ok=False, message=HOSTILE),
    ],
    ids=lambda item: type(item).__name__,
)
def test_no_escape_of_an_agent_is_left(item: Item) -> None:
    lines = show(item, width=200)
    assert any(SAFE in line for line in lines)
    assert all(line.isprintable() for line in lines), lines
    assert "".join(lines).encode()


def test_a_line_of_text_is_what_a_terminal_would_leave_of_it() -> None:
    assert show(TextLine(text="10%\r50%\rdone\r"), TextLine(text="\tcode  with\ttabs")) == ["done", "\tcode  with\ttabs"]


def test_an_end_says_what_it_took() -> None:
    usage = Usage(input_tokens=1200, output_tokens=34, cost_usd=1.5)
    assert show(WorkEnded(ok=True, usage=usage)) == ["done · 1,234 tokens · $1.50"]
    assert show(WorkEnded(ok=False, message="no key"), width=40) == ["failed: no key"]
    assert show(WorkEnded(ok=False, message="a b c d", usage=usage), width=20) == ["failed: a b c d", "  1,234 tokens · $1.50"]


@pytest.mark.parametrize(
    ("count", "told"), [(0, "0 B"), (999, "999 B"), (1000, "1.0 kB"), (4_100_000, "4.1 MB"), (5 * 10**12, "5000.0 GB")]
)
def test_a_size_is_said_as_people_say_it(count: int, told: str) -> None:
    assert say_bytes(count) == told
