"""Transcripts printed from launches' files: while they grow, when they are written anew, at a terminal and in a pipe."""

from __future__ import annotations

import io
import json
import os
from pathlib import Path

import pytest

from agent_orchestrator.core.ids import EffectId, launch_folder
from agent_orchestrator.core.limits import LINE_LIMIT_BYTES
from agent_orchestrator.surfaces.cli.screen import Screen
from agent_orchestrator.surfaces.cli.streams import StreamPrinter
from agent_orchestrator.surfaces.cli.transcripts import GrowingLines, TranscriptPrinter

EFFECT = EffectId("run/step/i0.a1.l1.agent")
CODEX = [
    {"type": "thread.started", "thread_id": "t"},
    {"type": "item.started", "item": {"id": "1", "type": "command_execution", "command": "make"}},
    {"type": "turn.completed", "usage": {"input_tokens": 5, "output_tokens": 1}},
]
BLOCKED = "2026-01-01T00:00:00Z ERROR codex_core::tools::router: error=no: rejected by user approval settings\n"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def launch(tmp_path: Path) -> Path:
    folder = tmp_path / launch_folder(EFFECT)
    folder.mkdir(parents=True)
    return folder


def printer_of(root: Path, out: io.StringIO, *, live: bool = False, err: bool = False) -> TranscriptPrinter:
    return TranscriptPrinter(root, Screen({}, out), stream="err" if err else "out", live=live)


def test_lines_come_once_and_whole_and_the_last_one_when_it_is_asked_for(tmp_path: Path) -> None:
    file = tmp_path / "out"
    lines = GrowingLines(file)
    assert list(lines.read()) == []
    file.write_bytes(b"one\ntw")
    assert list(lines.read()) == [b"one"]
    with file.open("ab") as more:
        more.write(b"o\n\nthree")
    assert list(lines.read()) == [b"two", b""]
    assert (list(lines.end()), list(lines.end())) == ([b"three"], [])


def test_a_line_that_is_too_long_is_left_out(tmp_path: Path) -> None:
    file = tmp_path / "out"
    file.write_bytes(b"x" * (LINE_LIMIT_BYTES + 1) + b"\nnext\n" + b"y" * (LINE_LIMIT_BYTES + 1))
    lines = GrowingLines(file)
    assert list(lines.read()) == [None, b"next"]
    assert list(lines.end()) == [None]


def test_a_file_that_is_written_anew_without_its_secrets_is_not_printed_twice(tmp_path: Path) -> None:
    file, anew = tmp_path / "out", tmp_path / "anew"
    file.write_bytes(b"key sk-0123456789\ntwo\nthr")
    lines = GrowingLines(file)
    assert len(list(lines.read())) == 2
    anew.write_bytes(b"key [redacted]\ntwo\nthree\n")
    anew.replace(file)
    assert list(lines.read()) == [b"three"]


def test_a_pipe_in_its_place_is_no_trap(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "out")
    (tmp_path / "link").symlink_to("/etc/passwd")
    assert list(GrowingLines(tmp_path / "out").read()) == []
    assert list(GrowingLines(tmp_path / "link").read()) == []


def test_a_running_call_is_drawn_at_a_terminal_and_replaced_by_its_end(launch: Path, tmp_path: Path) -> None:
    out = Terminal()
    printer = printer_of(tmp_path, out, live=True)
    (launch / "out").write_text("".join(json.dumps(one) + "\n" for one in CODEX[:2]))
    printer.print_new(EFFECT)
    printer.draw()
    printer.draw()
    assert out.getvalue().count("make") == 1
    assert "\x1b[2m · running\x1b[0m" in out.getvalue()
    printer.print_new(EFFECT, ended=True)
    assert out.getvalue().split("\r\x1b[K")[1].startswith("\x1b[33m●")


def test_the_error_output_has_its_say_before_the_end_is_told(launch: Path, tmp_path: Path) -> None:
    out = io.StringIO()
    (launch / "out").write_text("".join(json.dumps(one) + "\n" for one in (CODEX[0], CODEX[2])))
    (launch / "err").write_text(BLOCKED)
    printer_of(tmp_path, out).print_new(EFFECT, ended=True)
    told = ["● apply_patch · denied", "  no: rejected by user approval settings", "done · 6 tokens in this session"]
    assert out.getvalue().splitlines() == ["session t", *told]


def test_what_is_not_ended_says_what_is_open_when_the_reading_stops(launch: Path, tmp_path: Path) -> None:
    out = io.StringIO()
    (launch / "out").write_text("".join(json.dumps(one) + "\n" for one in CODEX[:2]) + '{"type": "turn.comp')
    printer = printer_of(tmp_path, out)
    printer.print_new(EFFECT)
    assert "turn.comp" not in out.getvalue()
    printer.close()
    assert out.getvalue().splitlines()[1:] == ['? {"type": "turn.comp', "● exec_command make · unfinished"]


def test_error_output_is_text_whatever_it_looks_like(launch: Path, tmp_path: Path) -> None:
    out = io.StringIO()
    (launch / "err").write_text(json.dumps(CODEX[0]) + "\n\x1b[31mred\n")
    printer_of(tmp_path, out, err=True).print_new(EFFECT, ended=True)
    assert out.getvalue() == json.dumps(CODEX[0]) + "\nred\n"


def test_a_raw_stream_is_exact_in_a_pipe_and_shows_its_escapes_at_a_terminal(launch: Path, tmp_path: Path) -> None:
    raw = b"a\x1b[2J\r\n\xff\xc2\x9b\xe2\x80\xae\ttab\n"
    (launch / "out").write_bytes(raw)
    piped, terminal = io.BytesIO(), Terminal()
    pipe = io.TextIOWrapper(piped)
    StreamPrinter(tmp_path, "out", headed=False, out=pipe).print_new(EFFECT)
    assert piped.getvalue() == raw
    pipe.close()
    StreamPrinter(tmp_path, "out", headed=False, out=terminal).print_new(EFFECT)
    assert terminal.getvalue() == "a^[[2J^M\n\ufffd<U+009B><U+202E>\ttab\n"
