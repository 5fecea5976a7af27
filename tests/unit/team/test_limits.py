"""The moments in which a team cannot go on by itself: limits, people, failures, pauses."""

from __future__ import annotations

import pytest

from agent_orchestrator.core.effects import AgentChoice, RunAgent, Wait
from agent_orchestrator.core.events import DirectiveRefused
from agent_orchestrator.core.failure import Failure, FailureKind
from agent_orchestrator.core.hold import Hold, HoldReason
from agent_orchestrator.core.inputs import Abort, Instruct, Pause, Resume, TimerFired
from tests.scenarios.team_world import group, working


def test_at_the_limit_of_qa_rounds_a_person_is_asked_and_may_allow_more() -> None:
    world = working(max_qa_rounds=2)
    for _ in range(2):
        world.develops("A")
        world.says("A", "FAIL", failures=["it hangs"])
    assert (world.role("A"), world.status("A")) == ("AskHuman", "dev_blocked")
    (blocker,) = world.file("group_status.json")["A"]["blockers"]
    assert "QA failed 2 times" in blocker["description"]
    assert world.file("orchestrator_state.json")["status"] == "running"
    world.answers(comments="skip the slow test")
    assert world.role("A") == "developer"
    assert "skip the slow test" in world.prompt("A")
    world.develops("A")
    world.says("A", "FAIL", failures=["it hangs"])
    assert world.role("A") == "developer", "the count began anew"


def test_at_the_limit_of_review_rounds_a_person_may_give_up() -> None:
    world = working(max_review_rounds=1)
    world.develops("A")
    world.says("A", "PASS")
    world.says("A", "CHANGES_REQUESTED", feedback="no")
    world.answers(approved=False, comments="not worth it")
    state = world.file("orchestrator_state.json")
    assert state["status"] == "error"
    assert state["decisions_log"][-1]["decision"] == "stop_run"
    assert "not worth it" in state["decisions_log"][-1]["reasoning"]
    world.tell(Resume(id=world.directive()))
    assert world.role("A") == "developer"
    assert "not worth it" in world.prompt("A"), "whoever goes on is told why it was given up"


def test_words_are_no_yes_where_a_person_is_to_approve_or_reject() -> None:
    world = working(max_qa_rounds=1)
    world.develops("A")
    world.says("A", "FAIL", failures=["it hangs"])
    (refused,) = world.tell(Instruct(id=world.directive(), what="answer", values={"text": "no, leave it"}))
    assert isinstance(refused, DirectiveRefused)
    assert f"A waits for a yes or a no, not for words: `orc approve {world.state.context.run} A" in refused.why
    assert world.role("A") == "AskHuman"


def test_work_that_cannot_be_saved_is_not_tried_for_ever() -> None:
    world = working()
    for _ in range(3):
        world.says("A", "READY_FOR_QA")
        world.saved("A", unavailable="the working tree was left on no branch")
    assert (world.role("A"), world.status("A")) == ("AskHuman", "dev_blocked")
    assert "could not be saved, 3 times in a row" in world.file("group_status.json")["A"]["blockers"][-1]["description"]
    world.answers(comments="the tree is mended")
    assert world.role("A") == "developer"
    world.says("A", "READY_FOR_QA")
    world.saved("A", unavailable="the working tree was left on no branch")
    assert world.role("A") == "developer", "the count began anew"


def test_after_two_failed_rounds_the_stronger_agent_takes_over() -> None:
    world = working(escalate={"developer": AgentChoice(name="command", model="opus")})
    models = []
    for _ in range(3):
        effect = world.doing("A")
        assert isinstance(effect, RunAgent)
        models.append(effect.agent.model)
        world.develops("A")
        world.says("A", "FAIL", failures=["no"])
    assert models == [None, None, "opus"]


def test_a_failed_agent_is_tried_again_and_then_a_person_is_asked() -> None:
    world = working()
    for attempt in range(1, 4):
        effect = world.doing("A")
        assert isinstance(effect, RunAgent)
        assert effect.attempt == attempt
        world.agent("A", failure=Failure(kind=FailureKind.EXIT, message="Agent process exited with code 1"))
        if attempt < 3:
            world.tell(TimerFired(effect=world.doing("A").id))
    assert world.status("A") == "dev_blocked"
    world.answers()
    assert world.role("A") == "developer"


@pytest.mark.parametrize("kind", [FailureKind.RATE_LIMITED, FailureKind.BUDGET])
def test_an_end_that_is_no_end_of_the_attempt_goes_on_with_the_same_attempt(kind: FailureKind) -> None:
    world = working()
    world.agent("A", failure=Failure(kind=kind, message="come back later"))
    again = world.doing("A")
    assert isinstance(again, RunAgent)
    assert again.attempt == 1
    assert world.file("group_status.json")["A"]["iterations"]["developer"] == 1


def test_a_lost_session_is_replaced_once_and_then_counts_as_a_failed_attempt() -> None:
    world = working()
    world.agent("A", failure=Failure(kind=FailureKind.BUDGET, message="come back later"), session="s1")
    for session, attempt in (("s1", 1), (None, 1), (None, 2)):
        effect = world.doing("A")
        assert isinstance(effect, RunAgent)
        assert (effect.session, effect.attempt) == (session, attempt)
        world.agent("A", failure=Failure(kind=FailureKind.SESSION_LOST, message="it is gone"))
        if isinstance(wait := world.doing("A"), Wait):
            world.tell(TimerFired(effect=wait.id))


def test_a_held_agent_is_not_active_and_the_team_still_runs() -> None:
    world = working()
    effect = world.doing("A").id
    hold = Hold(effect=effect, why=HoldReason.RATE_LIMIT, reason="rate limit", until_us=world.now_us + 1, account="claude")
    world.state.doing.hold("A", hold)
    state = next(iter(world.system.documents(world.state, 0))).body
    assert (state.active_agents, state.status) == ([], "running")
    assert world.system.details(world.state)["steps"]["A"]["waits"].startswith("parked until")


def test_pause_drains_and_pause_now_goes_on_with_the_same_turn() -> None:
    world = working(group("A"), group("B"))
    world.tell(Pause(id=world.directive(), now=True))
    world.agent("A", failure=Failure(kind=FailureKind.STOPPED, message="stopped"))
    assert world.role("A") == "nobody"
    world.agent("B", failure=Failure(kind=FailureKind.STOPPED, message="stopped"))
    world.tell(Resume(id=world.directive()))
    assert [world.role(name) for name in "AB"] == ["developer", "developer"]
    assert world.file("group_status.json")["A"]["iterations"]["developer"] == 1


def test_an_abort_is_an_error_with_its_reason_in_the_story() -> None:
    world = working()
    world.tell(Abort(id=world.directive(), reason="wrong repository"))
    world.agent("A", failure=Failure(kind=FailureKind.STOPPED, message="stopped"))
    state = world.file("orchestrator_state.json")
    assert (state["status"], state["decisions_log"][-1]["reasoning"]) == ("error", "wrong repository")
    assert "end_time" in state
    world.tell(Resume(id=world.directive()))
    assert world.state.lifecycle.ended, "an abort is for good"
