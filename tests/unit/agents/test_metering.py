"""The consumption of a launch: differences of session totals, prices for tokens, and never a zero for what is unknown."""

from __future__ import annotations

import pytest

from agent_orchestrator.agents.options import price_usage
from agent_orchestrator.core.effects import AgentChoice
from agent_orchestrator.core.ids import EffectId, RunId
from agent_orchestrator.core.inputs import Usage
from agent_orchestrator.engine.budget.usage import own_part
from agent_orchestrator.store.port import StoredUsage

PRICES = {"default": {"input": 2.0, "output": 10.0, "cache_read": 0.2}, "big": {"input": 20.0, "output": 100.0}}


def row(usage: Usage) -> StoredUsage:
    return StoredUsage(run=RunId("r"), unit="u", effect=EffectId("r/u/i0.a1.l1.agent"), agent="claude", at_us=1, usage=usage)


def test_a_sessions_total_is_charged_once() -> None:
    first = Usage(input_tokens=100, output_tokens=10, cost_usd=0.5, session="s")
    total = Usage(input_tokens=250, output_tokens=30, cost_usd=1.25, session="s")
    assert own_part(total, [row(first)]) == Usage(input_tokens=150, output_tokens=20, cost_usd=0.75, session="s")


def test_a_launch_that_did_not_say_is_charged_with_the_next_that_does() -> None:
    assert own_part(Usage(input_tokens=250), [row(Usage(session="s"))]) == Usage(input_tokens=250)


def test_a_total_below_what_was_counted_is_none() -> None:
    usage = Usage(input_tokens=50, output_tokens=5)
    assert own_part(usage, [row(Usage(input_tokens=100, output_tokens=1))]) == usage


def test_tokens_are_priced_by_model_or_by_default() -> None:
    used = Usage(model="small", input_tokens=1_000_000, output_tokens=100_000, cache_read_tokens=500_000)
    assert price_usage(used, AgentChoice(name="codex", options={"prices": PRICES})).cost_usd == pytest.approx(2.0 + 1.0 + 0.1)
    big = Usage(input_tokens=1_000, output_tokens=1_000)
    assert price_usage(big, AgentChoice(name="codex", model="big", options={"prices": PRICES})).cost_usd == pytest.approx(0.12)


@pytest.mark.parametrize(
    ("usage", "prices"),
    [
        (Usage(input_tokens=1, output_tokens=1), {}),
        (Usage(input_tokens=1), PRICES),
        (Usage(), PRICES),
        (Usage(input_tokens=1, output_tokens=1, cache_write_tokens=5), PRICES),
        (Usage(model="other", input_tokens=1, output_tokens=1), {"big": PRICES["big"]}),
    ],
)
def test_what_cannot_be_priced_stays_unknown(usage: Usage, prices: object) -> None:
    assert price_usage(usage, AgentChoice(name="codex", options={"prices": prices})).cost_usd is None


def test_a_cost_that_the_agent_reports_is_believed() -> None:
    used = Usage(input_tokens=1, output_tokens=1, cost_usd=7.0)
    assert price_usage(used, AgentChoice(name="claude", options={"prices": PRICES})) == used
