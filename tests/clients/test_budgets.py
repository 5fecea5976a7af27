"""Real clients under a budget: claude is told what it may spend and stops there, codex is stopped; both go on with more."""

from __future__ import annotations

from agent_orchestrator.testing.model_server import Reply, Shell
from tests.clients.rig import Rig, charged, counts, report

CALLS = 12


def test_claude_keeps_to_the_budget_and_goes_on_with_more_in_its_session(rig: Rig) -> None:
    work = [Shell(f"echo {number}") for number in range(CALLS)]
    lane = rig.lane("claude", [*work, Reply(report())], 'allowed_tools = ["Bash"]')
    run = ("run", "--workflow", "workflow.yaml", "--agent", "claude", "--run-id", "r1", "--max-attempts", "1")
    said = rig.orc(*run, "--budget-usd", "0.02", code=5)
    assert "raise it with: orc resume r1 --budget-usd N" in said
    spent = sum(usage.cost_usd or 0.0 for usage in rig.usage("r1"))
    assert 0.01 < spent < 0.03, "at most one call more"
    assert rig.launches("r1")[0]["failure"] == "budget"
    assert "r1 completed" in rig.orc("resume", "r1", "--budget-usd", "1")
    assert rig.state("r1")["steps"]["work"]["attempts"] == 1
    sessions = {launch["session"] for launch in rig.launches("r1")}
    assert len(sessions) == 1
    assert len(lane.requests) <= CALLS + 3, "what was done was not done again"
    assert counts(rig.usage("r1")) == charged(lane)


def test_codex_is_stopped_in_the_middle_of_its_turn_and_goes_on_with_more_in_its_session(rig: Rig) -> None:
    work = [Shell(f"echo {number}") for number in range(CALLS)]
    lane = rig.lane("codex", [*work, Reply(report())], "prices.default = { input = 1, output = 10, cache_read = 1 }")
    run = ("run", "--workflow", "workflow.yaml", "--agent", "codex", "--run-id", "r1", "--max-attempts", "1")
    rig.orc(*run, "--budget-usd", "0.015", code=5)
    spent = sum(usage.cost_usd or 0.0 for usage in rig.usage("r1"))
    assert 0.005 < spent < 0.015
    assert rig.launches("r1")[0]["failure"] == "budget"
    assert len(lane.requests) < CALLS
    assert "r1 completed" in rig.orc("resume", "r1", "--budget-usd", "1")
    assert rig.state("r1")["steps"]["work"]["attempts"] == 1
    assert len({launch["session"] for launch in rig.launches("r1")}) == 1
