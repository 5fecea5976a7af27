"""Budgets and rate limits where everything goes wrong: whatever is spent is counted once, and nobody starts too early."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

from agent_orchestrator.core.budget import Amounts, Budget
from agent_orchestrator.core.effects import AgentChoice
from agent_orchestrator.core.inputs import Directive, Pause
from agent_orchestrator.core.units import US
from agent_orchestrator.engine.launches import Order
from agent_orchestrator.store.memory import MemoryStore
from agent_orchestrator.systems.workflow.spec import StepSpec, WorkflowSpec, with_prompts
from agent_orchestrator.systems.workflow.system import WORKFLOW
from agent_orchestrator.testing.faults import Faults
from agent_orchestrator.testing.simulation import RUN, Simulation
from agent_orchestrator.testing.world import LaunchCourse, Machine
from tests.simulation.seeds import seeds

PROMPT = str(Path(__file__).with_name("prompt.md"))
SEEDS_PER_TEST = 6
METERED = AgentChoice(
    name="meter",
    adapter="command",
    options={"argv": ["agent"], "output": "json-lines", "usage": {"cost_usd": "cost"}, "usage_counts": "sum"},
)
CLAUDE = AgentChoice(name="claude", options={"binary": "claude"})
REFUSED_S = 600
ON_ITS_WAY_US = 90 * US
"""A start that was admitted before anybody was refused may still be on its way, short of processes."""


def spec(agent: AgentChoice, chance: random.Random) -> WorkflowSpec:
    steps = [StepSpec(id=f"s{number}", agent="worker", prompt="p") for number in range(chance.randint(2, 6))]
    made = WorkflowSpec(name="simulated", steps=tuple(steps), agents={"": agent}, max_attempts=50)
    return with_prompts(made, {step.id: PROMPT for step in steps})


def spending(effect: str, chance: random.Random) -> LaunchCourse:
    """An agent that makes some calls, all of nearly the same size."""
    return calling(2.0, chance)


def spending_slowly(effect: str, chance: random.Random) -> LaunchCourse:
    """The same; each call takes longer than a look may be late."""
    return calling(30.0, chance)


def calling(call_s: float, chance: random.Random) -> LaunchCourse:
    count = chance.randint(1, 12)
    says = tuple((call_s * (n + 1), json.dumps({"cost": round(0.05 * chance.uniform(0.8, 1.0), 4)})) for n in range(count))
    return LaunchCourse(call_s * (count + 1), 0, {"status": "COMPLETED"}, chance.choice((0.0, 0.0, 12.0)), says)


def restless(state: Any, chance: random.Random) -> Directive | None:
    return Pause(id=f"said-{chance.random()}", now=chance.random() < 0.5) if chance.random() < 0.02 else None


def spent(simulation: Simulation) -> float:
    """By what the programs wrote themselves."""
    lines = [line for file in simulation.machine.folder.rglob("out") for line in file.read_text().splitlines()]
    return sum(float(json.loads(line)["cost"]) for line in lines)


@pytest.mark.parametrize("block", range(10))
def test_whatever_goes_wrong_each_call_is_counted_once(block: int, tmp_path: Path) -> None:
    for seed in seeds(block, SEEDS_PER_TEST):
        budget = Budget(run=Amounts(cost_usd=0.5))
        made = spec(METERED, random.Random(seed))
        simulation = Simulation(
            seed, folder=tmp_path / str(seed), system=WORKFLOW, spec=made, cast=spending, person=restless, budget=budget
        )
        try:
            state = simulation.play()
            assert state.lifecycle.stop == "completed", state.lifecycle.detail
            booked = sum(row.usage.cost_usd or 0.0 for row in simulation.machine.store.usage(RUN))
            assert booked == pytest.approx(spent(simulation)), "the ledger is what the agents wrote"
            assert not state.doing.holds
        except BaseException as error:
            error.add_note(f"seed {seed}")
            raise


@pytest.mark.parametrize("block", range(10))
def test_without_a_moment_in_which_nobody_watches_no_budget_is_passed_by_more_than_a_call(block: int, tmp_path: Path) -> None:
    for seed in seeds(block, SEEDS_PER_TEST):
        calm = Faults()
        made = spec(METERED, random.Random(seed))
        budget = Budget(run=Amounts(cost_usd=0.5))
        simulation = Watched(seed, tmp_path / str(seed), made, spending_slowly, calm, budget)
        assert simulation.play().lifecycle.stop == "completed"
        assert simulation.machine.store.reserved(RUN) == (0.0, 0), "nothing is set aside any more"


class Watched(Simulation):
    """Compares what is spent with the budget whenever the run is paused for it."""

    def __init__(
        self, seed: int, folder: Path, made: WorkflowSpec, cast: Any, faults: Faults, budget: Budget | None = None
    ) -> None:
        super().__init__(
            seed,
            folder=folder,
            system=WORKFLOW,
            spec=made,
            cast=cast,
            person=lambda state, chance: None,
            faults=faults,
            budget=budget,
        )

    def _first_words(self) -> Any:
        state = self.state()
        if state.lifecycle.stop == "budget_exhausted":
            assert spent(self) <= state.doing.budget.run.cost_usd + 0.05
        return super()._first_words()


def refusing(effect: str, chance: random.Random) -> LaunchCourse:
    """Refused now and then; the machine fills in until when."""
    return refused(0) if chance.random() < 0.4 else worked()


def refused(until_us: int) -> LaunchCourse:
    told = {"status": "rejected", "rateLimitType": "five_hour", "resetsAt": -(-until_us // US)}
    lines: list[dict[str, Any]] = [
        {"type": "rate_limit_event", "rate_limit_info": told},
        {"type": "result", "subtype": "success", "is_error": True, "result": "429", "api_error_status": 429},
    ]
    return LaunchCourse(2.0, 1, None, says=tuple((1.0, json.dumps(line)) for line in lines))


def worked() -> LaunchCourse:
    report = {"status": "COMPLETED"}
    result = {"type": "result", "subtype": "success", "is_error": False, "result": "ok", "structured_output": report}
    return LaunchCourse(2.0, 0, None, says=((1.0, json.dumps(result)),))


class Account(Machine):
    """A machine whose account is refused now and then, and which no agent may bother while that is known."""

    def begin(self, order: Order) -> None:
        now_us = self.clock.now_us()
        known = [window for window in MemoryStore.windows(self.store) if window.seen_us < now_us - ON_ITS_WAY_US]
        closed = any(now_us < window.resets_us for window in known)
        assert not closed, f"{order.effect} was started though its account was known to be refused"
        super().begin(order)
        process = self.processes[order.effect]
        if process.part.exit_code == 1:
            process.part = refused(self.clock.now_us() + REFUSED_S * US)


@pytest.mark.parametrize("block", range(10))
def test_nobody_starts_on_an_account_that_is_known_to_be_refused(block: int, tmp_path: Path) -> None:
    for seed in seeds(block, SEEDS_PER_TEST):
        simulation = Watched(seed, tmp_path / str(seed), spec(CLAUDE, random.Random(seed)), refusing, Faults(seed))
        simulation.machine.__class__ = Account
        try:
            state = simulation.play()
            assert state.lifecycle.stop == "completed", state.lifecycle.detail
            lost = simulation.faults.crashes
            assert max(step.attempts for step in state.steps.values()) <= 1 + lost, "only what a crash took costs an attempt"
        except BaseException as error:
            error.add_note(f"seed {seed}")
            raise
