"""`Simulation(seed)`: whole engines on a simulated machine, with everything going wrong that can.

Crash between any two actions, freeze and wake of a driver, a second driver, print-outs that come back empty after a
power cut, late outcomes, stops while stopping, full disk, busy store, clock jumps both ways. Deterministic: a seed
that fails fails again. Invariants are checked while it runs (in `world`) and at the end (here).
"""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from agent_orchestrator.core.budget import Amounts, Budget
from agent_orchestrator.core.events import LimitsSet, StopReason
from agent_orchestrator.core.ids import EffectId, RunId
from agent_orchestrator.core.inputs import Directive, Given, Resume, SetLimits
from agent_orchestrator.core.summary import Summary
from agent_orchestrator.core.system import Context, System
from agent_orchestrator.core.who import Surface, Who
from agent_orchestrator.engine.engine import Engine, Silent, World
from agent_orchestrator.engine.journal import Folded, decode_events, encode_events, fold
from agent_orchestrator.engine.redact import Redactor
from agent_orchestrator.errors import Conflict
from agent_orchestrator.projections.writer import encode_document
from agent_orchestrator.store.port import Append, NewRun, StoredRun
from agent_orchestrator.testing.branches import SimulatedGit
from agent_orchestrator.testing.clock import SteppedLoop
from agent_orchestrator.testing.faults import Crash, Faults
from agent_orchestrator.testing.snapshots import check_snapshots
from agent_orchestrator.testing.world import LaunchCourse, Machine, SimulatedLaunches

PERSON = Who(surface=Surface.LIBRARY, user="somebody")
RUN = RunId("simulated")
TURNS_MAX = 200_000
SNAPSHOT_ROWS = 3
"""So few that each new process finds a snapshot to begin with."""

Person = Callable[[Any, random.Random], Directive | None]
"""Looks at the run's state and says something to it, or nothing."""


def _anything(state: Any) -> None:
    """Accept every state."""


class _Process:
    """One simulated orchestrator process."""

    def __init__(self, simulation: Simulation, inputs: list[Given]) -> None:
        self.loop = SteppedLoop(simulation.machine.clock)
        self.frozen = False
        self.alone = True
        self.idle_s: float | None = 0.0
        self._coroutine = self._main(simulation, inputs)
        self.task = self.loop.create_task(self._coroutine)

    async def _main(self, simulation: Simulation, inputs: list[Given]) -> Summary:
        machine = simulation.machine
        world = World(
            store=machine.store,
            launches=SimulatedLaunches(machine),
            clock=machine.clock,
            boot=str(machine.boot),
            child_env=lambda names: {},
            redactor=Redactor(()),
            tree_of=lambda workdir, scratch: "tree",
            threads=False,
            snapshot_rows=SNAPSHOT_ROWS,
        )
        if (git := simulation.git) is not None:
            world = msgspec.structs.replace(world, save_tree=git.save_tree, merges=git)
        return await Engine(world, Silent()).drive(simulation.run, simulation.system, lambda driver: True, inputs)

    def step(self) -> bool:
        """Take one turn; return False when the process has ended by itself."""
        try:
            self.idle_s = self.loop.step()
        except Conflict:
            return False
        if self.task.done():
            error = self.task.exception()
            if error is not None and not isinstance(error, Conflict):
                raise error
            return False
        return True

    def kill(self) -> None:
        """Kill it without a word: nothing of it runs any more."""
        self.loop.set_exception_handler(lambda loop, about: None)
        self.loop.close()
        self._coroutine.close()


class Simulation:
    """One run of a system under one seed."""

    def __init__(
        self,
        seed: int,
        *,
        folder: Path,
        system: System,
        spec: Any,
        cast: Callable[[EffectId, random.Random], LaunchCourse],
        person: Person,
        faults: Faults | None = None,
        budget: Budget | None = None,
        git: Callable[[Faults], SimulatedGit] | None = None,
        check: Callable[[Any], None] = _anything,
    ) -> None:
        self._random = random.Random(seed)
        self.faults = faults or Faults(seed)
        self.git = git(self.faults) if git is not None else None
        self.machine = Machine(seed, folder / "launches", self.faults, cast)
        self.system, self._person = system, person
        self._check = check
        """Looks at the state after each row of the journal: every moment that a reader or a new process could find."""
        self._processes: list[_Process] = []
        self._rude = faults is None
        self._seen = -1
        self.budgets = 0
        """How often the run was given a higher budget."""
        self._settled = False
        home = folder / "repo"
        home.mkdir(parents=True)
        context = Context(run=RUN, home=str(home), workdir=str(home), created_us=self.machine.clock.now_us())
        self.run = self._create(spec, context, budget)
        self._folded = Folded(system, system.fresh(spec, context), 0, context.created_us)
        """The run as its journal has it, row by row as they come."""

    def _create(self, spec: Any, context: Context, budget: Budget | None) -> StoredRun:
        events = list(self.system.begin(spec, context))
        if budget is not None:
            events.append(LimitsSet(limits=budget))
        folded = Folded(self.system, self.system.fresh(spec, context), 0, context.created_us)
        folded.apply(events, context.created_us)
        summary = folded.summary()
        first = Append(run=RUN, expected_seq=0, at_us=context.created_us, body=encode_events(events), summary=summary)
        new = NewRun(system=self.system.name, name="simulated", context=context, spec=msgspec.json.encode(spec), summary=summary)
        store = self.machine.store
        self.faults.calm = True  # The faults begin when the run exists.
        store.create(new, first)
        self.faults.calm, self.faults.boundaries = False, 0
        found = store.run(RUN)
        assert found is not None
        return found

    def state(self) -> Any:
        """Return the run's state as its journal has it."""
        store = self.machine.store
        if self._seen != store.commits:
            self._seen = store.commits
            for seq, at_us, body in store.rows(RUN, self._folded.seq):
                self._folded.add(seq, at_us, decode_events(self.system, body))
                self._check(self._folded.state)
        return self._folded.state

    def play(self, chaos_turns: int = 3_000) -> Any:
        """Play until the run has ended; return its last state. Raises AssertionError when an invariant breaks."""
        try:
            for turn in range(TURNS_MAX):
                if turn == chaos_turns:
                    self.faults.calm = True
                    for process in self._processes:
                        process.frozen = False
                if self._turn():
                    break
            else:
                raise AssertionError(f"the run does not end: {self.system.summary(self.state())}")
            self._check_end()
            return self.state()
        finally:
            for process in self._processes:
                process.kill()

    def _turn(self) -> bool:
        """Do one thing; return True when the run has ended and a process that took it up has printed it."""
        machine = self.machine
        machine.pass_time()
        if not self._processes:
            if self._settled and self.state().lifecycle.ended:
                return True
            self._settled = False
            self._processes.append(_Process(self, self._first_words()))
        if self._rude and not self.faults.calm:
            self._misfortune()
        awake = [process for process in self._processes if not process.frozen]
        if not awake:
            machine.clock.advance(1.0)
            return False
        process = self._random.choice(awake)
        try:
            if not process.step():
                self._remove(process)
                ended_well = process.task.done() and process.task.exception() is None
                self._settled = ended_well and process.alone
        except Crash:
            self._remove(process)
        self._let_time_pass()
        return False

    def _remove(self, process: _Process) -> None:
        process.kill()
        self._processes.remove(process)

    def _first_words(self) -> list[Given]:
        """Go on after a pause; with twice the budget, where that was the reason."""
        lifecycle, budget = self.state().lifecycle, self.state().doing.budget
        if lifecycle.running or lifecycle.ended:
            return []
        words: list[Given] = [Resume(id=f"resume-{self._random.random()}")]
        if lifecycle.stop is StopReason.BUDGET_EXHAUSTED and budget.run.cost_usd is not None:
            self.budgets += 1
            raised = Budget(run=Amounts(cost_usd=2 * budget.run.cost_usd))
            words.insert(0, SetLimits(id=f"limits-{self._random.random()}", limits=raised))
        return words

    def _let_time_pass(self) -> None:
        """Let the clock jump to the next thing that will happen, when nobody has anything to do now."""
        waits = [process.idle_s for process in self._processes if not process.frozen]
        if not waits or 0 in waits:
            return
        self._speak()
        ahead = [wait for wait in (*waits, self.machine.next_end_s()) if wait is not None]
        # Timers may be late, as on a busy machine; that also keeps polls from filling the simulation.
        late_s = self._random.choice((0.0, 0.5, 3.0, 10.0))
        self.machine.clock.advance(max(0.001, late_s, min(ahead, default=1.0)))

    def _speak(self) -> None:
        said = self._person(self.state(), self._random)
        if said is not None:
            body = msgspec.json.encode(msgspec.structs.replace(said, who=PERSON))
            self.machine.store.post(RUN, said.id, body, self.machine.clock.now_us())
            if self._random.random() < 0.3:
                self.machine.store.post(RUN, said.id, body, self.machine.clock.now_us())

    def _misfortune(self) -> None:
        chance = self._random.random()
        if chance < 0.002:
            self.machine.clock.set_wall(self._random.uniform(-86_400, 86_400))
        elif chance < 0.006 and self._processes:
            process = self._random.choice(self._processes)
            process.frozen = not process.frozen
        elif chance < 0.008 and len(self._processes) == 1:
            # A second driver beside a frozen or living one: only the journal's sequence and the launch marks fence it.
            # On one host a lock keeps it away; here, whatever either printed last, the run is taken up once more.
            self._processes.append(_Process(self, self._first_words()))
            for one in self._processes:
                one.alone = False
        elif chance < 0.009:
            self._power_cut()

    def _power_cut(self) -> None:
        for process in list(self._processes):
            self._remove(process)
        self._settled = False
        self.machine.reboot()
        for file in Path(self.run.context.home).rglob("*.json"):
            if self._random.random() < 0.5:
                file.write_bytes(b"\0" * file.stat().st_size if self._random.random() < 0.5 else b"")

    def _check_end(self) -> None:
        state, clock = self.state(), self.machine.clock
        again = fold(self.machine.store, self.system, self.run, len(self.machine.store.rows(RUN))).state
        for mine, other in zip(
            self.system.documents(state, clock.now_us()), self.system.documents(again, clock.now_us()), strict=True
        ):
            assert encode_document(mine) == encode_document(other), "folding is not deterministic"
            printed = Path(self.run.context.home, mine.path).read_bytes()
            assert printed == encode_document(mine), f"{mine.path} is not the journal's state"
        if self.system.snapshots is not None:
            check_snapshots(self.system, self.machine.store, self.run)
        assert not len(state.doing), "an ended run wants nothing"
        alive = [process.effect for process in self.machine.processes.values() if process.alive]
        assert not alive, f"an ended run left {alive} alive"
        last = 0
        for _, at_us, _ in self.machine.store.rows(RUN):
            assert at_us >= last, "time goes back in the journal"
            last = at_us
