"""Runs that are started and continued: by `orc` itself, as a program of its own that outlives the MCP server."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec

from agent_orchestrator.errors import OrcError, Refused, RunExists, Unavailable, UsageError
from agent_orchestrator.runs.facts import run_facts
from agent_orchestrator.runs.orchestrator import Orchestrator
from agent_orchestrator.store.port import StoredRun
from agent_orchestrator.surfaces.mcp.requests import name_run

STARTED_MAX_S = 300
SHOWN_CHARS = 2_000


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


def run_orc(orchestrator: Orchestrator, verb: str, *words: str) -> Any:
    """Run a command of `orc` to its end and return what it printed; raise its error, in its own words."""
    settings = orchestrator.settings
    place = () if any(word.startswith("--repo=") for word in words) else (f"--repo={settings.home}",)
    try:
        done = subprocess.run(
            [sys.executable, "-m", "agent_orchestrator.cli", verb, "--json", *place, *words],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            env=dict(settings.environ),
            cwd=settings.home,
            start_new_session=True,
            timeout=STARTED_MAX_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Unavailable(detail=f"orc {verb} could not be run: {error}.") from error
    try:
        printed: Any = msgspec.json.decode(done.stdout)
    except msgspec.DecodeError:
        printed = None
    if isinstance(printed, dict) and isinstance(error_said := printed.get("error"), dict):
        raise _find_error(error_said, verb)
    if done.returncode != 0 or printed is None:
        said = done.stderr.decode("utf-8", "replace").strip()[-SHOWN_CHARS:]
        raise Unavailable(detail=f"orc {verb} ended with code {done.returncode}: {said or 'it said nothing'}")
    return printed


def _find_error(said: dict[str, Any], verb: str) -> OrcError:
    if said.get("kind") == RunExists.__name__:
        return RunExists(run=verb, status="there")
    return Refused(why=str(said.get("message", "")))
