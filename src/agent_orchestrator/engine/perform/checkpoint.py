"""Saves the working tree as a commit under a ref. It takes no process of its own that could outlive us: git's commands are
short, and repeating them after a crash gives the same commit."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from agent_orchestrator.core.effects import Checkpoint, Tree
from agent_orchestrator.core.ids import RunId
from agent_orchestrator.core.inputs import CheckpointEnded
from agent_orchestrator.engine.perform.work import Finished
from agent_orchestrator.errors import OrcError

if TYPE_CHECKING:
    from agent_orchestrator.engine.driver import Driver


class SavingWork:
    """One tree being saved."""

    def __init__(self, driver: Driver, effect: Checkpoint, finished: Finished) -> None:
        self.driver, self.effect = driver, effect
        self._finished = finished
        self._abandoned = False

    def start(self, *, halt: bool) -> None:
        """Saves in a thread; a stop waits for it, for half a snapshot is worth nothing and a whole one takes a moment."""
        engine = self.driver.engine
        engine.slices.add(lambda: engine.offload(None, self._save, self._end))

    def _save(self) -> CheckpointEnded:
        engine = self.driver.engine
        try:
            self.driver.open_tree(self.effect.tree)
            folder = self.driver.tree(self.effect.tree)
            saved = engine.save_tree(folder, engine.launches.directory(self.effect.id), self.effect)
            # What is in the tree is its owner's business; what is quoted from it in the journal and in prompts is ours.
            return msgspec.structs.replace(saved, diff=engine.redactor.redact_text(saved.diff))
        except (OrcError, OSError) as error:
            return CheckpointEnded(effect=self.effect.id, unavailable=f"the tree could not be saved: {error}")

    def _end(self, outcome: CheckpointEnded) -> None:
        if not self._abandoned:
            self._finished(outcome)

    def stop(self) -> None:
        """It is over in a moment."""

    def abandon(self) -> None:
        """The next process saves it again."""
        self._abandoned = True


def no_trees(workdir: Path, scratch: Path, effect: Checkpoint) -> CheckpointEnded:
    """For worlds without git."""
    return CheckpointEnded(effect=effect.id, unavailable="there is no git here")


def no_worktrees(home: Path, run: RunId, tree: Tree) -> None:
    """For worlds without git: every tree is there already."""
