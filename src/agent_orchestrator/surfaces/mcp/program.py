"""Runs that are started and continued: by `orc` itself, as a program of its own that outlives the MCP server."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

import msgspec

from agent_orchestrator.errors import RunExists, UsageError
from agent_orchestrator.runs.facts import run_facts
from agent_orchestrator.runs.orchestrator import Orchestrator
from agent_orchestrator.store.port import StoredRun
from agent_orchestrator.surfaces.mcp.requests import name_run
from agent_orchestrator.surfaces.program import run_orc


class RunRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A run that is asked for: a task in words, or a workflow file of the repository."""

    request_id: str
    task: str | None = None
    workflow: str | None = None
    no_check: bool = False
    agent: str | None = None
    budget_usd: float | None = None


def start_run(orchestrator: Orchestrator, asked: RunRequest) -> dict[str, Any]:
    """Start a run in the background; the one that the same call started before, where there is one."""
    run_id = name_run(asked.request_id)
    words = write_arguments(orchestrator, asked, run_id)
    if (known := orchestrator.known(run_id)) is not None:
        return _find_started(orchestrator, known)
    with contextlib.suppress(RunExists):  # The same call is being answered twice at once.
        run_orc(orchestrator, "run", "--detach", *words)
    found = orchestrator.find(run_id)
    message = f"Run {run_id} is running in the background; wait_run waits for it."
    return {**run_facts(found, orchestrator.owner(found)), "repeated": False, "message": message}


def write_arguments(orchestrator: Orchestrator, asked: RunRequest, run_id: str) -> list[str]:
    """Return the command line after `orc run`; what a model wrote can be no option of it."""
    if (asked.task is None) == (asked.workflow is None):
        raise UsageError(detail="Give either a task, in words, or a workflow file of the repository.")
    options = [f"--run-id={run_id}", f"--repo={orchestrator.settings.home}"]
    if asked.workflow is not None:
        options.append(f"--workflow={_find_workflow(orchestrator.settings.home, asked.workflow)}")
    options += ["--no-check"] if asked.no_check else []
    options += [f"--agent={asked.agent}"] if asked.agent is not None else []
    options += [f"--budget-usd={asked.budget_usd}"] if asked.budget_usd is not None else []
    return [*options, "--", *([asked.task] if asked.task is not None else [])]


def _find_workflow(home: Path, given: str) -> Path:
    """Return a workflow file of the repository; raise a UsageError for one elsewhere."""
    file = (home / given).resolve()
    if not file.is_relative_to(home.resolve()):
        raise UsageError(detail=f"The workflow {given} lies outside the repository {home}; give a file of the repository.")
    return file


def _find_started(orchestrator: Orchestrator, run: StoredRun) -> dict[str, Any]:
    """Return a run that was started before; one that was never driven, because its server was killed, is driven now."""
    if not run.summary.ended and orchestrator.owner(run) is None and orchestrator.fold(run).seq <= 1:
        run_orc(orchestrator, "resume", "--detach", "--", run.id)
        run = orchestrator.find(run.id)
    message = f"This request_id started run {run.id} before: nothing new was started. Give another one for another run."
    return {**run_facts(run, orchestrator.owner(run)), "repeated": True, "message": message}
