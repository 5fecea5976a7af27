"""What the end of a program means: exit code, the engine's cause and the report must agree, or the attempt failed.

Shared by all adapters whose agent answers at REPORT_PATH. An agent's words are never taken for more than they are.
"""

from __future__ import annotations

import errno
import os
import re
import stat
from pathlib import Path

from agent_orchestrator.agents.adapter import Ending, Task, Verdict
from agent_orchestrator.agents.output import read_last_line, read_tail, readable
from agent_orchestrator.core.failure import Failure, FailureKind, invalid_report
from agent_orchestrator.core.limits import REPORT_LIMIT_BYTES, TAIL_CHARS
from agent_orchestrator.core.report import FAILED, Report, ReportRule, read_report

_NOT_STARTED = {126: "a program is not executable", 127: "a program was not found"}
"""Exit codes by which a shell says that it could not run a program: the same would happen again."""


def judge(task: Task, ending: Ending) -> Verdict:
    """The verdict on a launch whose agent reports by file."""
    if ending.cause is not None:
        return Verdict(failure=ending.cause)
    raw = read_report_file(task.report)
    last_line = ""
    if ending.exit_code != 0:
        last_line = read_last_line(ending.err) or read_last_line(ending.out)
    return verdict_of(ending.exit_code, raw, task.effect.report, where=str(task.report), last_line=last_line)


def verdict_of(
    exit_code: int | None, raw: bytes | Failure | None, rule: ReportRule, *, where: str, last_line: str = ""
) -> Verdict:
    """The same without files: `raw` is the report, None when there is none, or why it could not be read."""
    said = read_report(raw, rule) if isinstance(raw, bytes) else raw
    report = said if isinstance(said, Report) else None
    if exit_code != 0:
        return Verdict(failure=failed_exit(exit_code, last_line), report=report)
    if isinstance(said, Failure):
        return Verdict(failure=said)
    if report is None:
        if not rule.required:
            return Verdict()
        message = f"The agent exited 0 but wrote no report to {where}"
        return Verdict(failure=Failure(kind=FailureKind.REPORT_MISSING, message=message))
    failure = None
    if report.status == FAILED:
        why = report.summary or next((line for line in reversed(report.logs) if line.strip()), "")
        message = f"The agent reported {FAILED}: {why}" if why else f"The agent reported {FAILED}"
        failure = Failure(kind=FailureKind.REPORTED, message=message)
    return Verdict(failure=failure, report=report)


def failed_exit(exit_code: int | None, last_line: str) -> Failure:
    """Why a program that did not exit 0 failed."""
    if exit_code is None:
        return Failure(kind=FailureKind.LOST, message="The program was lost: it left no exit code.")
    kind = FailureKind.LAUNCH if exit_code in _NOT_STARTED else FailureKind.EXIT
    why = last_line or _NOT_STARTED.get(exit_code, "")
    message = f"Agent process exited with code {exit_code}"
    return Failure(kind=kind, message=f"{message}: {why}" if why else message)


def read_report_file(path: Path) -> bytes | Failure | None:
    """The report's bytes, None when there is none; anything but a plain file of reasonable size is refused unread."""
    try:
        # NOFOLLOW: a link would make us read somebody else's file. NONBLOCK: a FIFO would make us wait for ever.
        opened = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    except OSError as error:
        why = "it is a symbolic link" if error.errno == errno.ELOOP else (error.strerror or str(error))
        return _unreadable(path, why)
    try:
        status = os.fstat(opened)
        if not stat.S_ISREG(status.st_mode):
            return _unreadable(path, "it is not a plain file")
        if status.st_size > REPORT_LIMIT_BYTES:
            return _too_large(path, status.st_size)
        parts: list[bytes] = []
        size = 0
        while size <= REPORT_LIMIT_BYTES and (part := os.read(opened, REPORT_LIMIT_BYTES + 1 - size)):
            parts.append(part)
            size += len(part)
        return b"".join(parts) if size <= REPORT_LIMIT_BYTES else _too_large(path, size)
    except OSError as error:
        return _unreadable(path, error.strerror or str(error))
    finally:
        os.close(opened)


def tail_of(ending: Ending, said: str | None = None, chatter: re.Pattern[str] | None = None) -> str:
    """The end of what it wrote, both streams, as text, at most TAIL_CHARS: the error output, without its chatter, comes last.

    `said` stands for the output where that is a stream of events, also when nothing was said.
    """
    err = readable(read_tail(ending.err, TAIL_CHARS // 2, chatter))
    room = TAIL_CHARS - len(err) - 1 if err else TAIL_CHARS
    out = readable(said)[-room:] if said is not None else readable(read_tail(ending.out, room))
    if not out or not err:
        return out or err
    return out + err if out.endswith("\n") else f"{out}\n{err}"


def _unreadable(path: Path, why: str) -> Failure:
    return invalid_report(f"The report {path} cannot be read: {why}")


def _too_large(path: Path, size: int) -> Failure:
    message = f"The report {path} has {size:,} bytes; at most {REPORT_LIMIT_BYTES:,} are read"
    return invalid_report(message)
