"""Answers of people: consumed, strict, and never taken from the agent whose work is judged."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

import msgspec
import pytest

from agent_orchestrator.core.effects import AskHuman
from agent_orchestrator.core.events import DirectiveRefused
from agent_orchestrator.core.ids import EffectId, RunId
from agent_orchestrator.core.inputs import HumanAnswered
from agent_orchestrator.core.who import Surface
from agent_orchestrator.engine.clock import SystemClock, boot_id
from agent_orchestrator.engine.engine import Engine
from agent_orchestrator.engine.process import ProcessLaunches
from agent_orchestrator.engine.process.folder import Birth, take_lock, write_birth
from agent_orchestrator.testing.world import Machine, SimulatedLaunches
from tests.unit.engine.rig import Rig, jump, named
from tests.unit.engine.toy import Did

ANSWER = "manual/one__a.json"
YES = json.dumps({"approved": True, "comments": "fine"})
ASK = AskHuman(id=named("a", "human", launch=2), unit="a", question="Good?", answer_file=ANSWER, after=named("a"))


def answer_after(rig: Rig, text: str, other: Path) -> None:
    """Writes the answer so that its change time lies after the other file's, as a person's always does."""
    file = rig.home / ANSWER
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    while file.stat().st_ctime_ns <= other.stat().st_ctime_ns:
        file.write_text(text)


def ended(rig: Rig, effect: EffectId) -> Path:
    """The mark of an agent that ended."""
    mark = rig.machine.directory(effect) / "exit.0"
    mark.parent.mkdir(parents=True, exist_ok=True)
    mark.touch()
    return mark


def asked(rig: Rig, effect: AskHuman = ASK, word: str = "k7") -> Path:
    """The question as an earlier process put it, after the agent ended."""
    mark, file = ended(rig, effect.after), rig.machine.directory(effect.id) / "question"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(word)
    while file.stat().st_ctime_ns <= mark.stat().st_ctime_ns:
        file.write_text(word)
    return file


def outcome(rig: Rig, run: Any) -> Any:
    (done,) = rig.of_kind(run, Did)
    assert done.outcome.who.surface is Surface.ANSWER_FILE
    return msgspec.structs.replace(done.outcome, who=None)


def test_an_answer_is_consumed_into_the_directory_of_the_question(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    run = rig.toys(ASK)
    mark = asked(rig)

    async def answer(engine: Engine) -> None:
        await jump(engine, 5)
        answer_after(rig, YES, mark)

    rig.drive(run, answer)
    assert outcome(rig, run) == HumanAnswered(effect=ASK.id, approved=True, comments="fine")
    assert not (rig.home / ANSWER).exists()
    assert (rig.machine.directory(ASK.id) / "answer.json").read_text() == YES


def test_an_invalid_answer_is_renamed_and_said_and_the_question_stays(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    run = rig.toys(ASK)
    mark = asked(rig)

    async def answer(engine: Engine) -> None:
        for text in ("yes", '{"approved": "true"}', '{"approved": true, "by": "me"}', '{"approved": false}'):
            answer_after(rig, text, mark)
            await jump(engine, 5)

    rig.drive(run, answer)
    assert outcome(rig, run) == HumanAnswered(effect=ASK.id, approved=False)
    kept = sorted(file.name for file in (rig.home / "manual").iterdir())
    assert kept == ["one__a.json.invalid", "one__a.json.invalid-2", "one__a.json.invalid-3"]
    assert len([notice for notice in rig.notes.notices if "is not an answer" in notice]) == 3


def test_an_empty_answer_is_one_that_is_still_being_written(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    run = rig.toys(ASK)
    mark = asked(rig)

    async def answer(engine: Engine) -> None:
        answer_after(rig, "", mark)
        await jump(engine, 5)
        answer_after(rig, YES, mark)

    rig.drive(run, answer)
    assert outcome(rig, run) == HumanAnswered(effect=ASK.id, approved=True, comments="fine")
    assert not rig.notes.notices
    assert not list((rig.home / "manual").iterdir())


def test_an_answer_that_is_there_is_taken_before_anybody_may_leave(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    run = rig.toys(ASK)
    answer_after(rig, YES, asked(rig))
    rig.drive(run, stays=lambda driver: not driver.waits_only_for_people())
    assert outcome(rig, run) == HumanAnswered(effect=ASK.id, approved=True, comments="fine")


def test_an_answer_written_while_the_steps_own_agent_ran_is_not_consent(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    run = rig.toys(ASK)
    file = rig.home / ANSWER
    file.parent.mkdir(parents=True)
    file.write_text(YES)
    mark = ended(rig, ASK.after)
    while mark.stat().st_ctime_ns <= file.stat().st_ctime_ns:
        mark.touch()

    async def answer(engine: Engine) -> None:
        await jump(engine, 5)
        assert not engine.drivers["one"].state.outcomes
        mark = rig.machine.directory(ASK.id) / "question"
        answer_after(rig, json.dumps({"approved": False, "comments": "no"}), mark)

    rig.drive(run, answer)
    assert outcome(rig, run) == HumanAnswered(effect=ASK.id, approved=False, comments="no")
    assert (rig.home / f"{ANSWER}.unasked").read_text() == YES
    assert [notice for notice in rig.notes.notices if "not consent" in notice]


def test_an_answer_that_was_written_before_anything_was_asked_is_not_consent(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    run = rig.toys(ASK)
    answer_after(rig, YES, ended(rig, ASK.after))
    rig.drive(run, stays=lambda driver: not driver.waits_only_for_people())
    assert not rig.of_kind(run, Did)
    assert (rig.home / f"{ANSWER}.unasked").read_text() == YES
    assert [why for why in refusals(rig, run) if "was written before anything was asked: that is not consent" in why]


def test_a_question_that_the_judged_agent_put_there_itself_is_put_anew(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    run = rig.toys(ASK)
    planted = asked(rig, word="mine")
    mark = ended(rig, ASK.after)
    while mark.stat().st_ctime_ns <= planted.stat().st_ctime_ns:
        mark.touch()
    answer_after(rig, json.dumps({"approved": True, "question": "mine"}), mark)
    rig.drive(run, stays=lambda driver: not driver.waits_only_for_people())
    assert not rig.of_kind(run, Did)
    assert planted.read_text() != "mine"


def test_an_answer_that_cannot_be_taken_yet_is_said_once_and_taken_later(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    run = rig.toys(ASK)
    in_the_way = rig.machine.directory(ASK.id)
    in_the_way.parent.mkdir(parents=True)
    in_the_way.write_text("as a full disk would, this keeps the directory from being made")

    async def make_room(engine: Engine) -> None:
        await jump(engine, 5)
        in_the_way.unlink()
        await jump(engine, 5)
        answer_after(rig, YES, rig.machine.directory(ASK.id) / "question")

    rig.drive(run, make_room)
    assert outcome(rig, run) == HumanAnswered(effect=ASK.id, approved=True, comments="fine")
    assert len([notice for notice in rig.notes.notices if "cannot be taken yet" in notice]) == 1


def test_an_answer_that_was_taken_before_a_crash_is_still_there_afterwards(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    run = rig.toys(ASK)
    question, taken = asked(rig), rig.machine.directory(ASK.id) / "answer.json"
    taken.write_text(YES)
    while taken.stat().st_ctime_ns <= question.stat().st_ctime_ns:
        taken.write_text(YES)
    rig.drive(run)
    assert outcome(rig, run) == HumanAnswered(effect=ASK.id, approved=True, comments="fine")


class WithFolders(SimulatedLaunches):
    """Simulated launches that find out who was alive as the real ones do, from the folders."""

    def __init__(self, machine: Machine) -> None:
        super().__init__(machine)
        self._real = ProcessLaunches(machine.folder, SystemClock(), boot_id())

    def alive_between(self, since_ns: int, until_ns: int, run: RunId | None = None) -> EffectId | None:
        """By the marks of the launch."""
        return self._real.alive_between(since_ns, until_ns, run)


def begun(folder: Path) -> int:
    """A launch that begins now and lives until its descriptor is closed."""
    folder.mkdir(parents=True)
    lock = take_lock(folder, create=True)
    assert lock is not None
    now_us = time.time_ns() // 1000
    write_birth(lock, Birth(nonce="0" * 32, boot=boot_id(), started_us=now_us, started_s=0.0))
    return lock


def refusals(rig: Rig, run: Any) -> list[str]:
    return [event.why for event in rig.of_kind(run, DirectiveRefused)]


@pytest.mark.parametrize("other", [named("b"), named("b", run="another")])
def test_an_answer_written_while_another_agent_was_alive_is_not_consent(tmp_path: Path, other: EffectId) -> None:
    rig = Rig(tmp_path)
    rig.launches = lambda: WithFolders(rig.machine)
    run = rig.toys(ASK)
    mark = asked(rig)
    lock = begun(rig.machine.directory(other))
    plain = json.dumps({"approved": False, "comments": "no"})
    wrong = json.dumps({"approved": True, "question": "guessed"})

    async def answer(engine: Engine) -> None:
        answer_after(rig, YES, mark)
        await jump(engine, 5)
        assert not engine.drivers["one"].state.outcomes
        os.close(lock)
        over = rig.machine.directory(other) / "exit.0"
        over.touch()
        for text in (plain, wrong):
            answer_after(rig, text, over)
            await jump(engine, 5)
            assert not engine.drivers["one"].state.outcomes
        answer_after(rig, json.dumps({"approved": False, "comments": "no", "question": "k7"}), over)

    rig.drive(run, answer)
    assert outcome(rig, run) == HumanAnswered(effect=ASK.id, approved=False, comments="no")
    kept = [(rig.home / f"{ANSWER}.unasked{number}").read_text() for number in ("", "-2", "-3")]
    assert kept == [YES, plain, wrong]
    first, second, third = refusals(rig, run)
    assert f"was written while the launch {other} was alive: that is not consent" in first
    assert f"does not name the question, and the launch {other} has lived since it was asked" in second
    assert "names another question" in third


def test_the_word_of_a_question_stays_though_the_agent_seems_to_have_ended_after_it(tmp_path: Path) -> None:
    """Both times are those of the last tick of the kernel: a question put in the tick of the end is not newer than it."""
    rig = Rig(tmp_path)
    rig.launches = lambda: WithFolders(rig.machine)
    run = rig.toys(ASK)
    question = asked(rig)
    lock = begun(rig.machine.directory(named("b")))

    async def answer(engine: Engine) -> None:
        await jump(engine, 5)
        mark = ended(rig, ASK.after)
        while mark.stat().st_ctime_ns <= question.stat().st_ctime_ns:
            mark.touch()
        await jump(engine, 5)
        assert question.read_text() == "k7"
        os.close(lock)
        over = rig.machine.directory(named("b")) / "exit.0"
        over.touch()
        answer_after(rig, json.dumps({"approved": True, "comments": "fine", "question": "k7"}), over)

    rig.drive(run, answer)
    assert outcome(rig, run) == HumanAnswered(effect=ASK.id, approved=True, comments="fine")


def test_no_file_answers_where_the_step_names_none(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    ask = msgspec.structs.replace(ASK, answer_file="")
    run = rig.toys(ask)
    answer_after(rig, YES, ended(rig, ask.after))
    forged = rig.machine.directory(ask.id) / "answer.json"
    forged.parent.mkdir(parents=True, exist_ok=True)
    forged.write_text(YES)
    rig.drive(run, stays=lambda driver: not driver.waits_only_for_people())
    assert not rig.of_kind(run, Did)
    assert (rig.home / ANSWER).read_text() == YES, "it is not ours to take"


def test_an_answer_forged_in_a_launch_folder_by_the_judged_agent_is_not_consent(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    run = rig.toys(ASK)
    os.close(begun(rig.machine.directory(ASK.after)))
    forged = rig.machine.directory(ASK.id) / "answer.json"
    forged.parent.mkdir(parents=True, exist_ok=True)
    forged.write_text(YES)
    mark = ended(rig, ASK.after)
    while mark.stat().st_ctime_ns <= forged.stat().st_ctime_ns:
        mark.touch()
    rig.drive(run, stays=lambda driver: not driver.waits_only_for_people())
    assert not rig.of_kind(run, Did)
    assert not forged.exists()
    assert (rig.home / f"{ANSWER}.unasked").read_text() == YES
    assert len(refusals(rig, run)) == 1
