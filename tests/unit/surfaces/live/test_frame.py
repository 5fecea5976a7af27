"""The picture of a run as lines: golden files at 20, 80 and 140 columns, and rules that hold at every size."""

from __future__ import annotations

import io
import os
from itertools import product
from pathlib import Path

import pytest

from agent_orchestrator.surfaces.cli.live.frame import Asked, Frame, UnitRow, render
from agent_orchestrator.surfaces.cli.screen import Screen
from agent_orchestrator.surfaces.transcript import Line, Span, cells_of

FRAMES = Path(__file__).parents[1] / "frames"

ROWS = (
    UnitRow(
        "implementation_of_the_parser_and_all_its_tests",
        "working",
        "blue",
        "backend_engineer",
        (Span("●", "blue"), Span(" Bash", "bold"), Span(" pytest -q tests/unit/parser --maxfail=1 && make lint")),
        127.2,
        31_201,
        0.2134,
    ),
    UnitRow("docs", "checking", "cyan", "", (Span("make docs · ", "dim"), Span("Building documentation…")), 8.04),
    UnitRow("review", "working", "blue", "reviewer", (Span("Ich prüfe die 日本語 zuerst."),), 12.0, 812, None),
    UnitRow("deploy", "parked", "yellow", "", (Span("until 14:05 (claude, 5-hour window)", "dim"),)),
)
MONEY = (
    "$1.20 of $5.00 spent, $0.30 set aside, $3.50 left · today $3.10 of $20.00",
    "$1.20 of $5.00 spent, $0.30 set aside, $3.50 left",
    "$1.20 of $5.00 spent, $3.50 left",
    "$1.20 of $5.00 spent",
)
RUNNING = Frame("run", "f8c10a2b", "release", "step", 2, 9, 1, "running", "blue", 192.0, (), MONEY, None, ROWS, 6, 2)
QUESTION = Asked(
    "approval",
    "Approve step approval? The parser reads all four spellings now, and the tests of the three older ones are kept.",
    (Span("coding: check `make test` passed (exit code 0, 4.1s)", "green"), Span("3 files changed, +40 -2")),
    ("[d] diff", "[y] approve", "[n] reject", "[l] leave"),
)
WAITING = RUNNING._replace(status="waiting", tone="yellow", failed=0, asked=QUESTION, rows=(), busy=0, to_come=0)
SIZES = (20, 5), (20, 24), (80, 5), (80, 24), (140, 40)


def paint(lines: list[Line], environ: dict[str, str]) -> str:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    screen = Screen({"TERM": "xterm-256color", **environ}, Terminal())
    return "".join(f"{screen.paint_line(line)}\n" for line in lines)


@pytest.mark.parametrize("name", ["running", "waiting", "typing"])
def test_frames_are_as_the_golden_files_show_them(name: str) -> None:
    frame = {"running": RUNNING, "waiting": WAITING}.get(name)
    frame = frame or WAITING._replace(asked=QUESTION._replace(ways=(), entry="comments (Enter sends): not yet, the docs"))
    shown = []
    for width, height in SIZES:
        shown.append(f"=== {width} columns, {height} rows\n{paint(render(frame, width, height), {'NO_COLOR': '1'})}")
    golden = FRAMES / f"{name}.txt"
    if os.environ.get("ORC_REWRITE"):
        golden.write_text("".join(shown))
    assert "".join(shown) == golden.read_text()


def test_colours_are_around_the_words_and_change_none_of_them() -> None:
    painted = paint(render(WAITING, 80, 24), {})
    assert "\x1b[33m? approval: Approve step approval?" in painted
    assert "\x1b[32m  coding: check `make test` passed (exit code 0, 4.1s)\x1b[0m" in painted
    bare = paint(render(WAITING, 80, 24), {"NO_COLOR": "1"})
    assert "\x1b" not in bare
    assert bare.splitlines() == ["".join(span.text for span in line) for line in render(WAITING, 80, 24)]


@pytest.mark.parametrize("frame", [RUNNING, WAITING, WAITING._replace(asked=QUESTION._replace(entry="x" * 300))])
def test_no_line_is_wider_and_no_picture_higher_than_the_terminal(frame: Frame) -> None:
    for width, height in product(range(1, 150), (1, 2, 3, 5, 8, 24)):
        lines = render(frame, width, height)
        assert 1 <= len(lines) <= height
        assert max(sum(cells_of(span.text) for span in line) for line in lines) <= width, (width, height)


def test_the_status_of_a_unit_is_whole_where_its_name_is_not() -> None:
    for width in range(18, 150):
        lines = ["".join(span.text for span in line) for line in render(RUNNING, width, 24)]
        for row in ROWS:
            assert any(f"  {row.status}" in line for line in lines), (width, row.status)


def test_hundreds_of_units_are_counted_and_the_first_are_shown() -> None:
    rows = tuple(UnitRow(f"bead-{number}", "working", "blue", took_s=1.0) for number in range(30))
    frame = RUNNING._replace(rows=rows, busy=400, to_come=5_000, total=5_500)
    lines = ["".join(span.text for span in line) for line in render(frame, 80, 10)]
    assert len(lines) == 10
    assert lines[2].split()[:2] == ["bead-0", "working"]
    assert lines[-1] == "  and 393 more at work, 5000 to come"


def test_the_keys_stay_where_the_evidence_has_no_room() -> None:
    lines = ["".join(span.text for span in line) for line in render(WAITING, 80, 4)]
    assert [line.split()[0] for line in lines] == ["?", "the", "[d]", "run"]
