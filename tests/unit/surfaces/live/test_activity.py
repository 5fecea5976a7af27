"""Launches at work as the view reads them, the money in words, and the lines that are taken back."""

from __future__ import annotations

import fcntl
import io
import json
import os
import pty
import struct
import termios
from pathlib import Path
from typing import Any

from agent_orchestrator.core.effects import AgentChoice, RunAgent, RunCheck
from agent_orchestrator.core.ids import EffectId, launch_folder
from agent_orchestrator.core.report import ReportRule
from agent_orchestrator.surfaces.cli.live.activity import BYTES_PER_LOOK, Activities, LaunchActivity
from agent_orchestrator.surfaces.cli.live.panel import Panel
from agent_orchestrator.surfaces.cli.live.picture import say_money
from agent_orchestrator.surfaces.cli.screen import Screen
from agent_orchestrator.surfaces.transcript import Span

PRICED = AgentChoice(name="claude", options={"prices": {"default": {"input": 10, "output": 100}}})
EFFECT = EffectId("run/step/i0.a1.l1.agent")
CHECK = RunCheck(id=EffectId("run/step/i0.a1.l2.check"), unit="step", command="make test")
AGENT = RunAgent(id=EFFECT, unit="step", agent=PRICED, role="coder", report=ReportRule(words={}), iteration=0, attempt=1)


def says(launch: LaunchActivity) -> str:
    launch.look()
    return "".join(span.text for span in launch.now)


def message(number: int, block: dict[str, Any]) -> str:
    usage = {"input_tokens": 100, "output_tokens": 1}
    body = {"id": f"m{number}", "model": "m", "content": [block], "usage": usage}
    return json.dumps({"type": "assistant", "session_id": "s", "message": body}) + "\n"


def test_the_newest_thing_of_a_stream_is_shown_with_what_it_costs(tmp_path: Path) -> None:
    launch, out = LaunchActivity(tmp_path, (PRICED,)), tmp_path / "out"
    assert (says(launch), launch.usage, launch.started_us) == ("", None, None)
    call = {"type": "tool_use", "id": "t", "name": "Bash", "input": {"command": "make\ttest\x1b[31m"}}
    result = {"type": "user", "session_id": "s", "message": {"content": [{"type": "tool_result", "tool_use_id": "t"}]}}
    told = [
        (message(1, {"type": "text", "text": "I look. Then I \x1b]0;x\x07mend it!\n"}), "Then I mend it!"),
        (message(2, call), "● Bash make test"),
        (json.dumps(result) + "\n", "● Bash make test · ok"),
        (json.dumps({"type": "system", "subtype": "status", "session_id": "s"}) + "\n", "● Bash make test · ok"),
        (message(3, {"type": "text", "text": "Done."}), "Done."),
    ]
    for line, shown in told:
        with out.open("a") as file:
            file.write(line)
        assert says(launch) == shown
    usage = launch.usage
    assert usage is not None
    assert usage.input_tokens == 300
    assert usage.cost_usd is not None
    assert usage.cost_usd > 0.003


def test_of_plain_text_the_last_line_with_something_in_it_is_shown(tmp_path: Path) -> None:
    launch = LaunchActivity(tmp_path, ())
    (tmp_path / "out").write_bytes(b"10 %\r50 %\r100 %\n\n   \n")
    assert says(launch) == "100 %"
    (tmp_path / "err").write_text("warning: old\n")
    assert says(launch) == "warning: old"


def test_a_look_reads_a_bounded_piece_and_the_next_one_goes_on(tmp_path: Path) -> None:
    launch = LaunchActivity(tmp_path, ())
    (tmp_path / "out").write_bytes(b"first\n".ljust(BYTES_PER_LOOK, b"\n") + b"second\n")
    assert says(launch) == "first"
    assert says(launch) == "second"


def test_launches_that_are_over_are_forgotten(tmp_path: Path) -> None:
    for effect, text in ((EFFECT, "at it\n"), (CHECK.id, "3 passed\n")):
        folder = tmp_path / launch_folder(effect)
        folder.mkdir(parents=True)
        (folder / "out").write_text(text)
    looks = Activities(tmp_path)
    first = looks.look_at([AGENT, CHECK], ())
    assert ["".join(span.text for span in one.now) for one in first.values()] == ["at it", "3 passed"]
    assert list(looks.look_at([CHECK], ())) == [CHECK.id]
    assert looks.look_at([CHECK], ())[CHECK.id] is first[CHECK.id]


def facts(limits: dict[str, Any], **spent: Any) -> dict[str, Any]:
    used = {"cost_usd": None, "tokens": None, "wall_s": 60.0, "unknown": 0, **spent}
    return {"limits": limits, "spent": used, "reserved": {"cost_usd": 0.5, "tokens": 0}, "left": {}}


def test_money_counts_agents_at_work_by_what_they_have_said() -> None:
    given = facts({"run": {"cost_usd": 5.0}}, cost_usd=1.0, tokens=1000)
    assert say_money(given, [(0.2, 500), (None, None)])[0] == "$1.20 of $5.00 spent, $0.30 set aside, $3.50 left"
    assert say_money(given, [])[0] == "$1.00 of $5.00 spent, $0.50 set aside, $3.50 left"
    assert say_money(given, [(4.6, None)])[0] == "$5.60 of $5.00 spent, $0.00 left"


def test_unknown_money_is_not_nothing() -> None:
    assert say_money(facts({}), []) == ()
    assert say_money(facts({}), [(None, 70)])[0] == "70 tokens spent"
    assert say_money(facts({}, cost_usd=2.0), [(None, 70)])[0] == "$2.00, 70 tokens spent"
    day = {**facts({"day": {"cost_usd": 20.0}}), "day": {"spent": {"cost_usd": 3.1}}}
    assert say_money(day, [])[0] == "nothing known spent · today $3.10 of $20.00"


def resize(terminal: int, columns: int) -> None:
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))


def check_shown(terminal: int, wanted: bytes) -> None:
    """Check what a terminal was told next; the kernel hands it over in as many parts as it likes."""
    shown = b""
    while len(shown) < len(wanted):
        shown += os.read(terminal, len(wanted) - len(shown))
    assert shown == wanted


def test_lines_that_a_narrower_terminal_broke_are_taken_back_whole() -> None:
    ours, theirs = pty.openpty()
    out = io.TextIOWrapper(io.FileIO(theirs, "w", closefd=False), write_through=True)
    try:
        panel = Panel(Screen({"TERM": "xterm", "NO_COLOR": "1"}, out))
        resize(theirs, 40)
        assert panel.size == (40, 24)
        panel.draw([[Span("x" * 25)], [Span("y")]])
        check_shown(ours, b"x" * 25 + b"\r\ny")
        resize(theirs, 10)
        panel.tell(["told"])
        check_shown(ours, b"\r\x1b[3A\x1b[Jtold\r\n" + b"x" * 25 + b"\r\ny")
        panel.page([[Span("a page")]])
        panel.tell(["meanwhile"])
        check_shown(ours, b"\x1b[?1049h\x1b[H\x1b[2Ka page\x1b[J")
        panel.close()
        check_shown(ours, b"\x1b[?1049l\r\x1b[3A\x1b[Jmeanwhile\r\n")
    finally:
        out.close()
        os.close(ours)
        os.close(theirs)
