"""Random workflows under random luck. `World.check` holds after every tick; in the end every run can be brought to an end."""

from __future__ import annotations

import random
from collections.abc import Callable

import msgspec
import pytest

from agent_orchestrator.core.effects import AskHuman, AwaitGates, Effect, ReadFile, RunAgent, RunCheck, Wait
from agent_orchestrator.core.failure import FailureKind
from agent_orchestrator.core.inputs import Abort, Answer, Edited, FileRead, GatesOpened, HumanAnswered, Pause, Resume, TimerFired
from agent_orchestrator.systems.workflow.parse import parse
from agent_orchestrator.systems.workflow.system import WORKFLOW
from tests.scenarios.world import World, failing

TICKS = 60
KINDS = [kind for kind in FailureKind if kind is not FailureKind.STOPPED]


def a_workflow(luck: random.Random) -> str:
    """Up to nine steps, each with some of everything that a step can have."""
    above: dict[str, set[str]] = {}
    lines = []
    for number in range(luck.randint(1, 9)):
        name = f"s{number}"
        needs = luck.sample(list(above), luck.randint(0, min(2, len(above))))
        above[name] = {*needs, *(step for need in needs for step in above[need])}
        keys = [f"id: {name}", "agent: x", "prompt: p.md", f"needs: [{', '.join(needs)}]"]
        if above[name]:
            target = luck.choice(sorted(above[name]))
            keys += luck.sample([f"loop_back_to: {target}", f"when: {target}.status == 'COMPLETED'", ""], 1)
            keys += luck.sample([f"loop: {{items_from_step: {target}}}", "loop: {items_from_artifact: f}", "", "", ""], 1)
        keys += luck.sample(["check: make", "", ""], 1) + luck.sample(["human_in_the_loop: true", "", ""], 1)
        keys += luck.sample(["gates: [g]", "", ""], 1) + luck.sample(["max_attempts: 1", "", ""], 1)
        lines.append(f"  - {{{', '.join(key for key in keys if key)}}}")
    return "name: random\nsteps:\n" + "\n".join(lines)


def perform(world: World, effect: Effect, luck: random.Random, kindly: bool) -> None:
    """The effect ends: well if `kindly`, else anyhow."""
    bad = not kindly and luck.random() < 0.3
    if isinstance(effect, RunAgent):
        stopped = world.state.lifecycle.halting and luck.random() < 0.7
        if stopped:
            world.agent(effect.unit, failure=failing(FailureKind.STOPPED))
        elif bad:
            world.agent(effect.unit, failure=failing(luck.choice(KINDS)))
        else:
            gate = not kindly and luck.random() < 0.3
            world.agent(
                effect.unit, {"gate_failure": gate, "artifacts": luck.sample(["a", "b", "/etc/c"], 2), "metrics": {"n": 1}}
            )
    elif isinstance(effect, RunCheck):
        kinds = [FailureKind.STOPPED, FailureKind.LOST, FailureKind.TIMEOUT]
        failure = failing(luck.choice(kinds)) if bad and luck.random() < 0.5 else None
        after = luck.choice(["t", "u"]) if bad else "t"
        world.check_end(effect.unit, exit_code=int(bad), failure=failure, tree_before="t", tree_after=after)
    elif isinstance(effect, Wait):
        world.tell(TimerFired(effect=effect.id))
    elif isinstance(effect, AwaitGates):
        world.tell(GatesOpened(effect=effect.id))
    elif isinstance(effect, ReadFile):
        failure = failing(FailureKind.LAUNCH) if bad else None
        world.tell(FileRead(effect=effect.id, text=luck.choice(["[]", "[1, 2]", "one\ntwo"]), failure=failure))
    elif isinstance(effect, AskHuman):
        world.tell(HumanAnswered(effect=effect.id, approved=not bad))


def meddle(world: World, luck: random.Random) -> None:
    """A person does something, sensible or not."""
    step = luck.choice(list(world.state.steps))
    edit = world.document()
    status = luck.choice(["PENDING", "COMPLETED", "FAILED", "RUNNING", "nonsense"])
    edit["steps"][step].update(status=status, attempts=luck.randint(0, 3))
    changed = msgspec.to_builtins(parse(a_workflow(luck), "workflow.yaml").spec)
    acts: list[Callable[[], object]] = [
        lambda: world.tell(Pause(id=world.directive(), now=luck.random() < 0.5)),
        lambda: world.tell(Resume(id=world.directive())),
        lambda: world.tell(Resume(id=world.directive(), changes={"max_iterations": luck.randint(0, 5)})),
        lambda: world.tell(Resume(id=world.directive(), changes={"start_at": step})),
        lambda: world.tell(Resume(id=world.directive(), changes={"start_at": "s0", "spec": changed})),
        lambda: world.tell(Resume(id=world.directive(), changes={"spec": changed})),
        lambda: world.tell(Answer(id=world.directive(), approved=luck.random() < 0.5, unit=luck.choice([None, step]))),
        lambda: world.tell(Edited(path="run_state.json", document=edit)),
    ]
    if luck.random() < 0.1:
        acts = [lambda: world.tell(Abort(id=world.directive()))]
    luck.choice(acts)()


@pytest.mark.parametrize("seed", range(60))
def test_whatever_happens_the_run_stays_sound_and_can_end(seed: int) -> None:
    luck = random.Random(seed)
    gates = luck.choice([None, "gates.json"])
    world = World(a_workflow(luck), max_parallel=luck.randint(1, 3), gate_state_file=gates, max_attempts=2)
    for _ in range(TICKS):
        doing = list(world.state.doing)
        assert world.state.doing.active <= world.state.spec.max_parallel
        if doing and luck.random() < 0.8:
            perform(world, luck.choice(doing), luck, kindly=False)
        else:
            meddle(world, luck)
    summary = WORKFLOW.summary(world.state)
    for _ in range(2_000):
        summary = WORKFLOW.summary(world.state)
        # A completed run with something left to do was edited after its end: it is resumed like any other.
        if summary.status == "aborted" or (summary.status == "completed" and summary.done == summary.total):
            break
        doing = list(world.state.doing)
        if doing:
            perform(world, luck.choice(doing), luck, kindly=True)
        else:
            world.tell(Resume(id=world.directive()))
    world.compare(world.folded())
    assert summary.status in {"completed", "aborted"}
    if summary.status == "completed":
        assert set(world.statuses().values()) <= {"COMPLETED", "SKIPPED"}
