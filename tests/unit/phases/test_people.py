"""People and a run of phases, played by hand: skipped and wanted again, and what the state file says meanwhile."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from agent_orchestrator.core.effects import RunAgent
from agent_orchestrator.core.events import DirectiveRefused, StopReason
from agent_orchestrator.core.failure import Failure, FailureKind
from agent_orchestrator.core.inputs import Answer, Instruct, Resume
from agent_orchestrator.systems.phases.events import ReviewStarted, TaskRetried
from agent_orchestrator.systems.phases.state import PhasesStatus
from tests.scenarios.phases_world import PhasesWorld

DOCUMENTS = Path(__file__).parents[2] / "scenarios" / "documents"
FIVE = """\
# Task: Five

## Goal

Two chains that meet.

## Phases & Tasks

### Phase 1: Only

#### Task 1.1: A
**Success Criteria**:
- [ ] It is good

#### Task 1.2: Needs A
**Success Criteria**:
- [ ] It is good
**Dependencies**: 1.1

#### Task 1.3: Needs what needs A
**Success Criteria**:
- [ ] It is good
**Dependencies**: 1.2

#### Task 1.4: B
**Success Criteria**:
- [ ] It is good

#### Task 1.5: Needs A and B
**Success Criteria**:
- [ ] It is good
**Dependencies**: 1.1, 1.4
"""


GOOD = {"status": "SUCCESS", "criteria": {"it_is_good": True}}
CONFLICT = {"type": "architecture", "severity": "high", "details": "there is one already", "recommendation": "use it"}


def instruct(world: PhasesWorld, what: str, task: str) -> list[Any]:
    return world.tell(Instruct(id=world.directive(), what=what, values={"task": task}))


def planned(document: str, **options: Any) -> PhasesWorld:
    world = PhasesWorld(document, **options)
    world.saved("plan")
    return world


def warned(world: PhasesWorld) -> list[str]:
    told: list[str] = world.document()["safety_bounds"]["warnings"]
    return told


def feedback(world: PhasesWorld) -> list[dict[str, Any]]:
    effect = world.doing("1.1")
    assert isinstance(effect, RunAgent)
    return list(effect.feedback)


def test_a_task_wanted_again_brings_back_what_was_skipped_for_its_sake_and_nothing_else() -> None:
    world = planned(FIVE)
    instruct(world, "skip", "1.1")
    instruct(world, "skip", "1.4")
    assert list(world.state.skipped) == ["1.1", "1.2", "1.3", "1.5", "1.4"]
    assert [event for event in instruct(world, "retry", "1.1") if isinstance(event, TaskRetried)] == [
        TaskRetried(task="1.1", also=("1.2", "1.3"))
    ]
    assert list(world.state.skipped) == ["1.5", "1.4"]
    instruct(world, "retry", "1.4")
    assert world.state.skipped == {}


def test_a_task_whose_needs_are_skipped_is_not_wanted_again_by_itself() -> None:
    world = planned(FIVE)
    instruct(world, "skip", "1.1")
    refused = instruct(world, "retry", "1.3")
    assert [event.why for event in refused if isinstance(event, DirectiveRefused)] == [
        "task 1.3 needs task 1.2, which is skipped; retry that first"
    ]


def test_what_a_person_skipped_by_itself_stays_skipped() -> None:
    world = planned(FIVE)
    instruct(world, "skip", "1.2")
    instruct(world, "skip", "1.1")
    instruct(world, "retry", "1.1")
    assert list(world.state.skipped) == ["1.2", "1.3"]


def test_a_run_whose_tasks_were_all_skipped_has_failed_and_is_not_reviewed() -> None:
    world = planned((DOCUMENTS / "plain.md").read_text("utf-8"))
    for task in ("1.1", "1.3"):
        instruct(world, "skip", task)
    world.tell(_approve(world))
    life = world.state.lifecycle
    assert (life.stop, life.detail) == (StopReason.FAILED, "no task was completed: all 3 were skipped")
    assert world.state.status is PhasesStatus.FAILED
    assert not [event for event, _ in world.journal if isinstance(event, ReviewStarted)]
    assert world.document()["milestones"] == []


def _approve(world: PhasesWorld) -> Any:
    return Answer(id=world.directive(), approved=True)


def test_a_question_to_a_person_stands_in_the_warnings_until_it_is_answered() -> None:
    world = planned((DOCUMENTS / "plain.md").read_text("utf-8"))
    assert warned(world) == ["plan waits for a person: Execute Plain thing: 1 phase, 3 tasks? `orc phases plan` shows them."]
    world.tell(_approve(world))
    assert warned(world) == []


def test_an_attempt_that_is_to_be_made_again_stands_in_the_warnings() -> None:
    world = planned((DOCUMENTS / "plain.md").read_text("utf-8"), yes=True)
    world.agent("1.1", {"status": "SUCCESS", "criteria": {"it_is_good": "perhaps"}})
    (told,) = warned(world)
    assert told.startswith("1.1 waits to be tried again: the report has a wrong field")


def test_the_next_iteration_is_told_what_a_failed_command_wrote() -> None:
    world = planned((DOCUMENTS / "small.md").read_text("utf-8"), yes=True)
    world.agent("1.1", {"status": "PASS"})
    world.agent("1.1", {"status": "SUCCESS", "criteria": {"it_is_good": True}})
    world.check_end("1.1", 2, tail="test_login: expected 1\nmake: *** [test] Error 1\n")
    assert [entry["checks"] for entry in feedback(world)] == [
        {
            "tests_pass": {
                "command": "make test",
                "exit_code": 2,
                "tail": "test_login: expected 1\nmake: *** [test] Error 1\n",
            }
        }
    ]
    world.agent("1.1", {"status": "PARTIAL", "criteria": {"it_is_good": True}})
    world.check_end("1.1")
    assert ["checks" in entry for entry in feedback(world)] == [True, False]


def test_each_thing_is_warned_of_once() -> None:
    world = planned((DOCUMENTS / "plain.md").read_text("utf-8"), yes=True)
    world.agent("1.1", {"status": "PARTIAL"}, warnings=("odd", "odd"))
    assert warned(world) == ["odd"]


def test_what_an_ended_run_is_asked_for_is_refused_with_what_can_be_done() -> None:
    world = planned((DOCUMENTS / "plain.md").read_text("utf-8"))
    world.tell(Answer(id=world.directive(), approved=False))
    refused = instruct(world, "retry", "1.1")
    assert [event.why for event in refused if isinstance(event, DirectiveRefused)] == ["it is failed; a new run starts anew"]


def reject(world: PhasesWorld, comments: str) -> list[Any]:
    return world.tell(Answer(id=world.directive(), approved=False, comments=comments))


def test_a_rejected_task_that_is_tried_again_is_told_why() -> None:
    world = planned((DOCUMENTS / "plain.md").read_text("utf-8"), yes=True)
    world.agent("1.1", failure=Failure(kind=FailureKind.LAUNCH, message="there is no such program"))
    reject(world, "the database comes first")
    world.saved("1.1")
    world.tell(Instruct(id=world.directive(), what="retry", values={"task": "1.1", "comments": "it is there now"}))
    world.agent("1.3", GOOD)
    world.saved("1.3")
    assert "the database comes first" in world.prompt("1.1")
    assert "it is there now" in world.prompt("1.1")


def test_a_task_goes_on_with_what_was_said_against_another_plan() -> None:
    world = planned((DOCUMENTS / "small.md").read_text("utf-8"), yes=False)
    world.tell(_approve(world))
    change = {"action": "describe", "task": "1.1", "description": "Use the other module."}
    world.agent("1.1", {"status": "RE_PLAN", "conflicts": [CONFLICT], "recommended_changes": [change]})
    reject(world, "the other module goes away")
    assert "the other module goes away" in world.prompt("1.1")


def test_rejected_work_that_is_taken_back_to_a_checkpoint_is_done_again_with_the_reason() -> None:
    whole = "## Success Criteria (Global)\n\n- [ ] In the end: `make`\n\n## Phases & Tasks"
    document = (DOCUMENTS / "plain.md").read_text("utf-8").replace("## Phases & Tasks", whole)
    world = planned(document, yes=True)
    for task in ("1.1", "1.2", "1.3"):
        world.agent(task, GOOD)
        world.saved(task)
    world.check_end("review", 1)
    reject(world, "the parser must not guess")
    assert world.state.status is PhasesStatus.FAILED
    world.tell(Instruct(id=world.directive(), what="rewind", values={"to": "checkpoint-001"}))
    world.tell(Resume(id=world.directive()))
    assert "the parser must not guess" in world.prompt("1.2")
