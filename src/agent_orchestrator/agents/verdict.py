"""The judgement of an ended program: exit code, the engine's cause and the report must agree, or the attempt failed.

Shared by all adapters whose agent answers at REPORT_PATH. An agent's words are never taken for more than they are.
"""

from __future__ import annotations

from pathlib import Path

from agent_orchestrator.agents.adapter import AgentTask, Ending, Verdict
from agent_orchestrator.agents.output import read_last_line
from agent_orchestrator.bounded import TooLarge, read_bounded, store_of
from agent_orchestrator.core.failure import Failure, FailureKind, invalid_report
from agent_orchestrator.core.limits import REPORT_LIMIT_BYTES
from agent_orchestrator.core.report import FAILED, Report, ReportRule, read_report
from agent_orchestrator.errors import is_shortage

_NOT_STARTED = {126: "a program is not executable", 127: "a program was not found"}
"""Exit codes by which a shell says that it could not run a program: the same would happen again."""


def judge(task: AgentTask, ending: Ending) -> Verdict:
    """Judge a launch whose agent reports by file."""
    if ending.cause is not None:
        return Verdict(failure=ending.cause)
    raw = read_report_file(task.report)
    last_line = ""
    if ending.exit_code != 0:
        last_line = read_last_line(ending.err) or read_last_line(ending.out)
    return judge_report(ending.exit_code, raw, task.effect.report, where=str(task.report), last_line=last_line)


def judge_report(
    exit_code: int | None, raw: bytes | Failure | None, rule: ReportRule, *, where: str, last_line: str = ""
) -> Verdict:
    """Judge without files: `raw` is the report, None when there is none, or the failure to read it."""
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
    """Return the failure of a program that did not exit 0."""
    if exit_code is None:
        return Failure(kind=FailureKind.LOST, message="The program was lost: it left no exit code.")
    kind = FailureKind.LAUNCH if exit_code in _NOT_STARTED else FailureKind.EXIT
    why = last_line or _NOT_STARTED.get(exit_code, "")
    message = f"Agent process exited with code {exit_code}"
    return Failure(kind=kind, message=f"{message}: {why}" if why else message)


def read_report_file(path: Path) -> bytes | Failure | None:
    """Read the report, None when there is none; anything but a plain file of reasonable size is refused unread."""
    try:
        return read_bounded(path, REPORT_LIMIT_BYTES, root=store_of(path.parent))
    except FileNotFoundError:
        return None
    except TooLarge as error:
        return invalid_report(f"The report {path} has {error.size:,} bytes; at most {REPORT_LIMIT_BYTES:,} are read")
    except OSError as error:
        if is_shortage(error):
            raise  # It is read again when the machine has what that takes.
        return invalid_report(f"The report {path} cannot be read: {error.strerror or error}")
