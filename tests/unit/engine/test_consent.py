"""Which directives count: asked of a run that is played by hand, and of one that nobody drives."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent_orchestrator.config import load_settings
from agent_orchestrator.config.defaults import load_agents
from agent_orchestrator.core.effects import AskHuman
from agent_orchestrator.core.events import DirectiveRefused
from agent_orchestrator.core.ids import EffectId, UnitId, effect_id
from agent_orchestrator.core.inputs import Abort, Answer
from agent_orchestrator.core.who import Surface, Who
from agent_orchestrator.engine.clock import boot_id
from agent_orchestrator.engine.journal import Folded, decode_events
from agent_orchestrator.engine.process.folder import Birth, take_lock, write_birth
from agent_orchestrator.errors import FromLaunch
from agent_orchestrator.runs.orchestrator import Orchestrator
from agent_orchestrator.runs.workflow.options import WorkflowOptions, prepare
from agent_orchestrator.runs.workflow.start import start_workflow
from agent_orchestrator.store.port import StoredRun
from agent_orchestrator.systems.workflow.system import WORKFLOW
from tests.scenarios.world import World

ADA = Who(surface=Surface.CLI, user="ada", terminal="pts/3")
NONCE = "0123456789abcdef" * 2
GUARDED = """
name: guarded
steps:
  - {id: code, agent: coder, prompt: code.md}
  - {id: approve, agent: presenter, prompt: approve.md, needs: [code], loop_back_to: code, human_in_the_loop: true}
"""


def asked(world: World) -> str:
    """The question that a person sees."""
    world.agent("code")
    world.agent("approve", {})
    question = world.doing("approve")
    assert isinstance(question, AskHuman)
    return question.id


def refused(world: World, directive: Answer) -> list[str]:
    """Say why the run as it stands refuses the directive; nothing when it takes it."""
    events = Folded(world.system, world.state, 0, world.now_us).decide(directive, world.now_us)
    return [event.why for event in events if isinstance(event, DirectiveRefused)]


def yes(question: str, unit: str | None = None) -> Answer:
    return Answer(id="late", approved=True, unit=unit, asked=EffectId(question), who=ADA)


def test_an_approval_of_work_that_was_sent_back_meanwhile_does_not_count_for_the_rework() -> None:
    world = World(GUARDED)
    seen = asked(world)
    assert refused(world, yes(seen)) == []
    world.tell(Answer(id=world.directive(), approved=False, comments="rename the flag"))
    assert refused(world, yes(seen)) == ["what was answered is not asked any more"], "the rework is not done yet"
    assert refused(world, yes(seen, "approve")), "naming the step helps nothing"
    again = asked(world)
    assert again != seen
    for late in (yes(seen), yes(seen, "approve")):
        assert refused(world, late) == ["approve has asked anew since that answer was given; look at it again, then answer"]
    assert refused(world, yes(again)) == []


def test_a_step_without_an_answer_file_names_none_anywhere() -> None:
    world = World(GUARDED.replace("human_in_the_loop: true", "human_in_the_loop: true, answer_file: false"))
    world.agent("code")
    assert getattr(world.doing("approve"), "answer_file", "?") is None
    world.agent("approve", {})
    question = world.doing("approve")
    assert isinstance(question, AskHuman)
    assert question.answer_file == ""
    assert world.document()["steps"]["approve"]["manual_input_path"] is None


class Inside:
    """A run that nobody drives, and an orchestrator in a process that carries the mark of one of its launches."""

    def __init__(self, repo: Path) -> None:
        (repo / "code.md").write_text("Work.\n")
        (repo / "approve.md").write_text("Show it.\n")
        (repo / "workflow.yaml").write_text(GUARDED)
        environ = {"PATH": os.environ["PATH"], "ORC_LAUNCH": NONCE}
        self.orchestrator = Orchestrator(settings=load_settings(str(repo), environ))
        options = WorkflowOptions(workflow=str(repo / "workflow.yaml"), agent_command="true")
        prepared = prepare(options, repo, {}, load_agents(self.orchestrator.settings))
        started = start_workflow(self.orchestrator, prepared.spec)
        started.owner.release()
        self.run: StoredRun = started.run
        self.launch = effect_id(self.run.id, UnitId("code"), 0, 1, 1, "agent")
        folder = self.orchestrator.launches().directory(self.launch)
        folder.mkdir(parents=True)
        lock = take_lock(folder, create=True)
        assert lock is not None
        write_birth(lock, Birth(nonce=NONCE, boot=boot_id(), started_us=1, started_s=0.0))
        os.close(lock)

    def journaled(self) -> list[DirectiveRefused]:
        """The refusals in the journal."""
        rows = self.orchestrator.store.rows(self.run.id)
        events = [event for _, _, body in rows for event in decode_events(WORKFLOW, body)]
        return [event for event in events if isinstance(event, DirectiveRefused)]

    def inbox(self) -> list[str]:
        """Return the directives that wait for the driver."""
        return [directive for directive, _ in self.orchestrator.store.inbox(self.run.id)]


@pytest.fixture
def inside(repo: Path) -> Iterator[Inside]:
    """As an agent of the run."""
    made = Inside(repo)
    with made.orchestrator:
        yield made


def test_what_an_agent_says_to_a_run_that_nobody_drives_is_journaled_once_and_left_nowhere(inside: Inside) -> None:
    for number in range(3):
        with pytest.raises(FromLaunch, match=f"comes from inside the launch {inside.launch}"):
            inside.orchestrator.send(inside.run, Abort(id=f"abort-{number}"))
    (refusal,) = inside.journaled()
    assert f"`abort` came from inside the launch {inside.launch}" in refusal.why
    assert refusal.who is not None
    assert refusal.who.launch == inside.launch
    assert inside.inbox() == []
    with pytest.raises(FromLaunch):
        inside.orchestrator.send(inside.run, Answer(id="yes", approved=True, unit="approve"))
    assert len(inside.journaled()) == 2, "another thing that it tries is journaled too"


def test_what_an_agent_says_to_a_run_that_is_driven_is_left_to_the_driver(inside: Inside) -> None:
    with Orchestrator(settings=inside.orchestrator.settings) as driver:
        owner = driver.own(inside.run.id)
        try:
            with pytest.raises(FromLaunch):
                inside.orchestrator.send(inside.run, Abort(id="abort"))
        finally:
            owner.release()
    assert inside.journaled() == []
    assert inside.inbox() == [f"{inside.launch}:abort:"]
