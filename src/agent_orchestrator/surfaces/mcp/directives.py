"""Directives of the MCP server's tools: sent as the commands send them, and each call counted once."""

from __future__ import annotations

from typing import Any

from agent_orchestrator.core.inputs import Resume, Steer
from agent_orchestrator.errors import Refused
from agent_orchestrator.runs.directives import Sent, send_and_wait
from agent_orchestrator.runs.orchestrator import Orchestrator
from agent_orchestrator.runs.stop import abort_run, pause_run
from agent_orchestrator.store.port import StoredRun
from agent_orchestrator.surfaces.mcp.requests import name_directive, was_continued
from agent_orchestrator.surfaces.program import run_orc

REPEATED = "This request_id was used for run {run} before: nothing was sent again. Give another one for another directive."


def steer(orchestrator: Orchestrator, run: StoredRun, request_id: str, words: Steer) -> dict[str, Any]:
    """Tell a run's agents something."""
    if (before := find_sent(orchestrator, run, request_id)) is not None:
        return before
    sent = send_and_wait(orchestrator, run, words)
    who, when = words.unit or "every unit", "now" if words.now and sent.owner is not None else "with its next prompt"
    said = f"{who} is told {when}."
    return tell(run, sent, said if sent.owner is not None else f"{said} Nothing is running it now; resume_run continues it.")


def pause(orchestrator: Orchestrator, run: StoredRun, request_id: str, reason: str, *, now: bool) -> dict[str, Any]:
    """Pause a run."""
    if (before := find_sent(orchestrator, run, request_id)) is not None:
        return before
    sent = pause_run(orchestrator, run, reason, now=now, directive_id=name_directive(request_id))
    if not sent.taken and sent.owner is None:
        return tell(run, sent, "nothing is running it; resume_run continues it.")
    return tell(run, sent, f"it is paused, what runs {'is stopped' if now else 'may finish'}. resume_run continues it.")


def abort(orchestrator: Orchestrator, run: StoredRun, request_id: str, reason: str) -> dict[str, Any]:
    """Stop a run for good."""
    if (before := find_sent(orchestrator, run, request_id)) is not None:
        return before
    return tell(run, abort_run(orchestrator, run, reason, name_directive(request_id)), "it is aborted.")


def resume(orchestrator: Orchestrator, run: StoredRun, request_id: str) -> dict[str, Any]:
    """Continue a run: tell whoever drives it, or let a process of its own drive it."""
    if (before := find_sent(orchestrator, run, request_id)) is not None:
        return before
    orchestrator.sign(run, Resume(id=name_directive(request_id)))  # Raises for an agent, before anything is started.
    if was_continued(orchestrator, run, request_id):
        return repeated(run)
    if (owner := orchestrator.owner(run)) is not None:
        if orchestrator.fold(run).state.lifecycle.running:
            raise Refused(why=f"Run {run.id} is running in {owner}; wait_run waits for it.")
        sent = send_and_wait(orchestrator, run, Resume(id=name_directive(request_id)))
        if sent.owner is not None:
            return tell(run, sent, f"it continues, in {owner}.")
    run_orc(orchestrator, "resume", "--detach", "--", run.id)
    return tell(run, Sent(directive="", taken=True, owner=orchestrator.owner(run)), "it continues in the background.")


def find_sent(orchestrator: Orchestrator, run: StoredRun, request_id: str) -> dict[str, Any] | None:
    """Return what there is to say about a call that was made before; None for a new one."""
    directive = name_directive(request_id)
    orchestrator.refuse_kept(run, here=False)
    return None if orchestrator.store.posted(run.id, directive) is None else repeated(run)


def repeated(run: StoredRun) -> dict[str, Any]:
    """Return the answer to a call that was made before."""
    return {"run_id": run.id, "repeated": True, "message": REPEATED.format(run=run.id)}


def tell(run: StoredRun, sent: Sent, message: str) -> dict[str, Any]:
    """Return the answer to a directive that was sent."""
    taken = {"taken": sent.taken, "driven_by": sent.owner}
    return {"run_id": run.id, "repeated": False, **taken, "message": f"Run {run.id}: {message}"}
