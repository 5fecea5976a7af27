"""A client that would sleep out a rate limit for hours is stopped, and its account parked until the client would have woken."""

from __future__ import annotations

from pathlib import Path

from agent_orchestrator.config import load_settings
from agent_orchestrator.config.defaults import load_agents
from agent_orchestrator.engine.engine import Silent
from agent_orchestrator.runs.orchestrator import Orchestrator
from agent_orchestrator.runs.workflow.options import WorkflowOptions, prepare
from agent_orchestrator.runs.workflow.start import start_workflow
from agent_orchestrator.systems.workflow.system import WORKFLOW

CLIENT = """#!/bin/sh
echo '{"type":"thread.started","thread_id":"t1"}'
echo '{"type":"turn.started"}'
now=$(date -u +%Y-%m-%dT%H:%M:%S.000000Z)
why='stream disconnected - retrying sampling request (1/5 in 86400s)... sampling_error=last status: 429 Too Many Requests'
echo "$now  WARN codex_core::responses_retry: $why" >&2
exec sleep 1000
"""


def test_it_is_parked_until_it_would_have_woken(repo: Path) -> None:
    client = repo / "client.sh"
    client.write_text(CLIENT)
    client.chmod(0o755)
    (repo / ".orc.toml").write_text(f'[agents.codex]\nbinary = "{client}"\n')
    (repo / "prompt.md").write_text("Work.\n")
    (repo / "workflow.yaml").write_text("name: one\nsteps:\n  - {id: work, agent: coder, prompt: prompt.md}\n")
    environ = {"PATH": "/usr/bin:/bin", "ORC_TRUSTED_PATHS": str(repo)}
    with Orchestrator(settings=load_settings(str(repo), environ)) as orchestrator:
        given = WorkflowOptions(workflow=str(repo / "workflow.yaml"), agent="codex", max_attempts=1)
        started = start_workflow(orchestrator, prepare(given, repo, {}, load_agents(orchestrator.settings)).spec)
        made = started.run
        try:
            summary = orchestrator.drive_owned(made, Silent(), lambda driver: not driver.is_parked())
        finally:
            started.owner.release()
        step = WORKFLOW.details(orchestrator.fold(made).state)["steps"]["work"]
        (window,) = orchestrator.store.windows()
    assert summary.status == "waiting"
    launch = step["launches"][0]
    assert (launch["failure"], launch["session"]) == ("rate_limited", "t1")
    assert window.account == "codex"
    assert 86_000e6 < window.resets_us - launch["ended_us"] <= 86_400e6
