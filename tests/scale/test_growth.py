"""The cost of a tick does not grow with the run: lines of code executed and bytes allocated, never time, in every system.

The last tenth of a run is compared with its first. Lines show loops over all units, bytes show copies of what only grows.
"""

from __future__ import annotations

import random
import statistics
import sys
import tracemalloc
from collections.abc import Callable
from typing import Any, NamedTuple

import msgspec
import pytest

from agent_orchestrator.core.effects import AgentChoice, Checkpoint, RunAgent, RunCheck
from agent_orchestrator.core.events import TakenUp
from agent_orchestrator.core.ids import RunId
from agent_orchestrator.core.inputs import CheckEnded, CheckpointEnded, Outcome
from agent_orchestrator.core.system import Context, System
from agent_orchestrator.engine.journal import Folded, encode_events
from agent_orchestrator.systems.loop.spec import LoopSpec
from agent_orchestrator.systems.loop.system import LOOP
from agent_orchestrator.systems.phases.parse import parse_document
from agent_orchestrator.systems.phases.spec import PhasesSpec
from agent_orchestrator.systems.phases.system import PHASES
from agent_orchestrator.systems.swarm.spec import BeadSpec, SwarmSpec
from agent_orchestrator.systems.swarm.system import SWARM
from agent_orchestrator.systems.team.spec import TeamSpec, split_requirements
from agent_orchestrator.systems.team.system import TEAM
from agent_orchestrator.systems.workflow.spec import ItemLoop, StepSpec, WorkflowSpec
from agent_orchestrator.systems.workflow.system import WORKFLOW
from agent_orchestrator.testing.clock import START_US
from agent_orchestrator.testing.outcomes import Reports, invent
from tests.scenarios.team_world import group, plan

COMMAND = AgentChoice(name="command", options={"argv": ["agent"]})
BOUND = 1.3
US = 1_000_000
THOUSANDS, MEASURED = 3_000, 40


class Large(NamedTuple):
    """A run with many units, and what its agents report."""

    system: System
    spec: Any
    reports: Reports | None = None


def workflow(length: int, *, parallel: bool) -> Large:
    steps = tuple(
        StepSpec(id=f"s{number}", agent="w", prompt="p", needs=(f"s{number - 1}",) if number and not parallel else ())
        for number in range(length)
    )
    spec = WorkflowSpec(name="w", agents={"": COMMAND}, max_parallel=length if parallel else 1, steps=steps)
    return Large(WORKFLOW, spec)


def items(count: int) -> Large:
    step = StepSpec(id="s", agent="w", prompt="p", loop=ItemLoop(items=tuple(range(count)), max_iterations=count))
    spec = WorkflowSpec(name="w", agents={"": COMMAND}, steps=(step,))
    return Large(WORKFLOW, spec, lambda effect, chance: {"artifacts": [f"{effect.variables['item']}.txt"], "logs": ["done"]})


def loop(iterations: int) -> Large:
    spec = LoopSpec(task="t", completion="x", command="make", agent=COMMAND, max_iterations=iterations)
    return Large(LOOP, spec, lambda effect, chance: {"summary": f"tried {chance.random()}"})


def phases(tasks: int) -> Large:
    lines = ["# Task: t", "## Goal", "x", "## Phases & Tasks"]
    for phase in range(1, 6):
        lines.append(f"### Phase {phase}: P")
        for task in range(1, tasks // 5 + 1):
            lines += [f"#### Task {phase}.{task}: T", "**Success Criteria**:", "- [ ] It is good"]
    lines += ["## Supervisor Checks", "- **Enable**: no", "## Outer Ralph Loop", "- **Enable**: no"]
    spec = PhasesSpec(document="t.md", plan=parse_document("\n\n".join(lines), "t.md").plan, agents={"": COMMAND}, branch="b")
    return Large(PHASES, spec, lambda effect, chance: {"criteria": {"it_is_good": True}})


def team(groups: int) -> Large:
    planned = plan(*(group(f"G{number}") for number in range(groups)))
    words = {"final": "DONE", "confirm": "APPROVED", "develop": "READY_FOR_QA", "qa": "PASS", "review": "APPROVED"}

    def reports(effect: RunAgent, chance: random.Random) -> dict[str, Any]:
        kind = effect.id.rsplit(".", 1)[1]
        return planned if kind == "plan" else {"status": words[kind], "summary": "fine", "feedback": "fine"}

    spec = TeamSpec(requirements="do it", wanted=split_requirements("do it"), into="main", agents={"": COMMAND})
    return Large(TEAM, spec, reports)


def swarm(beads: int) -> Large:
    made = (BeadSpec(id=f"b{n}", prompt=f"do {n}", agent=COMMAND, repo="/repo", branch=f"w/b{n}") for n in range(beads))
    return Large(SWARM, SwarmSpec(beads=tuple(made), max_agents=10))


RUNS: dict[str, Callable[[], Large]] = {
    "workflow in a row": lambda: workflow(150, parallel=False),
    "workflow side by side": lambda: workflow(150, parallel=True),
    "items": lambda: items(150),
    "loop": lambda: loop(50),
    "phases": lambda: phases(60),
    "team": lambda: team(17),
    "swarm": lambda: swarm(150),
}


class Played:
    """One run, driven tick by tick as the engine does it, without a world."""

    def __init__(self, large: Large) -> None:
        self._system, self._reports = large.system, large.reports
        self._now_us, self._chance, self._ticks = START_US, random.Random(1), 0
        context = Context(run=RunId("r"), home="/repo", workdir="/repo", created_us=START_US)
        self.folded = Folded(large.system, large.system.fresh(large.spec, context), 0, START_US)
        begun = [*large.system.begin(large.spec, context), TakenUp(boot="1", host="here", pid=1, version="")]
        self.folded.apply(begun, START_US)
        self._advance()

    def _advance(self) -> list[Any]:
        events: list[Any] = []
        while more := self._system.advance(self.folded.state, self._now_us):
            self.folded.apply(more, self._now_us)
            events += more
        return events

    def outcome(self) -> Outcome:
        """Return a good outcome of what is at work, but for the check of a loop; trees differ from tick to tick."""
        self._ticks += 1
        self._now_us += US
        effect = next(iter(self.folded.state.doing))
        made = invent(effect, self._chance, self._now_us, kindly=True, halting=False, reports=self._reports)
        if isinstance(made, CheckpointEnded) and isinstance(effect, Checkpoint):
            return msgspec.structs.replace(made, tree=f"{self._ticks:040}")
        if isinstance(made, CheckEnded) and isinstance(effect, RunCheck) and self._system is LOOP:
            return msgspec.structs.replace(made, exit_code=1, tail=f"failure {self._ticks}")
        return made

    def tick(self, outcome: Outcome) -> None:
        events = list(self.folded.decide(outcome, self._now_us))
        self.folded.apply(events, self._now_us)
        encode_events([*events, *self._advance()])
        self.folded.summary()
        self.folded.state.doing.take_changes()


def measured(act: Callable[[], None]) -> tuple[int, int]:
    """The lines of Python that it executes, and the bytes that it has at most beyond those at its beginning."""
    lines = 0

    def trace(frame: Any, event: str, arg: object) -> Any:
        nonlocal lines
        lines += event == "line"
        return trace

    before_bytes, before_trace = tracemalloc.get_traced_memory()[0], sys.gettrace()
    tracemalloc.reset_peak()
    sys.settrace(trace)
    try:
        act()
    finally:
        sys.settrace(before_trace)
    return lines, tracemalloc.get_traced_memory()[1] - before_bytes


@pytest.mark.parametrize("name", RUNS)
def test_a_tick_costs_the_same_at_the_end_of_a_run_as_at_its_beginning(name: str) -> None:
    run, costs = Played(RUNS[name]()), []
    tracemalloc.start()
    try:
        while not run.folded.state.lifecycle.ended:
            outcome = run.outcome()
            costs.append(measured(lambda given=outcome: run.tick(given)))  # type: ignore[misc]
    finally:
        tracemalloc.stop()
    tenth = len(costs) // 10
    assert tenth >= 10
    for kind in range(2):
        # The median: a thread of this process that another test left may take memory in between.
        first, last = (statistics.median(cost[kind] for cost in some) for some in (costs[2:tenth], costs[-tenth:-2]))
        assert last <= BOUND * first


@pytest.mark.parametrize("name", ["items", "loop"])
def test_one_unit_costs_the_same_after_thousands_of_its_launches(name: str) -> None:
    run = Played(items(THOUSANDS) if name == "items" else loop(THOUSANDS))
    costs = []
    for part in (MEASURED, THOUSANDS - 3 * MEASURED, MEASURED):
        cost = []
        for _ in range(part):
            outcome = run.outcome()
            if part != MEASURED:
                run.tick(outcome)
                continue
            tracemalloc.start()
            try:
                cost.append(measured(lambda given=outcome: run.tick(given)))  # type: ignore[misc]
            finally:
                tracemalloc.stop()
        costs.append([statistics.median(one[kind] for one in cost[2:]) for kind in range(2)] if cost else [])
    first, _, last = costs
    assert all(later <= BOUND * earlier for earlier, later in zip(first, last, strict=True)), (first, last)
