"""The verdict on an end: exit code, cause and report must agree."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from agent_orchestrator.agents.adapter import AgentTask, Verdict
from agent_orchestrator.agents.output import read_last_line, read_tail, read_tails
from agent_orchestrator.agents.verdict import judge, read_report_file
from agent_orchestrator.core.effects import AgentChoice
from agent_orchestrator.core.failure import Failure, FailureKind
from agent_orchestrator.core.limits import ERROR_LINE_CHARS, REPORT_LIMIT_BYTES, TAIL_CHARS
from agent_orchestrator.testing.agents import make_ending, make_task


def make(folder: Path, *, required: bool = False) -> AgentTask:
    return make_task(folder, AgentChoice(name="command", options={"argv": ["true"]}), required=required)


def failure_of(verdict: Verdict) -> tuple[FailureKind, str]:
    assert verdict.failure is not None
    return verdict.failure.kind, verdict.failure.message


def test_exit_0_and_a_completed_report_are_success(tmp_path: Path) -> None:
    task = make(tmp_path, required=True)
    task.report.write_text('{"status": "completed", "summary": "fine", "learnings": [1]}')
    verdict = judge(task, make_ending(task))
    assert verdict.failure is None
    assert verdict.report is not None
    assert (verdict.report.status, verdict.report.summary) == ("COMPLETED", "fine")
    assert (len(verdict.report.warnings), verdict.warnings) == (1, ()), "each warning is said once, by whoever found it"


def test_exit_0_without_a_report_is_success_only_where_no_words_are_needed(tmp_path: Path) -> None:
    task = make(tmp_path)
    assert judge(task, make_ending(task)) == Verdict()
    task = make(tmp_path, required=True)
    kind, message = failure_of(judge(task, make_ending(task)))
    assert kind is FailureKind.REPORT_MISSING
    assert message == f"The agent exited 0 but wrote no report to {task.report}"


def test_another_exit_code_is_a_failure_that_quotes_the_last_line(tmp_path: Path) -> None:
    task = make(tmp_path)
    (task.launch_dir / "out").write_text("last of out\n")
    (task.launch_dir / "err").write_text("first\n\x1b[31mError:\x1b[0m no\x07 luck  \n\n \n")
    assert failure_of(judge(task, make_ending(task, 3))) == (FailureKind.EXIT, "Agent process exited with code 3: Error: no luck")
    (task.launch_dir / "err").write_text("")
    assert failure_of(judge(task, make_ending(task, 3)))[1] == "Agent process exited with code 3: last of out"
    (task.launch_dir / "out").unlink()
    assert failure_of(judge(task, make_ending(task, 3)))[1] == "Agent process exited with code 3"


def test_a_completed_report_does_not_excuse_the_exit_code(tmp_path: Path) -> None:
    task = make(tmp_path)
    task.report.write_text('{"status": "COMPLETED"}')
    verdict = judge(task, make_ending(task, 1))
    assert failure_of(verdict)[0] is FailureKind.EXIT
    assert verdict.report is not None


@pytest.mark.parametrize(("code", "says"), [(126, "not executable"), (127, "not found")])
def test_a_program_that_could_not_be_run_is_not_tried_again(tmp_path: Path, code: int, says: str) -> None:
    verdict = judge(make(tmp_path), make_ending(make(tmp_path), code))
    kind, message = failure_of(verdict)
    assert kind is FailureKind.LAUNCH
    assert says in message


@pytest.mark.parametrize(
    ("report", "says"),
    [
        ('{"status": "FAILED", "summary": "tests red", "logs": ["x"]}', "The agent reported FAILED: tests red"),
        ('{"status": "FAILED", "logs": ["a", "b", " "]}', "The agent reported FAILED: b"),
        ('{"status": "failed"}', "The agent reported FAILED"),
    ],
)
def test_a_reported_failure_says_what_the_agent_said(tmp_path: Path, report: str, says: str) -> None:
    task = make(tmp_path)
    task.report.write_text(report)
    assert failure_of(judge(task, make_ending(task))) == (FailureKind.REPORTED, says)


def test_the_engines_own_cause_stands_whatever_the_agent_wrote(tmp_path: Path) -> None:
    task = make(tmp_path)
    task.report.write_text('{"status": "COMPLETED"}')
    cause = Failure(kind=FailureKind.TIMEOUT, message="too long")
    assert judge(task, make_ending(task, 0, cause)) == Verdict(failure=cause)


def test_a_report_larger_than_the_limit_is_refused_unread(tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    with report.open("wb") as file:
        file.truncate(200 * 2**20)
    refused = read_report_file(report)
    assert isinstance(refused, Failure)
    assert refused.message == f"The report {report} has 209,715,200 bytes; at most {REPORT_LIMIT_BYTES:,} are read"


def test_a_link_a_pipe_and_a_folder_are_not_reports(tmp_path: Path) -> None:
    (tmp_path / "real").write_text('{"status": "COMPLETED"}')
    (tmp_path / "link").symlink_to(tmp_path / "real")
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    says = {"link": "it leads through a link", "pipe": "it is not a regular file", "folder": "it is not a regular file"}
    for name, why in says.items():
        refused = read_report_file(tmp_path / name)
        assert isinstance(refused, Failure), name
        assert why in refused.message
    assert read_report_file(tmp_path / "none") is None


def test_the_tail_of_a_gigantic_file_is_read_without_reading_the_file(tmp_path: Path) -> None:
    big = tmp_path / "out"
    with big.open("wb") as file:
        file.truncate(2**40)
        file.seek(2**40)
        file.write("é".encode() * TAIL_CHARS + b"end")
    assert read_tail(big) == "é" * (TAIL_CHARS - 3) + "end"
    assert read_last_line(big).startswith("é")


def test_a_tail_survives_bytes_that_are_no_text_and_files_that_are_none(tmp_path: Path) -> None:
    (tmp_path / "out").write_bytes(b"\xff\xfeok")
    assert read_tail(tmp_path / "out") == "\ufffd\ufffdok"
    assert read_tail(tmp_path / "missing") == ""


def test_a_tail_of_anything_but_a_plain_file_is_refused_and_said(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OSError, match="not a regular file"):
        read_tail(tmp_path / "pipe")
    (tmp_path / "link").symlink_to(tmp_path / "pipe")
    with pytest.raises(OSError, match="through a link"):
        read_tail(tmp_path / "link")


def test_the_last_line_is_what_a_person_would_read(tmp_path: Path) -> None:
    file = tmp_path / "err"
    file.write_text("50%\r100%\r\n\x1b]0;title\x07\x1b[2K\n")
    assert read_last_line(file) == "100%"
    file.write_text("x" * 1000)
    assert read_last_line(file) == "x" * (ERROR_LINE_CHARS - 1) + "…"


def test_both_streams_share_the_tail(tmp_path: Path) -> None:
    task = make(tmp_path)
    ending = make_ending(task)
    assert read_tails(ending) == ""
    ending.out.write_text("said")
    assert read_tails(ending) == "said"
    ending.err.write_text("wrong\n")
    assert read_tails(ending) == "said\nwrong\n"
    ending.out.write_text("o" * 10_000)
    ending.err.write_text("e" * 10_000)
    tail = read_tails(ending)
    assert len(tail) <= TAIL_CHARS
    assert tail.endswith("e" * (TAIL_CHARS // 2))
    assert tail.startswith("ooo")


def test_the_tail_is_text_as_a_terminal_would_leave_it(tmp_path: Path) -> None:
    ending = make_ending(make(tmp_path))
    ending.out.write_bytes(b"10 %\r50 %\r\x1b[32mall\x1b[0m done\r\nbye\x07\n")
    assert read_tails(ending) == "all done\nbye\n"
    ending.err.write_text("\x1b[31mwrong\x1b[0m\n")
    assert read_tails(ending, "its last words") == "its last words\nwrong\n", "events are for programs"
