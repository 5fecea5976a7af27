"""Runs a check: a command the engine runs itself, with the working tree identified before and after as evidence."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import TYPE_CHECKING

from agent_orchestrator.agents.adapter import Ending
from agent_orchestrator.agents.output import read_tails
from agent_orchestrator.core.effects import RunCheck
from agent_orchestrator.core.failure import Failure
from agent_orchestrator.core.inputs import CheckEnded
from agent_orchestrator.engine.launches import Order, Watch
from agent_orchestrator.engine.perform.launch import Launched
from agent_orchestrator.engine.perform.work import Finished
from agent_orchestrator.git.remotes import refuse_moved

if TYPE_CHECKING:
    from agent_orchestrator.engine.driver import Driver

STDIN = "stdin"
TREE = "tree"
"""The file that keeps the tree's identity before the check: a check may outlive the process that started it."""


class CheckWork(Launched):
    """One check."""

    def __init__(self, driver: Driver, effect: RunCheck, finished: Finished, *, inherited: bool, same_boot: bool) -> None:
        super().__init__(driver, effect, finished, inherited=inherited, same_boot=same_boot)
        self.effect = effect
        self._workdir = driver.tree(effect.tree)

    def prepares(self) -> bool:
        """The tree is identified first."""
        return True

    def prepare(self) -> None:
        """Identifies the tree that the evidence will be about, and where a program is that will be spoken to."""
        super().prepare()
        if self.effect.remote is not None:
            refuse_moved(self._workdir, self.effect.remote.name, self.effect.remote.address)
        if self.effect.argv:
            return  # A program that speaks to the world is evidence of nothing about the tree.
        with contextlib.suppress(OSError):
            self.directory.mkdir(parents=True, exist_ok=True)
            (self.directory / TREE).write_text(self.engine.tree_of(self._workdir, self.directory) or "", "ascii")

    def order(self) -> Order:
        """`sh -c`, as the author of the workflow wrote it."""
        context = self.driver.run.context
        env = {
            **self.driver.child_env,
            "RUN_ID": context.run,
            "STEP_ID": self.effect.unit,
            "REPO_DIR": str(self._workdir),
        }
        self.directory.mkdir(parents=True, exist_ok=True)
        argv = self.effect.argv or ("/bin/sh", "-c", self.effect.command)
        return Order(effect=self.effect.id, argv=argv, env=env, cwd=self._workdir, stdin=self._stdin())

    def _stdin(self) -> Path | None:
        if not self.effect.stdin:
            return None
        file = self.directory / STDIN
        file.write_text(self.effect.stdin, "utf-8")
        return file

    def limits(self) -> Watch:
        """The check's limits."""
        return Watch(
            timeout_s=self.effect.timeout_s,
            output_limit_bytes=self.effect.output_limit_bytes,
            grace_s=self.engine.stop_grace_s,
        )

    def weight(self, ending: Ending) -> int | None:
        """Identifying the tree runs git, so a check is always judged in a thread."""
        return None if ending.cause is None else 0

    def judge(self, ending: Ending) -> CheckEnded:
        """The evidence."""
        self.redact(ending.out, ending.err)
        before, after = self._before(), None
        if before and ending.cause is None:
            after = self.engine.tree_of(self._workdir, self.directory)
        return CheckEnded(
            effect=self.effect.id,
            started_us=ending.started_us,
            ended_us=ending.ended_us,
            exit_code=ending.exit_code,
            failure=ending.cause,
            tail=self.engine.redactor.redact_text(read_tails(ending)),
            tree_before=before,
            tree_after=after,
        )

    def unjudged(self, ending: Ending, failure: Failure) -> CheckEnded:
        """Never started, or its end cannot be understood."""
        return CheckEnded(
            effect=self.effect.id,
            started_us=ending.started_us,
            ended_us=ending.ended_us,
            exit_code=ending.exit_code,
            failure=failure,
        )

    def _before(self) -> str | None:
        try:
            return (self.directory / TREE).read_text("ascii") or None
        except OSError:
            return None
