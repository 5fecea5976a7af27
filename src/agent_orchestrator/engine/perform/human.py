"""Waits for a person's answer file. The answer is moved into the effect's own directory before it is read, so that it
counts for this question only and is still there if we die before its fact is durable.

An answer that appeared while an agent or a check of the run was alive is not consent: it could have written it. Where a
question names no answer file, only a directive answers it.
"""

from __future__ import annotations

import contextlib
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from agent_orchestrator.core.effects import AskHuman, RunAgent
from agent_orchestrator.core.events import DirectiveRefused
from agent_orchestrator.core.inputs import HumanAnswered
from agent_orchestrator.core.limits import HUMAN_POLL_S, REPORT_LIMIT_BYTES
from agent_orchestrator.core.who import Surface, Who
from agent_orchestrator.engine.files import TooLarge, move_aside, read_bounded
from agent_orchestrator.engine.perform.work import Finished, Waiting
from agent_orchestrator.engine.process.folder import read_birth
from agent_orchestrator.engine.sender import name_of_user

if TYPE_CHECKING:
    from agent_orchestrator.engine.driver import Driver

TAKEN = "answer.json"


class _Answer(msgspec.Struct, forbid_unknown_fields=True):
    approved: bool
    comments: str = ""


class HumanWork(Waiting):
    """One question."""

    def __init__(self, driver: Driver, effect: AskHuman, finished: Finished) -> None:
        super().__init__(driver, finished)
        self.effect = effect
        self._file = self.home(effect.answer_file)
        self._believed = bool(effect.answer_file)
        launches = driver.engine.launches
        self._taken = launches.directory(effect.id) / TAKEN
        self._earlier = launches.directory(effect.after) / TAKEN
        self._agent_started_ns = _started_ns(launches.directory(effect.after))
        self._agent_ended_ns = _ended_ns(launches.directory(effect.after))
        self._problem = ""

    def start(self, *, halt: bool) -> None:
        """Makes the folder in which a person is asked to write, then looks for the first time."""
        if not self._believed:
            return
        with contextlib.suppress(OSError):  # `orc approve` works without it.
            self._file.parent.mkdir(parents=True, exist_ok=True)
        super().start(halt=halt)

    def _look(self) -> None:
        try:
            answer = self._find()
        except OSError as error:
            # On a full disk the answer stays where it is; that is no reason to let go of the run.
            answer = None
            if str(error) != self._problem:
                self._problem = str(error)
                self._say(f"The answer in {self._file} cannot be taken yet: {error}.")
        if answer is not None:
            # At once: whoever leaves when only people can move the run must see that one has answered.
            self.over(answer)
        else:
            self.look_again(HUMAN_POLL_S)

    def _find(self) -> HumanAnswered | None:
        if not self._taken.exists():
            if not self._take_early():
                self._take()
        elif _changed_ns(self._taken) <= self._agent_ended_ns:
            self._refuse(self._taken, self.effect.after)  # Nothing was asked yet when it was put there.
        return self._read() if self._taken.exists() else None

    def _take_early(self) -> bool:
        """Say whether there was an answer before the agent started; kept for us then, it did not change since."""
        if not self._earlier.exists():
            return False
        if _changed_ns(self._earlier) > self._agent_started_ns:
            self._refuse(self._earlier, self.effect.after)
            return False
        self._taken.parent.mkdir(parents=True, exist_ok=True)
        self._earlier.rename(self._taken)
        return True

    def _take(self) -> None:
        if not _has_content(self._file):
            return
        changed_ns = _changed_ns(self._file)
        intruder = self.driver.engine.launches.alive_at(self.driver.run.id, changed_ns)
        if intruder is None and changed_ns <= self._agent_ended_ns:
            intruder = self.effect.after
        if intruder is not None:
            self._refuse(self._file, intruder)
            return
        self._taken.parent.mkdir(parents=True, exist_ok=True)
        self._file.rename(self._taken)

    def _refuse(self, file: Path, launch: str) -> None:
        if file != self._file:
            self._file.parent.mkdir(parents=True, exist_ok=True)
            file.rename(self._file)
        set_aside(self.driver, self.effect, self._file, launch)

    def _read(self) -> HumanAnswered | None:
        try:
            answer = msgspec.json.decode(read_bounded(self._taken, REPORT_LIMIT_BYTES), type=_Answer)
        except (OSError, TooLarge, msgspec.DecodeError) as error:
            self._file.parent.mkdir(parents=True, exist_ok=True)
            self._taken.rename(self._file)
            aside = move_aside(self._file, "invalid")
            self._say(f'{aside} is not an answer ({error}); write {{"approved": true, "comments": "…"}} to {self._file}.')
            return None
        who = _owner(self._taken)
        return HumanAnswered(effect=self.effect.id, approved=answer.approved, comments=answer.comments, who=who)

    def _say(self, text: str) -> None:
        self.driver.engine.notify(self.driver, text)


def refuse_early_answer(driver: Driver, effect: RunAgent, answer: Path) -> None:
    """Before an agent starts: an answer that another agent of the run could have written is no consent."""
    launch = driver.engine.launches.alive_at(driver.run.id, _changed_ns(answer)) if answer.exists() else None
    if launch is not None:
        set_aside(driver, effect, answer, launch)


def keep_early_answer(answer: Path, launch_dir: Path) -> None:
    """Before an agent starts: an answer that lies there already is put out of its reach."""
    if answer.exists():
        answer.rename(launch_dir / TAKEN)


def set_aside(driver: Driver, effect: AskHuman | RunAgent, file: Path, launch: str) -> None:
    """Puts an answer that is no consent aside, says so and journals it; the question stays."""
    who, run, unit = _owner(file), driver.run.id, effect.unit
    aside = move_aside(file, "unasked")
    why = f"{aside} was written while the launch {launch} was alive: that is not consent"
    ways = f"please answer again, with `orc approve {run} {unit}` or `orc reject {run} {unit}`"
    driver.engine.notify(driver, f"{why}; {ways}.")
    driver.note(DirectiveRefused(directive=f"{effect.id}:answer file", why=why, who=who))


def _owner(file: Path) -> Who:
    uid = file.stat().st_uid
    return Who(surface=Surface.ANSWER_FILE, user=name_of_user(uid), uid=uid)


def _changed_ns(file: Path) -> int:
    """When the file was last written or moved; a program cannot set this time, unlike that of the modification."""
    return file.stat().st_ctime_ns


def _has_content(file: Path) -> bool:
    """Say whether there is something to read: a person who types `cat > FILE` has an empty one while typing."""
    return file.exists() and (not file.is_file() or file.stat().st_size > 0)


def _ended_ns(launch_dir: Path) -> int:
    for marker in launch_dir.glob("exit.*"):
        return marker.stat().st_ctime_ns
    return 0


def _started_ns(launch_dir: Path) -> int:
    """When the launch's lock was made at the latest: everything that was put there before is older."""
    birth = read_birth(launch_dir)
    return birth.started_us * 1000 if birth is not None else sys.maxsize
