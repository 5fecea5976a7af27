"""Issues with a label become runs, and their runs pull requests: looked at again and again, by what is there.

Nothing is remembered but the runs themselves, one per issue and named after it, and the labels: whoever is killed in between
finds the same when they look again. The run is made before the label is moved, so that none is lost; an issue that has a run
gets no second one. Agents see the issue's text as their task, and none of the credentials.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import msgspec

from agent_orchestrator.core.units import say_count
from agent_orchestrator.errors import InvalidValue, OrcError, Refused, Unavailable
from agent_orchestrator.git.command import hold_lock
from agent_orchestrator.git.issues import IssueText, find_fault, list_issues, read_issue, swap_label
from agent_orchestrator.store.port import Which

if TYPE_CHECKING:
    from agent_orchestrator.git.forge import Forge
    from agent_orchestrator.runs.orchestrator import Orchestrator
    from agent_orchestrator.store.port import StoredRun

PREFIX = "issue-"
TASK_CHARS_MAX = 60_000
"""A longer text does not fit into one argument of a command line."""
_LABEL = re.compile(r"[A-Za-z0-9][A-Za-z0-9 ._:/+-]{0,39}\Z")


class IssueWatchOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The options of watching issues, as given."""

    label: str
    max_runs: int = 1
    arguments: tuple[str, ...] = ()
    """The options of `orc run` for each of them."""


RunOrc = Callable[[Sequence[str]], None]
"""Runs `orc` with these arguments to its end; raises Unavailable where it fails."""


class IssueWatch:
    """The issues of one repository that carry the label."""

    def __init__(self, orchestrator: Orchestrator, forge: Forge, options: IssueWatchOptions, orc: RunOrc) -> None:
        if not _LABEL.match(options.label):
            raise InvalidValue(what="--label", value=options.label, expected="a label of at most 40 letters, digits and signs")
        if not forge.repository:
            raise Refused(why="The remote is no repository on a server that gh knows; name another with --remote.")
        self._orchestrator, self._forge, self._options, self._orc = orchestrator, forge, options, orc

    def look(self) -> bool:
        """Take up what is new, and follow up what has ended; False where that failed for one of them. Raises Unavailable."""
        with hold_lock(self._orchestrator.settings.home, "issues"):
            went = [self._try(self._follow_up, number) for number in list_issues(self._forge, self._name("running"))]
            went += [self._try(self._take_up, number) for number in list_issues(self._forge, self._options.label)]
        return all(went)

    def _try(self, what: Callable[[int], None], number: int) -> bool:
        """Do something about an issue; a failure is said, and the others have their turn."""
        try:
            what(number)
        except OrcError as error:
            self._say(number, str(error))
            return False
        return True

    def _name(self, state: str) -> str:
        return f"{self._options.label}-{state}"

    def _run_of(self, number: int) -> StoredRun | None:
        return self._orchestrator.known(f"{PREFIX}{number}")

    def _say(self, number: int, what: str) -> None:
        self._orchestrator.say(f"issue {number}: {what}")

    def _move(self, number: int, state: str, *, came_from: str = "") -> None:
        swap_label(self._forge, number, came_from or self._options.label, self._name(state))

    def _take_up(self, number: int) -> None:
        run = self._run_of(number)
        if run is None:
            if self._unfinished() < self._options.max_runs:
                self._start(number)
            return
        if run.summary.status == "completed":
            self._say(number, f"run {run.id} has completed already")
            self._move(number, "done")
        elif run.summary.ended:
            self._say(number, f"tries again: run {run.id}, which is {run.summary.status}")
            self._orc(("resume", run.id, "--detach", "--quiet"))
            self._move(number, "running")
        else:  # Made by somebody who was killed before the label was moved.
            self._move(number, "running")

    def _unfinished(self) -> int:
        return len(self._orchestrator.runs(Which(begins=PREFIX, ended=False)))

    def _start(self, number: int) -> None:
        issue = read_issue(self._forge, number)
        fault = find_fault(self._forge, issue, self._options.label) if issue is not None else "it is gone"
        if issue is None or fault:
            self._say(number, f"no run: {fault}")
            self._move(number, "refused")
            return
        task = self._make_task(number, issue)
        walled = any(one.partition("=")[0] == "--sandbox" for one in self._options.arguments)
        chosen = (*(() if walled else ("--sandbox",)), *self._options.arguments)
        named = ("--run-id", f"{PREFIX}{number}", "--issue-number", str(number), "--pr", "--detach", "--quiet")
        self._orc(("run", *chosen, *named, "--", task))
        self._say(number, f"run {PREFIX}{number} started: {issue.title}")
        self._move(number, "running")

    def _make_task(self, number: int, issue: IssueText) -> str:
        text = f"{issue.title}\n\n{issue.body}".strip()
        if len(text) > TASK_CHARS_MAX:
            left = len(text) - TASK_CHARS_MAX
            text = f"{text[:TASK_CHARS_MAX]}\n\n({say_count(left, 'character')} more left out.)"
        return f"{text}\n\nThis is issue #{number} of {self._forge.repository.partition('/')[2]}."

    def _follow_up(self, number: int) -> None:
        run, running = self._run_of(number), self._name("running")
        if run is None:  # Another machine's, or pruned.
            return
        if run.summary.status == "completed":
            if not self._orchestrator.fold(run).state.doing.finish.published:
                self._orc(("pr", run.id))
            self._say(number, f"run {run.id} has completed")
            self._move(number, "done", came_from=running)
        elif run.summary.ended:
            self._say(number, f"run {run.id} {run.summary.status.replace('_', ' ')}; why: orc show {run.id}")
            self._move(number, "failed", came_from=running)
        elif run.summary.status in ("running", "aborting") and self._orchestrator.owner(run) is None:
            self._say(number, f"nothing is running run {run.id}: it goes on")
            self._orc(("resume", run.id, "--detach", "--quiet"))


def look_kindly(watch: IssueWatch, say: Callable[[str], None]) -> None:
    """Look once; a server that does not answer now may do so next time, and that is said."""
    try:
        watch.look()
    except Unavailable as error:
        say(str(error))
