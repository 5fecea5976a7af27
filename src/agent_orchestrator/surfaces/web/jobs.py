"""Jobs: what takes its time, done by `orc` itself as a program of its own.

So a merge that a page asked for is the merge of `orc merge`: it goes on when the server is killed, and what is cut short is
finished or undone as after any kill. The page's id names the job; asked for twice, it is done once.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, BinaryIO, Literal

import msgspec

from agent_orchestrator import typed
from agent_orchestrator.beneath import open_own
from agent_orchestrator.bounded import read_bounded
from agent_orchestrator.engine.files import write_whole
from agent_orchestrator.engine.process.ends import is_alive
from agent_orchestrator.errors import Unavailable
from agent_orchestrator.surfaces.web.repositories import Repository

RESULT_BYTES_MAX = 4 * 1024 * 1024
SHOWN_CHARS = 2_000


class Job(msgspec.Struct, kw_only=True):
    """One job, as it is kept on disk when it begins."""

    id: str
    run: str
    directive: str
    pid: int = 0
    status: Literal["running", "done", "failed"] = "running"
    message: str = ""
    result: Any = None


class Jobs:
    """The jobs of all repositories."""

    def __init__(self, publish: Callable[[str, dict[str, Any]], None]) -> None:
        self._publish = publish
        self._jobs: dict[str, Job] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    def find(self, repository: Repository, job_id: str) -> Job | None:
        """Return a job, also one that an earlier server began."""
        job = self._jobs.get(job_id)
        if job is not None:
            return job
        folder = _folder(repository)
        try:
            job = typed.decode(read_bounded(folder / f"{job_id}.json", RESULT_BYTES_MAX, root=folder.parent), Job)
        except (OSError, msgspec.DecodeError):
            return None
        if job.status == "running" and not is_alive(job.pid):
            _settle(job, folder)
        return job

    async def start(self, repository: Repository, run: str, directive: str, job_id: str, arguments: Sequence[str]) -> Job:
        """Start `orc` with these arguments; the job that there is already, where it was asked for before."""
        if (known := self.find(repository, job_id)) is not None:
            return known
        job = self._jobs[job_id] = Job(id=job_id, run=run, directive=directive)
        try:
            child = await _start(repository, job, arguments)
        except OSError as error:
            del self._jobs[job_id]
            raise Unavailable(detail=f"orc {directive} cannot be started: {error.strerror}; nothing was done.") from error
        task = asyncio.create_task(self._finish(repository, job, child))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return job

    async def _finish(self, repository: Repository, job: Job, child: asyncio.subprocess.Process) -> None:
        code = await child.wait()
        folder = _folder(repository)
        _settle(job, folder, code)
        with contextlib.suppress(OSError):  # What it did stands in the journal.
            _keep(job, folder)
        self._jobs.pop(job.id, None)
        self._publish("job", {"key": repository.key(job.run), **describe_job(job)})


async def _start(repository: Repository, job: Job, arguments: Sequence[str]) -> asyncio.subprocess.Process:
    folder = _folder(repository)
    argv = [sys.executable, "-m", "agent_orchestrator.cli", *arguments]
    _keep(job, folder)
    with _open_output(folder / f"{job.id}.out") as out, _open_output(folder / f"{job.id}.err") as err:
        child = await asyncio.create_subprocess_exec(
            *argv,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=out,
            stderr=err,
            env=dict(repository.settings.environ),
            start_new_session=True,
        )
    job.pid = child.pid
    with contextlib.suppress(OSError):  # It runs; on a full disk a later server does not know its process.
        _keep(job, folder)
    return child


def describe_job(job: Job) -> dict[str, Any]:
    """Return a job as plain data."""
    return {"id": job.id, "directive": job.directive, "status": job.status, "message": job.message, "result": job.result}


def _folder(repository: Repository) -> Path:
    return repository.settings.folder / "web"


def _keep(job: Job, folder: Path) -> None:
    write_whole(folder.parent, folder / f"{job.id}.json", msgspec.json.encode(job))


def _open_output(file: Path) -> BinaryIO:
    return os.fdopen(open_own(file.parents[1], file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), "wb")


def _settle(job: Job, folder: Path, code: int | None = None) -> None:
    """Read how a job ended from what it printed."""
    job.result = _read_result(folder / f"{job.id}.out")
    error = job.result.get("error") if isinstance(job.result, dict) else None
    if isinstance(error, dict):
        job.status, job.message = "failed", str(error.get("message", ""))
    elif job.result is None:
        job.status = "failed"
        job.message = _read_words(folder / f"{job.id}.err") or f"orc {job.directive} ended without a result; try it again."
    else:
        job.status = "done" if code in (None, 0) else "failed"
        job.message = say_result(job.directive, job.result)


def _read_result(path: Path) -> Any:
    try:
        return msgspec.json.decode(read_bounded(path, RESULT_BYTES_MAX, root=path.parents[1]))
    except (OSError, msgspec.DecodeError):
        return None


def _read_words(path: Path) -> str:
    try:
        return read_bounded(path, RESULT_BYTES_MAX, root=path.parents[1]).decode("utf-8", "replace").strip()[-SHOWN_CHARS:]
    except OSError:
        return ""


def say_result(directive: str, result: Any) -> str:
    """Say what came of a job, in a sentence or two."""
    if directive == "merge":
        return "; ".join(_say_merged(one) for one in result.get("works", ())) or "there was nothing to merge"
    if directive == "discard":
        return "; ".join(f"discarded {name}, kept as {ref}" for name, ref in result.get("kept", {}).items())
    if directive == "fork":
        return f"run {result.get('run_id')} is run {result.get('forked_from')} as it was at {result.get('point')}"
    if directive == "rewind":
        return f"run {result.get('run_id')} is back at {result.get('point')}, row {result.get('row')} of its journal"
    return f"run {result.get('run_id')} continues in process {result.get('pid')}"


def _say_merged(one: dict[str, Any]) -> str:
    name = f"{one['unit']}: " if one.get("unit") else ""
    if one.get("verdict") == "landed":
        return f"merged {name}{one.get('branch')} into {one.get('into')}"
    detail = f": {one['detail']}" if one.get("detail") else ""
    return f"not merged {name}{one.get('verdict')}{detail}"
