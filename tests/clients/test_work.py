"""Real clients do the work of a workflow: files, reports, a gate that loops back, tokens and money to the last one."""

from __future__ import annotations

import json

import pytest

from agent_orchestrator.testing.model_server import Reply, Write
from tests.clients.rig import Rig, charged, counts, report

SHAPE = """
name: shape
steps:
  - {id: planning, agent: planner, prompt: prompt.md}
  - {id: coding, agent: coder, prompt: prompt.md, needs: [planning]}
  - {id: code_review, agent: reviewer, prompt: prompt.md, needs: [coding], loop_back_to: coding}
"""


def test_a_workflow_with_two_clients_loops_back_and_every_token_is_counted(rig: Rig) -> None:
    rig.workflow(SHAPE)
    claude = rig.lane(
        "claude",
        [
            Write("plan.md", "First this, then that."),
            Reply(report(artifacts=["plan.md"], metrics=[{"name": "tasks", "value": 2}])),
            Reply(report(gate_failure="found P0 issues")),
            Reply(report(gate_failure=None)),
        ],
    )
    codex = rig.lane(
        "codex",
        [
            Write("code.py", "print('one')"),
            Reply(report(artifacts=["code.py"])),
            Write("more.py", "print('two')"),
            Reply(report(artifacts=["more.py"])),
        ],
        "prices.default = { input = 2, output = 10, cache_read = 1 }",
    )
    summary, run = rig.run(agent="claude", roles=("coder=codex",))
    state = rig.state(run)
    assert summary.status == "completed", state
    assert [state["steps"][step]["iteration_count"] for step in state["steps"]] == [0, 1, 1]
    assert (rig.repo / "plan.md").read_text() == "First this, then that."
    assert [(rig.repo / name).exists() for name in ("code.py", "more.py")] == [True, True]
    assert state["steps"]["planning"]["artifacts"] == ["plan.md"]
    kept = json.loads((rig.repo / f".agents/runs/{run}/reports/{run}__planning.json").read_text())
    assert (kept["step_id"], kept["metrics"], kept["artifacts"]) == ("planning", {"tasks": 2}, ["plan.md"])
    assert counts(rig.usage(run, "claude")) == charged(claude)
    assert counts(rig.usage(run, "codex")) == charged(codex)
    bill = charged(codex)
    cost = (2 * bill["input_tokens"] + 10 * bill["output_tokens"] + bill["cache_read_tokens"]) / 1_000_000
    assert sum(usage.cost_usd or 0 for usage in rig.usage(run, "codex")) == pytest.approx(cost)
    metrics = state["steps"]["planning"]["metrics"]
    assert metrics["tasks"] == "2"
    assert float(metrics["cost_usd"]) > 0
    told = json.loads(rig.orc("usage", run, "--by", "model", "--json"))
    assert {name: told["total"][name] for name in bill} == {name: bill[name] + charged(claude)[name] for name in bill}
    assert sorted(told["lines"]) == ["claude-sonnet-4-5", "gpt-5.5"]
    assert told["total"]["unknown"] == {}
    assert "found P0 issues" in json.dumps(codex.requests[2])


LOGINS = {
    "claude": "claude is not logged in: run `claude` once and log in, or export ANTHROPIC_API_KEY.",
    "codex": "codex is not logged in: run `codex login`, or export CODEX_API_KEY",
    "gemini": "gemini is not logged in: run `gemini` once and log in, or export GEMINI_API_KEY.",
    "opencode": "opencode is not logged in: run `opencode auth login`, or export ANTHROPIC_API_KEY.",
}


@pytest.mark.parametrize("client", LOGINS)
def test_a_client_without_a_key_says_what_to_do(client: str, rig: Rig) -> None:
    rig.lane(client, [Reply(report())])
    keys = ("ANTHROPIC_API_KEY", "CLAUDE_CODE_OAUTH_TOKEN", "CODEX_API_KEY", "GEMINI_API_KEY")
    rig.environ = {name: value for name, value in rig.environ.items() if name not in keys}
    _, run = rig.run(agent=client)
    assert rig.launches(run)[0]["failure"] == "auth"
    assert rig.state(run)["steps"]["work"]["last_error"].startswith(LOGINS[client])


@pytest.mark.parametrize("client", ["claude", "codex"])
def test_a_client_that_is_to_use_its_own_login_gets_no_key(client: str, rig: Rig) -> None:
    rig.lane(client, [Reply(report())], "pass_credentials = false")
    _, run = rig.run(agent=client)
    assert rig.launches(run)[0]["failure"] == "auth"
    assert f"pass_credentials is off in [agents.{client}]" in rig.state(run)["steps"]["work"]["last_error"]
