"""The live view of each mode in a real terminal, and what becomes of it when the terminal changes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.acceptance.rig import ORC, Rig, wait_until
from tests.terminal.conftest import Open
from tests.terminal.pictures import SIZES, environment, picture_of, show
from tests.terminal.stages import STAGES, Stage, Theatre
from tests.terminal.svg import draw, split_styles
from tests.terminal.tmux import Terminal

PARALLEL = "name: wide\nsteps:\n" + "".join(
    f"  - {{id: part-{number:02}, agent: coder, prompt: prompt.md}}\n" for number in range(12)
)


@pytest.fixture
def staged(tmp_path: Path) -> Iterator[tuple[Theatre, list[Terminal]]]:
    opened: list[Terminal] = []
    theatre = Theatre(tmp_path)
    yield theatre, opened
    theatre.go()
    for terminal in opened:
        terminal.close()


def open_stage(theatre: Theatre, opened: list[Terminal], stage: Stage, size: tuple[int, int]) -> Terminal:
    terminal = Terminal(*size)
    opened.append(terminal)
    terminal.start([*ORC, *stage.arguments], theatre.repo, environment(theatre.side))
    return terminal


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("mode", STAGES)
def test_a_mode_shows_what_its_units_do_and_leaves_nothing_behind(
    staged: tuple[Theatre, list[Terminal]], mode: str, size: tuple[int, int]
) -> None:
    theatre, opened = staged
    stage = STAGES[mode](theatre)
    terminal = open_stage(theatre, opened, stage, size)
    wait_until(lambda: all(text in terminal.screen() for text in stage.seen))
    shown = terminal.screen().splitlines()
    units = [line for line in shown if "  working  " in line]
    assert units, shown
    assert all(len(line) <= size[0] for line in shown)
    assert any("tok" in line and "$0." in line for line in units), "tokens and cost as they are now"
    assert any("spent" in line for line in shown)
    terminal.press("C-c")
    terminal.wait_for("Draining")
    terminal.press("C-c")
    terminal.wait_for_end(130)
    left = terminal.all()
    assert not [line for line in left.splitlines() if "  working  " in line], left
    assert "orc resume" in left or "orc loop resume" in left


def test_another_process_sees_the_same(orc_at: Open, staged: tuple[Theatre, list[Terminal]]) -> None:
    theatre, opened = staged
    stage = STAGES["team"](theatre)
    driven = open_stage(theatre, opened, stage, (80, 24))
    wait_until(lambda: all(text in driven.screen() for text in stage.seen))
    watched = open_stage(theatre, opened, Stage(("team", "watch"), stage.seen), (140, 40))
    wait_until(lambda: all(text in watched.screen() for text in stage.seen))
    watched.press("C-c")
    watched.wait_for_end(130)
    assert "Half a cent" in driven.screen()


def test_a_resized_terminal_shows_the_view_once(orc_at: Open, repo: Path) -> None:
    rig = Rig(repo)
    rig.workflow(PARALLEL)
    rig.play({f"part-{number:02}": {"until": "go"} for number in range(12)})
    wrapper = str(rig.side / "wrapper.py")
    terminal = orc_at(rig, "run", "--workflow", "workflow.yaml", "--wrapper", wrapper, "--max-parallel", "12")
    terminal.wait_for("part-11  working")
    for columns, rows in ((50, 20), (20, 5), (100, 30), (140, 40)):
        terminal.resize(columns, rows)
        wait_until(lambda: "working" in terminal.screen())
        wait_until(lambda: terminal.screen().count("0/12") == 1)
        assert all(len(line) <= columns for line in terminal.screen().splitlines())
    wait_until(lambda: terminal.screen().count("  working  ") == 12)
    rig.open("go")
    terminal.wait_for_end(0)


def test_without_colour_there_is_none_and_on_a_dumb_terminal_there_are_lines(orc_at: Open, repo: Path) -> None:
    rig = Rig(repo)
    rig.play({"coding": {"until": "go"}})
    arguments = ("run", "--workflow", "workflow.yaml", "--wrapper", str(rig.side / "wrapper.py"), "--run-id")
    bare = orc_at(rig, *arguments, "bare", NO_COLOR="1")
    bare.wait_for("coding  working")
    assert "\x1b[" not in bare.screen(colours=True)
    rig.open("go")
    bare.wait_for_end(0)
    dumb = Terminal()
    try:
        dumb.start(["env", "TERM=dumb", *ORC, *arguments, "dumb"], rig.repo, rig.environment())
        dumb.wait_for_end(0)
        assert "coding    started (attempt 1)" in dumb.screen()
        assert "coding  working" not in dumb.all()
    finally:
        dumb.close()


def test_what_an_agent_writes_does_not_steer_the_terminal(orc_at: Open, repo: Path) -> None:
    rig = Rig(repo)
    agent = rig.side / "evil.sh"
    evil = r"printf 'red \033[31malert\033]0;owned\007\033[2J\033[?1049h\r\302\23331m and more\n'"
    agent.write_text(f"#!/bin/sh\ncat >/dev/null\n{evil}\nwhile [ ! -e {rig.side}/go ]; do sleep 0.02; done\n")
    agent.chmod(0o755)
    rig.workflow("{name: one, steps: [{id: only, agent: coder, prompt: prompt.md}]}")
    terminal = orc_at(rig, "run", "--workflow", "workflow.yaml", "--agent-command", str(agent))
    shown = terminal.wait_for("and more")
    assert "started (attempt 1)" in shown, "the screen was not cleared"
    assert "owned" not in terminal.title()
    assert "\x1b[31m" not in terminal.screen(colours=True)
    rig.open("go")
    terminal.wait_for_end(0)


def test_every_mode_has_its_pictures_and_they_show_the_view() -> None:
    for mode in STAGES:
        for columns, _ in SIZES:
            picture = picture_of(mode, columns).read_text()
            assert picture.startswith("<svg "), (mode, columns)
            assert "working" in picture
            assert "http" not in picture.replace("http://www.w3.org/2000/svg", ""), "nothing is fetched from elsewhere"


def test_a_picture_has_the_colours_and_the_places_of_the_terminal() -> None:
    captured = "plain \x1b[1mbold\x1b[0m \x1b[2m\x1b[39mdim & <b>\x1b[0m\n\x1b[33myellow\nstill\x1b[0m  x"
    first, second, third = split_styles(captured)
    assert [text for text, _ in first] == ["plain ", "bold", " ", "dim & <b>"]
    assert (first[1][1].bold, first[3][1].dim, second[0][1], third[0][1]) == (True, True, third[0][1], second[0][1])
    drawn = draw(captured, 20, 2, "a title")
    assert ">dim &amp; &lt;b&gt;</text>" in drawn
    assert 'x="14" y="44"' in drawn


def test_a_stage_can_be_waited_for(staged: tuple[Theatre, list[Terminal]]) -> None:
    theatre, opened = staged
    stage = STAGES["loop"](theatre)
    captured = show(open_stage(theatre, opened, stage, (80, 24)), stage)
    assert "iteration 3" in captured
