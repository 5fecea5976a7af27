"""The directive that `orc phases skip`, `retry` and `check` send."""

from __future__ import annotations


def instruct(repo: str | None, run: str | None, what: str, values: dict[str, str], text: str, *, as_json: bool) -> int:
    """Sends what only runs of phases understand, for `skip`, `retry` and `check`."""
    from agent_orchestrator.core.inputs import Instruct
    from agent_orchestrator.runs.directives import new_id, send_and_wait
    from agent_orchestrator.runs.phases.start import find_phases
    from agent_orchestrator.surfaces.cli.direct import report_sent
    from agent_orchestrator.surfaces.cli.options import open_orchestrator

    with open_orchestrator(repo) as orchestrator:
        found = find_phases(orchestrator, run)
        sent = send_and_wait(orchestrator, found, Instruct(id=new_id(), what=what, values=values))
        told = f"Run {found.id}: {text}."
        if sent.owner is None:
            told = f"Run {found.id}: recorded ({text}). Nothing is running it now; continue with: orc resume {found.id}"
        elif not sent.taken:
            told = f"Run {found.id}: recorded; {sent.owner} has not taken it yet."
        return report_sent(orchestrator, found, sent, told, as_json=as_json)
