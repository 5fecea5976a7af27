"""A workflow with real clients: a red check loops back, the orchestrator is killed, a person approves, and it completes."""

from __future__ import annotations

import pytest

from agent_orchestrator.testing.model_cast import Part
from agent_orchestrator.testing.model_server import Held, Reply, Write
from tests.clients.modes import CLIENTS, OTHERS, ModeRig

LOOPING = """\
name: greeting
steps:
  - {id: code, agent: coder, prompt: prompts/code.md}
  - id: review
    agent: reviewer
    prompt: prompts/review.md
    needs: [code]
    check: test -s greeting.txt
    loop_back_to: code
"""
APPROVED = """\
  - {id: approval, agent: presenter, prompt: prompts/approval.md, needs: [review], human_in_the_loop: true}
  - {id: publish, agent: publisher, prompt: prompts/publish.md, needs: [approval]}
"""
STEPS = ("code", "review", "approval", "publish")
PROMPTS = {f"prompts/{step}.md": f"Do your part: {step} the greeting.\n" for step in STEPS}
RED = "check `test -s greeting.txt` exited with code 1"
DONE = Reply({"status": "COMPLETED", "summary": "done"})


def looping(folder: str = "") -> list[Part]:
    """In the order in which they are played; the coder's second one is only for a prompt that says what was wrong."""
    return [
        Part("code", "Do your part: code", script=[Write(f"{folder}greetnig.txt", "hello"), DONE]),
        Part("review", "Do your part: review", script=[DONE]),
        Part("code again", "Do your part: code", RED, script=[Write(f"{folder}greeting.txt", "hello"), Held(DONE)]),
        Part("review again", "Do your part: review", script=[DONE]),
    ]


def parts() -> list[Part]:
    return [
        *looping(),
        Part("approval", "Do your part: approval", script=[DONE]),
        Part("publish", "Do your part: publish", script=[Write("published.txt", "yes"), DONE]),
    ]


@pytest.mark.parametrize("client", CLIENTS)
def test_a_workflow_from_start_to_completed(client: str, mode: ModeRig) -> None:
    cast = mode.begin(client, *parts(), files={"workflow.yaml": LOOPING + APPROVED, **PROMPTS})
    mode.kill_in(cast, ["code again"], "run", "--workflow", "workflow.yaml", "--agent", client, "--run-id", "one")
    assert "waiting for approval: approval (2 of 4 steps done)" in mode.orc("resume", "one", "--no-wait", code=4)
    assert not (mode.repo / "published.txt").exists()
    assert "Approved" in mode.orc("approve", "one", "--comments", "looks good")
    assert "run one completed: 4/4 steps" in mode.orc("resume", "one")
    assert cast.played == [part.name for part in parts()]
    mode.check_books(cast, "one")
    steps = mode.state("one")["steps"]
    assert [(step["status"], step["attempts"], step["iteration_count"]) for step in steps.values()] == [("COMPLETED", 1, 1)] * 4
    assert all(int(step["metrics"]["input_tokens"]) > 0 for step in steps.values())
    assert ["cost_usd" in step["metrics"] for step in steps.values()] == [client == "claude"] * 4
    assert mode.git("status", "--short") == "?? greeting.txt\n?? greetnig.txt\n?? published.txt"


@pytest.mark.parametrize("client", OTHERS)
def test_a_workflow_with_a_client_that_has_no_schema(client: str, mode: ModeRig) -> None:
    cast = mode.begin(client, *looping(f"{mode.repo}/"), files={"workflow.yaml": LOOPING, **PROMPTS})
    mode.kill_in(cast, ["code again"], "run", "--workflow", "workflow.yaml", "--agent", client, "--run-id", "one")
    assert "run one completed: 2/2 steps" in mode.orc("resume", "one")
    assert cast.played == [part.name for part in looping()]
    mode.check_books(cast, "one")
    assert [step["iteration_count"] for step in mode.state("one")["steps"].values()] == [1, 1]
    assert mode.git("status", "--short") == "?? greeting.txt\n?? greetnig.txt"
