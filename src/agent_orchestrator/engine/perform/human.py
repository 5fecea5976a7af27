"""Waits for a person's answer file. The answer is moved into the effect's own directory before it is read, so that it
counts for this question only and is still there if we die before its fact is durable.

A file is consent only if no program of ours can have written it: it came after the question, which is kept with the time
and with a random word in the question's directory, and no launch of any run has lived since then. Where others work meanwhile,
the file has to name the word, which is shown to the person, and nothing may be alive when it is written. Where a question names
no answer file, only a directive answers it.
"""

from __future__ import annotations

import contextlib
import os
import stat
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from agent_orchestrator import typed
from agent_orchestrator.beneath import open_folder, replace_file, stat_beneath
from agent_orchestrator.bounded import read_bounded, store_of
from agent_orchestrator.core.effects import ACTIVE, AskHuman
from agent_orchestrator.core.events import DirectiveRefused
from agent_orchestrator.core.files import DRAFT
from agent_orchestrator.core.inputs import HumanAnswered
from agent_orchestrator.core.limits import HUMAN_POLL_S, REPORT_LIMIT_BYTES
from agent_orchestrator.core.who import Surface, Who
from agent_orchestrator.engine.files import move_aside
from agent_orchestrator.engine.perform.work import Finished, Waiting
from agent_orchestrator.engine.sender import name_of_user
from agent_orchestrator.errors import is_shortage

if TYPE_CHECKING:
    from agent_orchestrator.engine.driver import Driver

TAKEN, QUESTION = "answer.json", "question"
WORD_BYTES = 4
WORD_LIMIT_BYTES = 64


class _Answer(msgspec.Struct, forbid_unknown_fields=True):
    approved: bool
    comments: str = ""
    question: str = ""


class _Asked(NamedTuple):
    """The question as it was put: when, and the word that names it."""

    at_ns: int
    word: str


class HumanWork(Waiting):
    """One question."""

    def __init__(self, driver: Driver, effect: AskHuman, finished: Finished) -> None:
        super().__init__(driver, finished)
        self.effect = effect
        self._home, self._file = driver.home, self.home(effect.answer_file)
        self._believed = bool(effect.answer_file)
        self._launches = driver.engine.launches
        # A question that the run took over by going back is asked anew: an answer from before is none.
        self._folder = driver.directory(effect.id)
        self._taken = self._folder / TAKEN
        self._problem = ""
        self._asked: _Asked | None = None

    def start(self, *, halt: bool) -> None:
        """Makes the folder in which a person is asked to write, then looks for the first time."""
        if not self._believed:
            return
        with contextlib.suppress(OSError):  # `orc approve` works without it.
            with open_folder(self._home, self._file.parent, make=True):
                pass  # It is there, and no link leads to it.
            if any(isinstance(one, ACTIVE) for one in self.driver.state.doing):
                word = self._ask().word
                self._say(f"{self.effect.unit} can be answered while others work, too: {_example(word)} in {self._file}.")
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

    def _ask(self) -> _Asked:
        """Put the question on record, once; one that lies there since before the judged agent ended was not put by us.

        What was put in the very tick of that end looks so, too, and its word has been told.
        """
        if self._asked is not None:
            return self._asked
        file = self._folder / QUESTION
        with open_folder(self._root(file), self._folder, make=True) as folder:
            ours = QUESTION in os.listdir(folder)
            if not ours or self._changed_ns(file) <= _ended_ns(self._launches.directory(self.effect.after)):
                # Whole or not at all: on a full disk a question without a word would be named by every answer without one.
                replace_file(folder, QUESTION, f".{QUESTION}{DRAFT}", os.urandom(WORD_BYTES).hex().encode(), 0o600)
        word = read_bounded(file, WORD_LIMIT_BYTES, root=self._root(file)).decode("ascii", "replace")
        self._asked = _Asked(self._changed_ns(file), word)
        return self._asked

    def _root(self, file: Path) -> Path:
        """Return the folder below which no link to the file is followed."""
        return self._home if file == self._file else store_of(self._folder)

    def _changed_ns(self, file: Path) -> int:
        """When the file was last written or moved; a program cannot set this time, unlike that of the modification."""
        return stat_beneath(self._root(file), file).st_ctime_ns

    def _has_content(self, file: Path) -> bool:
        """Say whether there is something to read: a person who types `cat > FILE` has an empty one while typing."""
        try:
            status = stat_beneath(self._root(file), file)
        except FileNotFoundError:
            return False
        return not stat.S_ISREG(status.st_mode) or status.st_size > 0

    def _move(self, file: Path, target: Path) -> None:
        with open_folder(self._root(file), file.parent) as here, open_folder(self._root(target), target.parent) as there:
            os.rename(file.name, target.name, src_dir_fd=here, dst_dir_fd=there)

    def _find(self) -> HumanAnswered | None:
        asked = self._ask()
        if self._has_content(self._taken):  # taken before we died, or put there by somebody else
            if (why := self._why_not(asked, self._changed_ns(self._taken), named=True)) is None:
                return self._read(self._taken)
            self._move(self._taken, self._file)
            self._set_aside(why)
            return None
        if not self._has_content(self._file):
            return None
        changed_ns, answer = self._changed_ns(self._file), self._read(self._file)
        if answer is None:
            return None
        word = self._decode(self._file).question
        why = self._why_not(asked, changed_ns, named=word == asked.word)
        if word not in ("", asked.word):
            why = "names another question"
        if why is not None:
            self._set_aside(why)
            return None
        self._move(self._file, self._taken)
        return answer if self._read(self._taken) == answer else None

    def _why_not(self, asked: _Asked, changed_ns: int, *, named: bool) -> str | None:
        """Say why a file that was written or moved at a time is no consent."""
        if (launch := self._launches.alive_between(changed_ns, changed_ns)) is not None:
            return f"was written while the launch {launch} was alive"
        if changed_ns <= asked.at_ns:
            return "was written before anything was asked"
        if not named and (launch := self._launches.alive_between(asked.at_ns, changed_ns)) is not None:
            return f"does not name the question, and the launch {launch} has lived since it was asked"
        return None

    def _set_aside(self, why: str) -> None:
        """Put an answer that is no consent aside, say so and journal it; the question stays."""
        who, run, unit = self._owner(self._file), self.driver.run.id, self.effect.unit
        aside = move_aside(self._file, "unasked", self._home)
        why = f"{aside} {why}: that is not consent"
        ways = f"please answer again, with `orc approve {run} {unit}` or `orc reject {run} {unit}`"
        self._say(f"{why}; {ways}.")
        self.driver.note(DirectiveRefused(directive=f"{self.effect.id}:answer file", why=why, who=who))

    def _read(self, file: Path) -> HumanAnswered | None:
        try:
            answer, who = self._decode(file), self._owner(file)
        except (OSError, msgspec.DecodeError) as error:
            if is_shortage(error):
                raise
            if file != self._file:
                self._move(file, self._file)
            aside = move_aside(self._file, "invalid", self._home)
            self._say(f'{aside} is not an answer ({error}); write {{"approved": true, "comments": "…"}} to {self._file}.')
            return None
        return HumanAnswered(effect=self.effect.id, approved=answer.approved, comments=answer.comments, who=who)

    def _decode(self, file: Path) -> _Answer:
        return typed.decode(read_bounded(file, REPORT_LIMIT_BYTES, root=self._root(file)), _Answer)

    def _owner(self, file: Path) -> Who:
        uid = stat_beneath(self._root(file), file).st_uid
        return Who(surface=Surface.ANSWER_FILE, user=name_of_user(uid), uid=uid)

    def _say(self, text: str) -> None:
        self.driver.engine.notify(self.driver, text)


def _example(word: str) -> str:
    return msgspec.json.encode({"approved": True, "question": word}).decode()


def _ended_ns(launch_dir: Path) -> int:
    try:
        with open_folder(store_of(launch_dir), launch_dir) as folder:
            marks = [name for name in os.listdir(folder) if name.startswith("exit.")]
            return max((os.stat(mark, dir_fd=folder, follow_symlinks=False).st_ctime_ns for mark in marks), default=0)
    except FileNotFoundError:
        return 0
