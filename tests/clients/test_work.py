"""Real clients do the work of a workflow: files, reports, a gate that loops back, tokens and money to the last one."""

from __future__ import annotations

import json

import pytest

from agent_orchestrator.testing.model_server import Answer, Write
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
            Answer(report(artifacts=["plan.md"], metrics=[{"name": "tasks", "value": 2}])),
            Answer(report(gate_failure="found P0 issues")),
            Answer(report(gate_failure=None)),
        ],
    )
    codex = rig.lane(
        "codex",
        [
            Write("code.py", "print('one')"),
            Answer(report(artifacts=["code.py"])),
            Write("more.py", "print('two')"),
            Answer(report(artifacts=["more.py"])),
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


@pytest.mark.parametrize(("client", "key"), [("claude", "ANTHROPIC_API_KEY"), ("codex", "SCRIPTED_KEY")])
def test_keys_reach_only_the_client_that_they_are_configured_for(client: str, key: str, rig: Rig) -> None:
    other = {"claude": "codex", "codex": "claude"}[client]
    rig.lane(other, [Answer(report())])
    rig.lane(client, [Answer(report())])
    text = (rig.repo / ".orc.toml").read_text().replace(f'pass_env = ["{key}"]', "pass_env = []")
    (rig.repo / ".orc.toml").write_text(text)
    _, run = rig.run(agent=client)
    assert rig.launches(run)[0]["failure"] == "auth"
