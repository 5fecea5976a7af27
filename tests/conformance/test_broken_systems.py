"""Systems that break the contract on purpose: `check_system` finds each of them out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import pytest

from agent_orchestrator.core.effects import RunCheck
from agent_orchestrator.core.events import Ended, Event, StopReason
from agent_orchestrator.core.failure import FailureKind
from agent_orchestrator.core.ids import EffectId
from agent_orchestrator.core.inputs import CheckEnded, Outcome
from agent_orchestrator.core.judging import Worth, judge_check
from agent_orchestrator.testing.bounds import check_bounds
from agent_orchestrator.testing.systems import check_system
from tests.unit.engine.rig import agent
from tests.unit.engine.toy import Did, ToySpec, ToyState, ToySystem, as_system


def toy_specs() -> list[ToySpec]:
    return [ToySpec(tuple(agent(unit, "checked") for unit in units)) for units in ("a", "abc")]


class Judging(ToySystem):
    """The toy, with an eye to what its agents and checks showed."""

    def advance(self, state: ToyState, now_us: int) -> Sequence[Event]:
        ends = super().advance(state, now_us)
        bad = [unit for unit, outcome in state.outcomes.items() if not self.is_good(outcome)]
        if bad and ends and isinstance(ends[0], Ended) and ends[0].stop is StopReason.COMPLETED:
            return [Ended(stop=StopReason.FAILED, detail=f"{', '.join(bad)} failed")]
        return ends

    def is_good(self, outcome: Outcome) -> bool:
        if isinstance(outcome, CheckEnded):
            return judge_check(outcome, reruns=1) is Worth.PASSED
        return getattr(outcome, "failure", None) is None


def test_the_toy_system_keeps_it_too() -> None:
    check_system(as_system(Judging()), [*toy_specs(), CHECKED], ticks=20)


CHECKED = ToySpec((RunCheck(id=EffectId("checked/a/1"), unit="a", command="make"),))


class Credulous(Judging):
    """A check that changed the tree counts."""

    def is_good(self, outcome: Outcome) -> bool:
        return not isinstance(outcome, CheckEnded) or (outcome.failure is None and outcome.exit_code == 0)


class Tireless(Judging):
    """A system that begins lost work again, however often."""

    def evolve(self, state: ToyState, event: Any, at_us: int) -> None:
        super().evolve(state, event, at_us)
        failure = getattr(event.outcome, "failure", None) if isinstance(event, Did) else None
        if failure is not None and failure.kind in (FailureKind.SESSION_LOST, FailureKind.LOST):
            unit, number = event.outcome.effect.split("/")[1:]
            effect = next(effect for effect in state.spec.effects if effect.unit == unit)
            state.doing.put(msgspec.structs.replace(effect, id=f"checked/{unit}/{number}+"))


class Impure(ToySystem):
    def decide(self, state: ToyState, what: Any, now_us: int) -> Sequence[Event]:
        state.outcomes["x"] = what
        return super().decide(state, what, now_us)


class Restless(ToySystem):
    def advance(self, state: ToyState, now_us: int) -> Sequence[Event]:
        return super().advance(state, now_us) or [Did(outcome=o) for o in list(state.outcomes.values())[:1]]


class Hanging(ToySystem):
    def advance(self, state: ToyState, now_us: int) -> Sequence[Event]:
        return () if state.outcomes else super().advance(state, now_us)


class Forgetful(ToySystem):
    calls = 0

    def evolve(self, state: ToyState, event: Any, at_us: int) -> None:
        self.calls += 1
        super().evolve(state, event, at_us)
        if isinstance(event, Did):
            state.outcomes[f"call {self.calls}"] = event.outcome


class Clinging(ToySystem):
    def evolve(self, state: ToyState, event: Any, at_us: int) -> None:
        super().evolve(state, event, at_us)
        if isinstance(event, Did):
            state.doing.put(agent(event.outcome.effect.split("/")[1], "checked"))


class Lenient(ToySystem):
    def decide(self, state: ToyState, what: Any, now_us: int) -> Sequence[Event]:
        return () if type(what).__name__ == "Abort" else super().decide(state, what, now_us)


@pytest.mark.parametrize(
    ("broken", "said"),
    [
        (Impure, "deciding .* changed the state"),
        (Restless, "never falls silent"),
        (Hanging, "it hangs"),
        (Forgetful, "folds to another state"),
        (Clinging, "is over and still wanted"),
        (Lenient, "is not decided by the lifecycle"),
    ],
)
def test_a_broken_system_is_found_out(broken: type[ToySystem], said: str) -> None:
    with pytest.raises(AssertionError, match=said):
        check_system(as_system(broken()), toy_specs())


@pytest.mark.parametrize(
    ("broken", "spec", "said"),
    [
        (ToySystem, toy_specs()[0], "every agent ends with exit, and the run counts as completed"),
        (Credulous, CHECKED, "every check changes the tree, and the run counts as completed"),
        (Tireless, CHECKED, "every check ends with lost, and `make` is run 3 times in a row"),
        (Tireless, toy_specs()[0], "every agent ends with lost, and the run never gives up"),
    ],
)
def test_a_system_that_does_not_give_up_or_believes_too_much_is_found_out(
    broken: type[ToySystem], spec: ToySpec, said: str
) -> None:
    with pytest.raises(AssertionError, match=said):
        check_bounds(as_system(broken()), spec, None)
