"""Saves the working tree as a commit under a ref. It takes no process of its own that could outlive us: git's commands are
short, and repeating them after a crash gives the same commit."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from agent_orchestrator.core.effects import Checkpoint, Tree
from agent_orchestrator.core.ids import RunId
from agent_orchestrator.core.inputs import CheckpointEnded
from agent_orchestrator.engine.perform.shortage import ShortageWait
from agent_orchestrator.engine.perform.work import Finished
from agent_orchestrator.errors import OrcError, is_shortage

if TYPE_CHECKING:
    from agent_orchestrator.engine.driver import Driver


class SavingWork:
    """One tree being saved."""

    def __init__(self, driver: Driver, effect: Checkpoint, finished: Finished) -> None:
        self.driver, self.effect = driver, effect
        self._finished = finished
        self._abandoned = self._unwanted = False
        self._shortage = ShortageWait(driver, effect)

    def start(self, *, halt: bool) -> None:
        """Saves in a thread; a stop waits for it, for half a snapshot is worth nothing and a whole one takes a moment."""
        self.driver.engine.slices.add(self._begin)

    def _begin(self) -> None:
        self.driver.engine.offload(None, self._save, self._end)

    def _save(self) -> CheckpointEnded | OrcError | OSError:
        engine = self.driver.engine
        try:
            self.driver.open_tree(self.effect.tree)
            folder = self.driver.tree(self.effect.tree)
            saved = engine.save_tree(folder, self.driver.directory(self.effect.id), self._redacted())
            # What is in the tree is its owner's business; what is quoted from it in the journal and in prompts is ours.
            kept = self.driver.look_at(self.effect.tree, self.effect.unit)
            redact = engine.redactor.redact_text
            return msgspec.structs.replace(
                saved,
                kept=kept,
                diff=redact(saved.diff),
                changed=tuple(msgspec.structs.replace(one, path=redact(one.path)) for one in saved.changed),
                commits=tuple(msgspec.structs.replace(one, subject=redact(one.subject)) for one in saved.commits),
            )
        except (OrcError, OSError) as error:
            if is_shortage(error) and not self._unwanted:
                return error
            return CheckpointEnded(effect=self.effect.id, unavailable=f"the tree could not be saved: {error}")

    def _redacted(self) -> Checkpoint:
        """The effect with messages that a commit may carry: tasks and summaries may quote a secret."""
        redact, branch = self.driver.engine.redactor.redact_text, self.effect.branch_message
        message = redact(branch) if branch is not None else None
        return msgspec.structs.replace(self.effect, message=redact(self.effect.message), branch_message=message)

    def _end(self, outcome: CheckpointEnded | OrcError | OSError) -> None:
        if self._abandoned:
            return
        if isinstance(outcome, CheckpointEnded):
            self._finished(outcome)
        elif self._unwanted:
            self._begin()
        else:
            self._shortage.later(outcome, self._begin)

    def stop(self) -> None:
        """It is over in a moment; where the machine is short of something, it is tried a last time."""
        self._unwanted = True
        if self._shortage.cancel():
            self._begin()

    def abandon(self) -> None:
        """The next process saves it again."""
        self._abandoned = True
        self._shortage.cancel()


def no_trees(workdir: Path, scratch: Path, effect: Checkpoint) -> CheckpointEnded:
    """For worlds without git."""
    return CheckpointEnded(effect=effect.id, unavailable="there is no git here")


def no_worktrees(home: Path, run: RunId, tree: Tree) -> None:
    """For worlds without git: every tree is there already."""
