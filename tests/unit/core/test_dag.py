"""Readiness kept incrementally is the same as readiness computed anew each time."""

from __future__ import annotations

import random

import pytest

from agent_orchestrator.core.dag import Dag


class Naive:
    """The same graph, thought about from the beginning at every question."""

    def __init__(self, needs: dict[str, list[str]]) -> None:
        self.needs, self.taken, self.done = needs, set[str](), set[str]()

    def ready(self) -> list[str]:
        free = [unit for unit in self.needs if unit not in self.taken and unit not in self.done]
        return [unit for unit in free if all(need in self.done for need in self.needs[unit])]

    def below(self, unit: str) -> list[str]:
        found = {unit}
        for _ in self.needs:
            found |= {other for other, above in self.needs.items() if found & set(above)}
        return [other for other in self.needs if other in found]

    def above(self, unit: str) -> list[str]:
        return [other for other in self.needs if unit in self.below(other)]


def a_graph(chance: random.Random) -> dict[str, list[str]]:
    graph: dict[str, list[str]] = {}
    for number in range(chance.randint(1, 12)):
        graph[f"s{number}"] = chance.sample(list(graph), chance.randint(0, min(3, len(graph))))
    return graph


@pytest.mark.parametrize("seed", range(100))
def test_whatever_is_done_in_whatever_order_it_agrees_with_the_naive_graph(seed: int) -> None:
    chance = random.Random(seed)
    needs = a_graph(chance)
    dag, naive = Dag(needs), Naive(needs)
    for _ in range(80):
        ready = naive.ready()
        assert dag.peek() == (ready[0] if ready else None)
        assert (dag.taken, dag.finished) == (len(naive.taken), len(naive.done))
        unit = chance.choice(list(needs))
        act = chance.random()
        if act < 0.45 and ready:
            dag.take(ready[0])
            naive.taken.add(ready[0])
        elif act < 0.85 and naive.taken:
            unit = chance.choice(sorted(naive.taken))
            dag.finish(unit)
            naive.taken.discard(unit)
            naive.done.add(unit)
        else:
            below = dag.downstream(unit)
            assert below == naive.below(unit)
            assert dag.upstream(unit) == naive.above(unit)
            dag.reset(below)
            naive.taken -= set(below)
            naive.done -= set(below)


def test_ready_units_come_in_the_order_of_the_file() -> None:
    dag = Dag({"c": [], "a": [], "b": []})
    order = []
    while (unit := dag.peek()) is not None:
        dag.take(unit)
        order.append(unit)
    assert order == ["c", "a", "b"]


def test_finishing_twice_counts_once() -> None:
    dag = Dag({"a": [], "b": ["a"], "c": ["a", "b"]})
    dag.finish("a")
    dag.finish("a")
    assert dag.finished == 1
    assert dag.peek() == "b"


def test_resetting_a_unit_blocks_what_depends_on_it_again() -> None:
    dag = Dag({"a": [], "b": ["a"]})
    dag.finish("a")
    dag.reset(["a"])
    assert dag.peek() == "a"
    dag.take("a")
    assert dag.peek() is None


class Looked(str):
    """A unit that counts how often it is looked up."""

    __slots__ = ()
    times = 0

    def __hash__(self) -> int:
        Looked.times += 1
        return super().__hash__()


def test_the_first_look_after_a_long_fold_costs_what_is_ready_and_not_what_ever_was() -> None:
    units = [Looked(f"s{number}") for number in range(1000)]
    dag = Dag({unit: units[number - 1 : number] if number else [] for number, unit in enumerate(units)})
    for unit in units[:-1]:
        dag.take(unit)
        dag.finish(unit)
    Looked.times = 0
    assert dag.peek() == "s999"
    assert Looked.times <= 5
