"""Calls that change something, each counted once: a client that repeats one, after its server was killed, changes nothing more.

The id of a call becomes the id of what it does: of the directive in the run's inbox, or of the run that it starts. Only a run
that is continued by a process of its own is sent nothing: for that the journal's length is kept before, and whatever was
written since shows that it was continued.
"""

from __future__ import annotations

import contextlib
import hashlib
from pathlib import Path
from typing import Annotated

from pydantic import Field

from agent_orchestrator.bounded import read_bounded
from agent_orchestrator.engine.files import write_whole
from agent_orchestrator.errors import InvalidValue
from agent_orchestrator.runs.orchestrator import Orchestrator
from agent_orchestrator.store.port import StoredRun

REQUEST_CHARS_MAX = 200
RUN_ID_CHARS = 12
MARK_BYTES_MAX = 100


RunName = Annotated[str, Field(description="The id of a run, or the start of one, as list_runs shows it.")]
UnitName = Annotated[str | None, Field(description="A step, task, bead or group of the run; without it, all.")]
RequestId = Annotated[
    str, Field(description="An id that you make up for this call. Repeat it only to make the same call again: it counts once.")
]


def checked_request(request_id: str) -> str:
    """Return the id of a call; raise InvalidValue for one that could not tell two calls apart."""
    if not request_id.strip() or len(request_id) > REQUEST_CHARS_MAX:
        expected = f"an id that you make up for this one call, of at most {REQUEST_CHARS_MAX} characters"
        raise InvalidValue(what="request_id", value=request_id, expected=expected)
    return request_id


def name_directive(request_id: str) -> str:
    """Return the id of the directive that a call sends."""
    return hashlib.sha256(f"mcp {checked_request(request_id)}".encode()).hexdigest()[:32]


def name_run(request_id: str) -> str:
    """Return the id of the run that a call starts."""
    return hashlib.sha256(f"mcp start {checked_request(request_id)}".encode()).hexdigest()[:RUN_ID_CHARS]


def was_continued(orchestrator: Orchestrator, run: StoredRun, request_id: str) -> bool:
    """Tell whether a call has continued the run; if not, keep how long its journal is now."""
    mark = _folder(orchestrator) / f"{run.id}.{name_directive(request_id)}"
    root = orchestrator.settings.folder
    with contextlib.suppress(FileNotFoundError, ValueError):
        return bool(orchestrator.store.rows(run.id, int(read_bounded(mark, MARK_BYTES_MAX, root=root))))
    write_whole(root, mark, str(orchestrator.fold(run).seq).encode("ascii"))
    return False


def _folder(orchestrator: Orchestrator) -> Path:
    return orchestrator.settings.folder / "mcp"
