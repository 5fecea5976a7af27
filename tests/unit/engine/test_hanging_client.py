"""A client that hangs after its result is judged by the result, whatever signal ended it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec

from agent_orchestrator.config import load_settings
from agent_orchestrator.config.defaults import load_agents
from agent_orchestrator.engine.engine import Silent
from agent_orchestrator.engine.session import drive_in_loop
from agent_orchestrator.runs.orchestrator import Orchestrator
from agent_orchestrator.runs.workflow.options import WorkflowOptions, prepare
from agent_orchestrator.runs.workflow.start import start_workflow
from agent_orchestrator.systems.workflow.system import WORKFLOW

INIT = {"type": "system", "subtype": "init", "session_id": "s1", "model": "opus"}
RESULT: dict[str, Any] = {
    "type": "result", "subtype": "success", "is_error": False, "result": "done", "session_id": "s1", "total_cost_usd": 0.5,
    "structured_output": {"status": "COMPLETED", "summary": "done", "metrics": [{"name": "n", "value": 1}]},
    "modelUsage": {"opus": {"inputTokens": 3, "outputTokens": 4, "costUSD": 0.5, "costBasis": "list"}},
    "permission_denials": [],
}  # fmt: skip
API_ERROR = {**RESULT, "is_error": True, "api_error_status": 529, "result": "API Error: overloaded", "structured_output": None}


def run(repo: Path, result: dict[str, Any]) -> tuple[str, dict[str, Any], list[Any]]:
    """A workflow of one step, with a client that prints its events, leaves a child behind and never exits."""
    client = repo / "client.sh"
    lines = "\n".join(f"printf '%s\\n' '{json.dumps(event)}'" for event in (INIT, result))
    client.write_text(f"#!/bin/sh\nsleep 1000 &\n{lines}\nwait\n")
    client.chmod(0o755)
    (repo / ".orc.toml").write_text(f'[agents.claude]\nbinary = "{client}"\n')
    (repo / "prompt.md").write_text("Work.\n")
    (repo / "workflow.yaml").write_text("name: one\nsteps:\n  - {id: work, agent: coder, prompt: prompt.md}\n")
    environ = {"PATH": "/usr/bin:/bin", "ORC_TRUSTED_PATHS": str(repo)}
    with Orchestrator(settings=load_settings(str(repo), environ)) as orchestrator:
        given = WorkflowOptions(workflow=str(repo / "workflow.yaml"), agent="claude", max_attempts=1)
        prepared = prepare(given, repo, {}, load_agents(orchestrator.settings))
        made = start_workflow(orchestrator, prepared.spec).run
        world = msgspec.structs.replace(orchestrator.world(made), result_grace_s=0.2, stop_grace_s=1.0)
        summary = drive_in_loop(world, made, WORKFLOW, Silent(), lambda driver: True)
        folded = orchestrator.fold(made)
        return summary.status, WORKFLOW.details(folded.state)["steps"]["work"], orchestrator.store.usage(made.id)


def test_a_good_result_is_a_success_with_a_warning(repo: Path) -> None:
    status, step, usage = run(repo, RESULT)
    assert status == "completed", step
    # The child may be gone with it, or have to be stopped by itself, which is said first.
    assert step["warnings"][-1] == "The agent did not exit after its result and was stopped."
    assert step["launches"][0]["session"] == "s1"
    (kept,) = (repo / ".agents" / "runs").glob("*/reports/*.json")
    assert json.loads(kept.read_text())["metrics"] == {"n": 1}
    assert [(row.agent, row.usage.output_tokens, row.usage.cost_usd) for row in usage] == [("claude", 4, 0.5)]


def test_a_bad_one_stays_bad(repo: Path) -> None:
    status, step, _ = run(repo, API_ERROR)
    assert (status, step["launches"][0]["failure"]) == ("failed", "overloaded")
