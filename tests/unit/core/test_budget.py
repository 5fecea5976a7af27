"""Budgets: the rest, the reservations, and the call that does not fit any more."""

from __future__ import annotations

import random

import pytest

from agent_orchestrator.core.budget import CALL_GROWTH, CALLS_AHEAD, Amounts, Balance, Budget, Call, Scope, past_percent


def run_of(cost_usd: float | None = None, tokens: int | None = None) -> Scope:
    return Scope("run", "run", Amounts(cost_usd=cost_usd, tokens=tokens))


def test_before_the_first_call_is_known_one_launch_has_all_there_is() -> None:
    balance, run = Balance(), run_of(1.0)
    assert balance.reserve("a", (run,), balance.next_call("m")) is None
    short = balance.reserve("b", (run,), balance.next_call("m"))
    assert short is not None
    assert str(short) == "$0.00 of the run's budget of $1.00 is spent, $1.00 is set aside for agents at work"


def test_when_the_first_call_is_known_the_others_may_start() -> None:
    balance, run = Balance(), run_of(1.0)
    balance.reserve("a", (run,), balance.next_call("m"))
    balance.learn("m", Call(0.1))
    assert balance.use("a", Call(0.1), balance.next_call("m")) is None
    assert balance.reservations["a"].cost_usd == pytest.approx(0.1 + CALLS_AHEAD * 0.1 * CALL_GROWTH)
    assert balance.reserve("b", (run,), balance.next_call("m"), CALLS_AHEAD) is None
    assert balance.room((run,), "cost_usd") == pytest.approx(0.3)


def test_a_launch_that_finds_no_room_for_another_call_is_told_which_limit_it_is() -> None:
    balance, run, step = Balance(), run_of(1.0), Scope("step", "step:a", Amounts(cost_usd=0.2))
    balance.learn("m", Call(0.12))
    assert balance.reserve("a", (run, step), balance.next_call("m")) is None
    short = balance.use("a", Call(0.12), balance.next_call("m"))
    assert short is not None
    assert str(short) == "$0.12 of the step's budget of $0.20 is spent, and another call may take $0.18"
    assert balance.reservations["a"].cost_usd == pytest.approx(0.12), "only what it used stays set aside"


def test_who_is_alone_may_make_a_call_as_large_as_those_before_though_larger_ones_would_not_fit() -> None:
    balance, run = Balance(), run_of(1.0)
    balance.settle("a", ["run"], Call(0.6))
    balance.learn("m", Call(0.3))
    assert balance.reserve("b", (run,), balance.next_call("m")) is None
    assert balance.reservations["b"].cost_usd == pytest.approx(0.4), "and has all there is for it"
    balance.settle("b", ["run"], Call(0.3))
    assert balance.reserve("c", (run,), balance.next_call("m")) is not None


def test_what_launches_at_work_have_used_is_counted_together_until_they_end() -> None:
    balance, run = Balance(), run_of(1.0, 1000)
    for name in ("a", "b"):
        balance.learn("m", Call(0.01, 10))
        balance.reserve(name, (run,), balance.next_call("m"))
        balance.use(name, Call(0.3, 300), balance.next_call("m"))
        balance.use(name, Call(0.4, 350), balance.next_call("m"))
    assert balance.used("run").cost_usd == pytest.approx(0.8)
    assert balance.used("run").tokens == 700
    balance.settle("a", ["run"], Call(0.4, 350))
    assert balance.used("run").cost_usd == pytest.approx(0.8), "no launch counts twice"
    assert balance.used("run").tokens == 700
    balance.release("b")
    assert balance.used("run").cost_usd == pytest.approx(0.4) == balance.spent("run").cost_usd


def test_tokens_are_counted_like_money() -> None:
    balance, run = Balance(), run_of(tokens=1000)
    balance.learn("m", Call(None, 400))
    assert balance.reserve("a", (run,), balance.next_call("m")) is None
    short = balance.reserve("b", (run,), balance.next_call("m"))
    assert short is not None
    assert "600 tokens is set aside" in str(short)


def test_what_is_settled_is_spent_and_no_longer_set_aside() -> None:
    balance, run = Balance(), run_of(1.0)
    balance.reserve("a", (run,), Call(0.3))
    balance.settle("a", ["run", "step:a"], Call(0.25, 10))
    assert balance.spent("run").cost_usd == balance.spent("step:a").cost_usd == 0.25
    assert balance.room((run,), "cost_usd") == pytest.approx(0.75)


def test_what_did_not_say_its_cost_is_counted_as_unknown_not_as_nothing() -> None:
    balance = Balance()
    balance.settle("a", ["run"], Call(None, 10))
    assert (balance.spent("run").cost_usd, balance.spent("run").unknown) == (0.0, 1)


@pytest.mark.parametrize("seed", range(400))
def test_four_side_by_side_never_pass_their_budget_by_more_than_one_call(seed: int) -> None:
    """Calls of any size up to 1.4 times the largest before, in any order, each seen when the next is under way already.

    A call that is broken off counts in full.
    """
    chance, balance, run = random.Random(seed), Balance(), run_of(1.0)
    first = chance.choice((0.001, 0.02, 0.1, 0.3, 0.9))
    total = largest = seen = 0.0
    used = dict.fromkeys("abcd", 0.0)
    calling: dict[str, float] = {}

    def call(name: str) -> None:
        nonlocal total, largest
        calling[name] = chance.uniform(0.2, 1.0) * (1.4 * seen or first)
        total, largest = total + calling[name], max(largest, calling[name])

    for _ in range(100_000):
        for name in used:
            if name not in calling and balance.reserve(name, (run,), balance.next_call("m"), CALLS_AHEAD) is None:
                call(name)
        if not calling:
            break
        name = chance.choice(sorted(calling))
        cost = calling.pop(name)
        used[name], seen = used[name] + cost, max(seen, cost)
        over = chance.random() < 0.1
        if not over:
            call(name)  # Before anybody has seen that the last one is over.
        balance.learn("m", Call(cost))
        if over or balance.use(name, Call(used[name]), balance.next_call("m")) is not None:
            balance.settle(name, ["run"], Call(used[name] + calling.pop(name, 0.0)))
            used[name] = 0.0
    assert not calling
    assert total <= 1.0 + largest


def test_a_share_is_warned_of_once() -> None:
    assert past_percent(0.74, 1.0, 0) is None
    assert past_percent(0.76, 1.0, 0) == 75
    assert past_percent(0.76, 1.0, 75) is None
    assert past_percent(0.95, 1.0, 75) == 90
    assert past_percent(0.95, 1.0, 0) == 90


def test_only_what_is_given_overrides() -> None:
    kept = Budget(run=Amounts(cost_usd=1.0, wall_s=60.0), allow_unmetered=True)
    assert kept.override(Budget(run=Amounts(cost_usd=5.0))) == Budget(
        run=Amounts(cost_usd=5.0, wall_s=60.0), allow_unmetered=True
    )
    assert not Budget().is_set
