"""Takes over state files that have no journal here: written by another tool, by an earlier life, on another machine.

Sloppy files are read as far as they can be, and everything that had to be changed is said. Whatever is taken over stands
still until it is resumed.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from agent_orchestrator.api.loops import import_loop
from agent_orchestrator.api.orchestrator import Orchestrator
from agent_orchestrator.api.starting import import_workflow
from agent_orchestrator.errors import InvalidDocument, MissingPath, UsageError
from agent_orchestrator.store.port import StoredRun
from agent_orchestrator.systems.workflow.spec import WorkflowSpec


class TakenOver(msgspec.Struct, frozen=True, kw_only=True):
    """The run that a file became, and what was changed on the way."""

    run: StoredRun
    notes: tuple[str, ...]


def take_over(orchestrator: Orchestrator, path: Path, spec: WorkflowSpec | None = None) -> TakenOver:
    """Makes a run of a state file, or of the folder it lies in; a workflow's also needs the workflow it is a run of."""
    file = _state_file(path)
    document = _read(file)
    run, notes = _FILES[file.name](orchestrator, file, document, spec)
    return TakenOver(run=run, notes=notes)


def _state_file(path: Path) -> Path:
    if path.is_dir():
        found = [path / name for name in _FILES if (path / name).is_file()]
        if not found:
            raise UsageError(detail=f"There is no state file in {path}; known are {', '.join(_FILES)}.")
        return found[0]
    if not path.exists():
        raise MissingPath(what="The state file", path=path)
    if path.name not in _FILES:
        raise UsageError(detail=f"{path} is no state file that can be taken over; known are {', '.join(_FILES)}.")
    return path


def _read(path: Path) -> dict[str, Any]:
    try:
        return msgspec.json.decode(path.read_bytes(), type=dict[str, Any])
    except (OSError, msgspec.DecodeError, RecursionError) as error:
        raise InvalidDocument(path=path, what="state file", detail=str(error)) from None


def _workflow(
    orchestrator: Orchestrator, file: Path, document: dict[str, Any], spec: WorkflowSpec | None
) -> tuple[StoredRun, tuple[str, ...]]:
    if spec is None:
        raise UsageError(detail=f"{file} is a run of a workflow: give its file with --workflow, and who performs its steps.")
    return import_workflow(orchestrator, spec, file, document)


def _loop(
    orchestrator: Orchestrator, file: Path, document: dict[str, Any], spec: WorkflowSpec | None
) -> tuple[StoredRun, tuple[str, ...]]:
    return import_loop(orchestrator, file, document)


Importer = Callable[[Orchestrator, Path, dict[str, Any], WorkflowSpec | None], tuple[StoredRun, tuple[str, ...]]]

_FILES: dict[str, Importer] = {"run_state.json": _workflow, "state.json": _loop, "current-loop.json": _loop}
"""The names of state files, and who reads them."""
