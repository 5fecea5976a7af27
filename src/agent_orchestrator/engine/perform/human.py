"""Waits for a person's answer file. The answer is moved into the effect's own directory before it is read, so that it
counts for this question only and is still there if we die before its fact is durable.

An answer that appeared while the step's own agent ran is not consent: the agent could have written it.
"""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from agent_orchestrator.core.effects import AskHuman
from agent_orchestrator.core.inputs import HumanAnswered
from agent_orchestrator.core.limits import HUMAN_POLL_S, REPORT_LIMIT_BYTES
from agent_orchestrator.engine.files import TooLarge, move_aside, read_bounded
from agent_orchestrator.engine.perform.work import Finished, Waiting

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
        launches = driver.engine.launches
        self._taken = launches.directory(effect.id) / TAKEN
        self._earlier = launches.directory(effect.after) / TAKEN
        self._agent_ended_ns = _ended_ns(launches.directory(effect.after))
        self._problem = ""

    def start(self, *, halt: bool) -> None:
        """Makes the folder in which a person is asked to write, then looks for the first time."""
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
        if self._earlier.exists() and not self._taken.exists():
            self._taken.parent.mkdir(parents=True, exist_ok=True)
            self._earlier.rename(self._taken)
        elif not self._taken.exists() and _has_content(self._file):
            self._take()
        return self._read() if self._taken.exists() else None

    def _take(self) -> None:
        # The change time cannot be set by a program, unlike the modification time.
        if self._file.stat().st_ctime_ns <= self._agent_ended_ns:
            aside = move_aside(self._file, "unasked")
            self._say(f"{aside} was written while the step's own agent ran: that is not consent, please answer again.")
            return
        self._taken.parent.mkdir(parents=True, exist_ok=True)
        self._file.rename(self._taken)

    def _read(self) -> HumanAnswered | None:
        try:
            answer = msgspec.json.decode(read_bounded(self._taken, REPORT_LIMIT_BYTES), type=_Answer)
        except (OSError, TooLarge, msgspec.DecodeError) as error:
            self._file.parent.mkdir(parents=True, exist_ok=True)
            self._taken.rename(self._file)
            aside = move_aside(self._file, "invalid")
            self._say(f'{aside} is not an answer ({error}); write {{"approved": true, "comments": "…"}} to {self._file}.')
            return None
        return HumanAnswered(effect=self.effect.id, approved=answer.approved, comments=answer.comments)

    def _say(self, text: str) -> None:
        self.driver.engine.notify(self.driver, text)


def keep_early_answer(answer: Path, launch_dir: Path) -> None:
    """Before an agent starts: an answer that lies there already is put out of its reach."""
    if answer.exists():
        answer.rename(launch_dir / TAKEN)


def _has_content(file: Path) -> bool:
    """Whether there is something to read: a person who types `cat > FILE` has an empty one while typing."""
    return file.exists() and (not file.is_file() or file.stat().st_size > 0)


def _ended_ns(launch_dir: Path) -> int:
    for marker in launch_dir.glob("exit.*"):
        return marker.stat().st_ctime_ns
    return 0
