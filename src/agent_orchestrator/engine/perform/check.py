"""Runs a check: a command the engine runs itself, with the working tree identified before and after as evidence."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from agent_orchestrator.agents.adapter import Ending
from agent_orchestrator.agents.output import read_tail, read_tails
from agent_orchestrator.beneath import open_folder, write_plainly
from agent_orchestrator.bounded import store_of
from agent_orchestrator.core.effects import RunCheck
from agent_orchestrator.core.evidence import count_tests, find_doubts
from agent_orchestrator.core.failure import Failure, FailureKind
from agent_orchestrator.core.inputs import CheckEnded
from agent_orchestrator.core.limits import TAIL_CHARS
from agent_orchestrator.engine.launches import Order, Watch
from agent_orchestrator.engine.perform.launch import Launched
from agent_orchestrator.engine.perform.work import Finished
from agent_orchestrator.errors import OrcError, Unavailable, is_shortage
from agent_orchestrator.git.command import guard_variables
from agent_orchestrator.git.remotes import refuse_moved

if TYPE_CHECKING:
    from agent_orchestrator.engine.driver import Driver

OUTPUT_CHARS = 256 * 1024
"""The end of each stream in which the numbers of test runners are looked for."""
STDIN = "stdin"
TREE = "tree"
"""The file that keeps the tree's identity before the check: a check may outlive the process that started it."""


class CheckWork(Launched):
    """One check."""

    def __init__(self, driver: Driver, effect: RunCheck, finished: Finished, *, inherited: bool, same_boot: bool) -> None:
        super().__init__(driver, effect, finished, inherited=inherited, same_boot=same_boot)
        self.effect = effect
        self._workdir = driver.tree(effect.tree)
        self._guards: dict[str, str] = {}

    def prepares(self) -> bool:
        """The tree is identified first."""
        return True

    def prepare(self) -> None:
        """Identifies the tree that the evidence will be about, and where a program is that will be spoken to."""
        super().prepare()
        if self.effect.remote is not None:
            refuse_moved(self._workdir, self.effect.remote.name, self.effect.remote.address)
        if self.effect.argv:
            self._guards = guard_variables(self._workdir, self.driver.child_env)
            return  # A program that speaks to the world is evidence of nothing about the tree.
        root = store_of(self.directory)
        with open_folder(root, self.directory, make=True):
            tree = self.engine.tree_of(self._workdir, self.directory) or ""
        write_plainly(root, self.directory / TREE, tree.encode("ascii"))

    def is_enclosed(self) -> bool:
        """A program given by its arguments is orc's own and speaks to the world: `gh`, `git push`."""
        return not self.effect.argv

    def order(self) -> Order:
        """`sh -c`, as the author of the workflow wrote it."""
        context = self.driver.run.context
        env = {
            **self.driver.child_env,
            **self._guards,
            "RUN_ID": context.run,
            "STEP_ID": self.effect.unit,
            "REPO_DIR": str(self._workdir),
        }
        argv = self.effect.argv or ("/bin/sh", "-c", self.effect.command)
        return Order(effect=self.effect.id, argv=argv, env=env, cwd=self._workdir, stdin=self._stdin())

    def _stdin(self) -> Path | None:
        if not self.effect.stdin:
            return None
        file = self.directory / STDIN
        write_plainly(store_of(self.directory), file, self.effect.stdin.encode())
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
        before, after, failure = None, None, ending.cause
        doubts: tuple[str, ...] = ()
        counted = (
            None if self.effect.argv else count_tests(read_tail(ending.out, OUTPUT_CHARS) + read_tail(ending.err, OUTPUT_CHARS))
        )
        if failure is None and not self.effect.argv:
            try:
                before, after = self._compare()
            except (OrcError, OSError, UnicodeDecodeError) as error:
                if is_shortage(error):
                    raise
                why = f"Whether it left the working tree as it was cannot be seen: {error}"
                failure = Failure(kind=FailureKind.LAUNCH, message=why)
            else:
                doubts = self._doubts(counted) if ending.exit_code == 0 else ()
        return CheckEnded(
            effect=self.effect.id,
            started_us=ending.started_us,
            ended_us=ending.ended_us,
            exit_code=ending.exit_code,
            failure=failure,
            tail=self.engine.redactor.redact_text(_told(read_tails(ending), doubts)),
            tree_before=before,
            tree_after=after,
            counted=counted,
            doubts=tuple(self.engine.redactor.redact_text(one) for one in doubts),
        )

    def _doubts(self, counted: tuple[int, int] | None) -> tuple[str, ...]:
        """Return why passing is worth less than it seems, given the tree as it was found and as the last agent left it."""
        doing, own = self.driver.state.doing, self.effect.tree
        place = (own.repo, own.branch) if own is not None else ("", "")
        found, kept = (own.start if own is not None else doing.found.get(place)), doing.kept.get(place)
        differ = found and kept is not None and kept.commit not in ("", found)
        changed = self.engine.world.list_changes(self._workdir, found, kept.commit) if differ else ()
        return find_doubts(counted[0] if counted is not None else None, doing.tests.get(self.effect.command), changed)

    def unjudged(self, ending: Ending, failure: Failure) -> CheckEnded:
        """Never started, or its end cannot be understood."""
        return CheckEnded(
            effect=self.effect.id,
            started_us=ending.started_us,
            ended_us=ending.ended_us,
            exit_code=ending.exit_code,
            failure=failure,
        )

    def _compare(self) -> tuple[str | None, str | None]:
        """Identify the tree before and after; both None outside a repository. Raises Unavailable when it was inside one."""
        before = self.read_own(TREE).decode("ascii") or None
        after = self.engine.tree_of(self._workdir, self.directory) if before is not None else None
        if before is not None and after is None:
            raise Unavailable(detail=f"{self._workdir} is in no git repository any more")
        return before, after


def _told(tail: str, doubts: tuple[str, ...]) -> str:
    """The output as it is stored and shown, with the doubts at its end."""
    said = f"orc: the check passed, but {'; '.join(doubts)}."[:TAIL_CHARS] if doubts else ""
    return "\n".join(one for one in (tail.rstrip("\n")[-(TAIL_CHARS - len(said)) :], said) if one) if said else tail
