"""The effects that ought to be going on, and the life of a run."""

from __future__ import annotations

import pytest

from agent_orchestrator.core.doing import Doing, PlannedAgent
from agent_orchestrator.core.effects import AgentChoice, RunAgent, RunCheck, Wait
from agent_orchestrator.core.events import (
    Aborted,
    AgentSpoke,
    DirectiveRefused,
    Ended,
    Paused,
    Resumed,
    StopReason,
    UnitSteered,
    UnitTakenOver,
)
from agent_orchestrator.core.hold import Hold, HoldReason
from agent_orchestrator.core.ids import EffectId
from agent_orchestrator.core.inputs import Abort, Pause, Saying
from agent_orchestrator.core.lifecycle import Lifecycle, Phase
from agent_orchestrator.core.report import ReportRule


def wait(unit: str, launch: int = 1) -> Wait:
    return Wait(id=EffectId(f"run/{unit}/i0.a1.l{launch}.wait"), unit=unit, until_us=1, reason="r")


def check(unit: str, launch: int = 1) -> RunCheck:
    return RunCheck(id=EffectId(f"run/{unit}/i0.a1.l{launch}.check"), unit=unit, command="true")


def test_a_unit_does_one_thing_at_a_time() -> None:
    doing = Doing()
    doing.put(wait("a"))
    doing.put(check("a", 2))
    assert list(doing) == [check("a", 2)]
    assert not doing.wants(wait("a").id)
    assert doing.wants(check("a", 2).id)
    assert not doing.wants(check("b").id)


def test_only_programs_count_as_active() -> None:
    doing = Doing()
    counts = []
    for effect in (wait("a"), check("a", 2), check("b"), check("b", 2), wait("b", 3)):
        doing.put(effect)
        counts.append(doing.active)
    assert counts == [0, 1, 2, 2, 1]
    doing.drop("a")
    doing.drop("a")
    doing.drop("b")
    assert (doing.active, len(doing)) == (0, 0)


def test_changes_are_told_once_in_order() -> None:
    doing = Doing()
    doing.put(wait("b"))
    doing.put(wait("a"))
    doing.put(wait("b", 2))
    doing.drop("never there")
    assert doing.take_changes() == ["b", "a"]
    assert doing.take_changes() == []
    doing.drop("a")
    assert doing.take_changes() == ["a"]


def agent(unit: str, role: str, iteration: int = 0, launch: int = 1) -> RunAgent:
    """An agent in a role."""
    return RunAgent(
        id=EffectId(f"run/{unit}/i{iteration}.a1.l{launch}.agent"),
        unit=unit,
        agent=AgentChoice(name="a"),
        role=role,
        report=ReportRule(words={}),
        iteration=iteration,
        attempt=1,
        prompt_text="work",
    )


def test_words_for_a_unit_reach_each_of_its_agents_once_and_again_when_the_same_iteration_is_tried_again() -> None:
    doing = Doing()
    doing.steer(UnitSteered(text="the lexer", unit="1.1"))

    def told(effect: RunAgent) -> tuple[str, ...]:
        doing.put(effect)
        found = doing.of(effect.unit)
        assert isinstance(found, RunAgent)
        return found.steering

    assert told(agent("1.1", "supervisor")) == ("the lexer",)
    assert told(agent("1.1", "executor")) == ("the lexer",), "who plans a task is not who does it"
    assert told(agent("1.1", "executor", launch=2)) == ("the lexer",)
    assert told(agent("1.1", "executor", iteration=1)) == ()
    assert told(agent("1.2", "executor")) == ()


class Planned(PlannedAgent, frozen=True):
    """An agent that notes when it is built."""

    effect: RunAgent
    built: list[str]

    @classmethod
    def of(cls, effect: RunAgent, built: list[str]) -> Planned:
        return cls(effect.id, effect.unit, effect, built)

    def build(self) -> RunAgent:
        self.built.append(self.unit)
        return self.effect


def test_an_agent_that_is_planned_counts_as_one_and_is_built_once_when_somebody_looks() -> None:
    doing, built = Doing(), list[str]()
    for unit in ("over", "looked at", "left"):
        doing.put(Planned.of(agent(unit, "executor"), built))
    assert (doing.active, len(doing), doing.wants(agent("over", "executor").id)) == (3, 3, True)
    doing.drop("over")
    doing.put(check("looked at"))
    doing.put(Planned.of(agent("looked at", "executor", launch=2), built))
    assert (doing.active, built) == (2, [])
    assert doing.of("looked at") == agent("looked at", "executor", launch=2)
    assert list(doing) == [agent("looked at", "executor", launch=2), agent("left", "executor")]
    assert (doing.active, built) == (2, ["looked at", "left"])


def test_an_agent_that_is_planned_reads_the_words_that_are_there() -> None:
    doing = Doing()
    doing.steer(UnitSteered(text="this", unit="1.1"))
    doing.put(Planned.of(agent("1.1", "executor"), []))
    found = doing.of("1.1")
    assert isinstance(found, RunAgent)
    assert found.steering == ("this",)


def test_a_question_of_an_agent_at_work_stands_until_it_is_answered_or_the_agent_ends() -> None:
    doing = Doing()
    for unit in ("1.1", "1.2", "1.3"):
        doing.put(agent(unit, "executor"))
        doing.hear(AgentSpoke(effect=agent(unit, "executor").id, unit=unit, saying=Saying.QUESTION, text="Which?"))
    assert (list(doing.spoken), doing.asking) == (["1.1", "1.2", "1.3"], 3)
    doing.steer(UnitSteered(text="this", unit="1.1"))
    doing.drop("1.2")
    doing.put(agent("1.3", "executor", launch=2))
    assert (doing.spoken, doing.asking) == ({}, 0)


def test_words_that_an_agent_at_work_has_read_are_not_in_the_prompt_of_the_next_iteration() -> None:
    doing, effect = Doing(), agent("1.1", "executor")
    doing.put(effect)
    doing.steer(UnitSteered(text="this", unit="1.1"))
    assert [words.text for words in doing.words_for(effect)] == ["this"]
    doing.hear(AgentSpoke(effect=effect.id, unit="1.1", saying=Saying.HEARD))
    assert [words.text for words in doing.words_for(effect)] == ["this"], "one that lost the answer may read it again"
    doing.put(agent("1.1", "executor", iteration=1, launch=2))
    found = doing.of("1.1")
    assert isinstance(found, RunAgent)
    assert found.steering == ()


def test_the_agent_of_a_unit_that_a_person_takes_over_is_stopped_unless_it_is_held() -> None:
    doing = Doing()
    for unit in ("works", "parked", "starts"):
        doing.put(agent(unit, "executor"))
    for unit, why in (("parked", HoldReason.RATE_LIMIT), ("starts", HoldReason.SHORTAGE)):
        doing.hold(unit, Hold(effect=agent(unit, "executor").id, why=why, reason="it has to wait"))
    doing.take_changes()
    for unit in ("works", "parked", "starts", "idle"):
        doing.take_over(UnitTakenOver(unit=unit))
    assert doing.interrupted == {agent(unit, "executor").id for unit in ("works", "starts")}
    assert doing.take_changes() == ["works", "starts"]
    assert doing.taken == {"works", "parked", "starts", "idle"}


def test_each_effect_remembers_the_boot_in_which_it_came_to_be_wanted() -> None:
    doing = Doing()
    doing.put(wait("a"))
    doing.boot = "first"
    doing.put(wait("b"))
    doing.boot = "second"
    doing.put(wait("a", 2))
    assert (doing.boot_of("a"), doing.boot_of("b")) == ("second", "first")


PAUSED, NOW = Paused(reason="lunch"), Paused(reason="stop", now=True)
ABORTED, ENDED = Aborted(reason="enough"), Ended(stop=StopReason.FAILED, detail="because")


@pytest.mark.parametrize(
    ("facts", "phase", "halting", "stop", "detail"),
    [
        ([], Phase.RUNNING, False, None, ""),
        ([PAUSED], Phase.PAUSED, False, StopReason.INTERRUPTED, "lunch"),
        ([PAUSED, NOW], Phase.PAUSED, True, StopReason.INTERRUPTED, "stop"),
        ([NOW, Resumed()], Phase.RUNNING, False, None, ""),
        ([ABORTED], Phase.ABORTING, True, None, "enough"),
        ([NOW, ABORTED, ENDED], Phase.ENDED, False, StopReason.FAILED, "because"),
        ([ENDED, Resumed()], Phase.RUNNING, False, None, ""),
        ([PAUSED, DirectiveRefused(directive="d", why="w")], Phase.PAUSED, False, StopReason.INTERRUPTED, "lunch"),
    ],
)
def test_facts_move_a_run_through_its_life(
    facts: list[Paused], phase: Phase, halting: bool, stop: StopReason | None, detail: str
) -> None:
    life = Lifecycle()
    for fact in facts:
        life.evolve(fact)
    assert (life.phase, life.halting, life.stop, life.detail) == (phase, halting, stop, detail)
    assert (life.running, life.ended) == (phase is Phase.RUNNING, phase is Phase.ENDED)


@pytest.mark.parametrize(
    ("facts", "directive", "said"),
    [
        ([], Pause(id="d"), None),
        ([PAUSED], Pause(id="d"), "paused already"),
        ([PAUSED], Pause(id="d", now=True), None),
        ([NOW], Pause(id="d"), "paused already"),
        ([NOW], Pause(id="d", now=True), "paused already"),
        ([PAUSED], Abort(id="d"), None),
        ([ABORTED], Abort(id="d"), "being aborted"),
        ([ABORTED], Pause(id="d"), "being aborted"),
        ([ENDED], Pause(id="d"), "has ended"),
        ([ENDED], Abort(id="d"), "has ended"),
    ],
)
def test_a_pause_or_an_abort_changes_something_or_is_refused_with_a_reason(
    facts: list[Paused], directive: Pause | Abort, said: str | None
) -> None:
    life = Lifecycle()
    for fact in facts:
        life.evolve(fact)
    (answer,) = life.decide(directive)
    if said is None:
        assert isinstance(answer, Aborted if isinstance(directive, Abort) else Paused)
    else:
        assert isinstance(answer, DirectiveRefused)
        assert said in answer.why
