"""A run as plain data: the same names in every command and for every program, so that scripts can rely on them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from agent_orchestrator.core.units import iso
from agent_orchestrator.store.port import StoredRun
from agent_orchestrator.systems import about


def state_file(run: StoredRun) -> str:
    """Return where the run's state file is printed."""
    file = run.summary.facts.get("state_file") or about(run.system).state_file.format(run=run.context.run)
    return str(Path(run.context.home, file))


def place_line(run: StoredRun) -> str:
    """Say where a run's files are: its state file, or for one that workers drive elsewhere what brings its work here."""
    if not run.context.remote or Path(run.context.home).is_dir():
        return f"state: {state_file(run)}"
    verbs = ("diff", "merge", "pr", "discard") if run.summary.ended else ("diff",)
    return "work: at its remote; next: " + "   ".join(f"orc {verb} {run.id}" for verb in verbs)


def say_idle(run: StoredRun) -> str:
    """Say that nobody drives a run, and what goes on with it."""
    if run.context.remote:
        return f"no worker drives it now (orc workers); queue it again with: orc resume {run.id} --queue"
    return f"nothing is running it; continue with: {about(run.system).resume} {run.id}"


def run_facts(run: StoredRun, owner: str | None = None) -> dict[str, Any]:
    """Return the facts of one run."""
    summary = run.summary
    return {
        "run_id": run.id,
        "system": run.system,
        "name": run.name,
        "status": summary.status,
        "stop": summary.stop.value if summary.stop is not None else None,
        "detail": summary.detail,
        "done": summary.done,
        "total": summary.total,
        "failed": summary.failed,
        "doing": list(summary.doing),
        "asks": list(summary.asks),
        "taken_over": list(summary.taken_over),
        "ended": summary.ended,
        "driven_by": owner,
        "created_at": iso(run.context.created_us),
        "updated_at": iso(run.updated_us),
        "repo_dir": run.context.workdir,
        "state_file": state_file(run),
    }
