"""A workflow with real clients: a red check loops back, the orchestrator is killed, a person approves, and it completes."""

from __future__ import annotations

import pytest

from agent_orchestrator.testing.model_cast import Part
from agent_orchestrator.testing.model_server import Answer, Held, Shell, Write
from tests.clients.modes import CLIENTS, ModeRig

WORKFLOW = """\
name: greeting
steps:
  - {id: code, agent: coder, prompt: prompts/code.md}
  - id: review
    agent: reviewer
    prompt: prompts/review.md
    needs: [code]
    check: grep -q hello greeting.txt
    loop_back_to: code
  - {id: approval, agent: presenter, prompt: prompts/approval.md, needs: [review], human_in_the_loop: true}
  - {id: publish, agent: publisher, prompt: prompts/publish.md, needs: [approval]}
"""
STEPS = ("code", "review", "approval", "publish")
FILES = {"workflow.yaml": WORKFLOW, **{f"prompts/{step}.md": f"Do your part: {step} the greeting.\n" for step in STEPS}}
RED = "check `grep -q hello greeting.txt` exited with code 1"
DONE = Answer({"status": "COMPLETED", "summary": "done"})


def parts() -> list[Part]:
    """In the order in which they are played; the coder's second one is only for a prompt that says what was wrong."""
    return [
        Part("code", "Do your part: code", script=[Write("greeting.txt", "helo"), DONE]),
        Part("review", "Do your part: review", script=[DONE]),
        Part("code again", "Do your part: code", RED, script=[Shell("echo hello >greeting.txt"), Held(DONE)]),
        Part("review again", "Do your part: review", script=[DONE]),
        Part("approval", "Do your part: approval", script=[DONE]),
        Part("publish", "Do your part: publish", script=[Write("published.txt", "yes"), DONE]),
    ]


@pytest.mark.parametrize("client", CLIENTS)
def test_a_workflow_from_start_to_completed(client: str, mode: ModeRig) -> None:
    cast = mode.begin(client, *parts(), files=FILES)
    mode.kill_in(cast, ["code again"], "run", "--workflow", "workflow.yaml", "--agent", client, "--run-id", "one")
    assert "waits (2/4 steps): a person: approval" in mode.orc("resume", "one", "--no-wait", code=4)
    assert not (mode.repo / "published.txt").exists()
    assert "Approved" in mode.orc("approve", "one", "--comments", "looks good")
    assert "run one completed: 4/4 steps" in mode.orc("resume", "one")
    assert cast.played == [part.name for part in parts()]
    mode.check_books(cast, "one")
    steps = mode.state("one")["steps"]
    assert [(step["status"], step["attempts"], step["iteration_count"]) for step in steps.values()] == [("COMPLETED", 1, 1)] * 4
    assert all(int(step["metrics"]["input_tokens"]) > 0 for step in steps.values())
    assert ["cost_usd" in step["metrics"] for step in steps.values()] == [client == "claude"] * 4
    assert mode.git("status", "--short") == "?? greeting.txt\n?? published.txt"
