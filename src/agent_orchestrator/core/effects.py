"""Effects: the things that a system wants done, as plain data, so that an effect can be performed elsewhere.

A system keeps its effects in `state.doing`; the engine makes the world match. `ACTIVE` effects occupy the
machine and are stopped by `pause --now` and `abort`; the others only wait.
"""

from __future__ import annotations

from typing import Any

import msgspec

from agent_orchestrator.core.budget import Amounts
from agent_orchestrator.core.ids import EffectId
from agent_orchestrator.core.limits import CHECK_TIMEOUT_S, DIFF_CHARS, OUTPUT_LIMIT_BYTES
from agent_orchestrator.core.report import ReportRule


class AgentChoice(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An agent and its model; `options` are the adapter's own (argv, script, …)."""

    name: str
    """The name that people call the agent by: an adapter, or an entry of the configuration."""
    model: str | None = None
    options: dict[str, Any] = {}
    adapter: str = ""
    """The adapter of an agent that goes by another name."""
    configured: dict[str, Any] | None = None
    """The settings that came from the configuration, the model included; None is not known: 0.1.0 did not write it down."""

    @property
    def performer(self) -> str:
        """The adapter that performs."""
        return self.adapter or self.name


class Tree(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A working tree that is not the run's own; made sure of before anything starts there."""

    repo: str = ""
    """Another repository or folder, as an absolute path; empty for the run's own."""
    branch: str = ""
    """A worktree of the repository on this branch; empty for the repository's own checkout."""
    start: str = ""
    """The commit that a branch which does not exist yet begins at; empty for the repository's current commit."""
    onto: tuple[str, ...] = ()
    """Branches whose results it begins with, too."""


class KeptTree(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A working tree that is kept under a ref, so that a run can go back to it."""

    commit: str = ""
    """The commit of all that is in it, the uncommitted work included; empty where it could not be kept."""
    head: str = ""
    """The commit that was checked out; empty in a repository without one."""
    branch: str = ""
    """The branch that was checked out; empty for none."""
    tree: Tree | None = None
    """None for the run's own."""
    target: bool = False
    """True for a branch that work was merged into: no unit's own."""
    problem: str = ""
    """The reason that it could not be kept."""

    @property
    def place(self) -> tuple[str, str]:
        """The repository and the branch that the run knows it by; both empty for its own tree."""
        return (self.tree.repo, self.tree.branch) if self.tree is not None else ("", "")


class TreeReturn(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A working tree, or a branch without one, that has to be what it was at a point."""

    repo: str
    folder: str = ""
    """The working tree; empty where only the branch is moved."""
    branch: str = ""
    kept: KeptTree | None = None
    """The tree to be brought back; None for a branch that did not exist then."""
    newest: str = ""
    """The commit of the newest tree that was kept of it."""
    found: tuple[tuple[str, str], ...] = ()
    """Pairs of kept trees between which no unit worked: files that appeared then are somebody else's, and stay."""


class _Effect(msgspec.Struct, frozen=True, kw_only=True, tag_field="do"):
    id: EffectId
    unit: str


class RunAgent(_Effect, frozen=True, kw_only=True, tag="run_agent"):
    """Run an agent on a working tree and read its report."""

    agent: AgentChoice
    tree: Tree | None = None
    """None for the run's own."""
    role: str
    report: ReportRule
    iteration: int
    attempt: int
    prompt_file: str | None = None
    """Read and filled in when the launch starts; exactly one of the two prompts is given."""
    prompt_text: str | None = None
    variables: dict[str, str] = {}
    """Replaces `{NAME}` in the prompt."""
    env: dict[str, str] = {}
    inputs: dict[str, tuple[str, ...]] = {}
    """Artifacts of other units, relative to the working tree, by unit."""
    feedback: tuple[dict[str, Any], ...] = ()
    """Problems that earlier iterations and attempts ran into, newest last."""
    told: tuple[dict[str, Any], ...] = ()
    """Feedback that stands in the prompt already: it goes into the feedback file alone, before the other."""
    steering: tuple[str, ...] = ()
    """Words of people for this agent: they stand first in the prompt."""
    answer_file: str | None = None
    """The file in which a person's answer about this unit may already lie, relative to the run's home."""
    report_copy: str | None = None
    """The file that gets a copy of the newest report for people, relative to the run's home."""
    artifacts_dir: str = ""
    """Offered to the agent for files that are not part of the tree, relative to the run's home."""
    session: str | None = None
    """The agent's own session to go on with, where an earlier launch of this attempt was stopped in one."""
    allowed_commands: tuple[str, ...] = ()
    """Commands that the run itself runs to check the work: the agent may run them, too, where it can be told so."""
    terminal: str | None = None
    """The tmux session that the agent is to run in."""
    timeout_s: float | None = None
    idle_timeout_s: float | None = None
    """The time that the agent may be silent: None for its adapter's own limit, 0 for ever."""
    output_limit_bytes: int = OUTPUT_LIMIT_BYTES
    step_limits: Amounts | None = None
    attempt_limits: Amounts | None = None
    """The budgets of the unit and of this attempt, where they differ from the run's."""


class Remote(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A remote by its name, and the address, without credentials, that it must have."""

    name: str
    address: str


class RunCheck(_Effect, frozen=True, kw_only=True, tag="run_check"):
    """Run a command with `sh -c` in the working tree; its exit code is the evidence."""

    command: str
    argv: tuple[str, ...] = ()
    """A program and its arguments to run without a shell; the command is then only what people are told."""
    stdin: str = ""
    """The program's standard input."""
    remote: Remote | None = None
    """The remote that the program speaks to: it is not started while the remote is elsewhere."""
    tree: Tree | None = None
    timeout_s: float = CHECK_TIMEOUT_S
    output_limit_bytes: int = OUTPUT_LIMIT_BYTES


class AskHuman(_Effect, frozen=True, kw_only=True, tag="ask_human"):
    """Wait for a person: a directive, or the answer file where there is one."""

    question: str
    answer_file: str = ""
    """Relative to the run's home; only where the unit says that a file is believed."""
    after: EffectId
    """The agent launch whose work is to be judged: an answer written while it ran is not consent."""
    in_words: bool = False
    """True for a question to be answered, not something to approve or reject."""


class Wait(_Effect, frozen=True, kw_only=True, tag="wait"):
    """Wait until a wall-clock time."""

    until_us: int
    reason: str


class AwaitGates(_Effect, frozen=True, kw_only=True, tag="await_gates"):
    """Wait until every name is true in the JSON object in `file`."""

    file: str
    names: tuple[str, ...]


class ReadFile(_Effect, frozen=True, kw_only=True, tag="read_file"):
    """Read a text file of the working tree, so that a system can decide on what stands in it."""

    path: str
    tree: Tree | None = None


class Checkpoint(_Effect, frozen=True, kw_only=True, tag="checkpoint"):
    """Keep the working tree as a commit under a ref. Nothing of the user's index, branch or files is touched.

    The commit is made of the tree and of what stands here, so that repeating it gives the same commit.
    """

    ref: str
    message: str
    tree: Tree | None = None
    at_us: int
    """The commit's date, from the journal."""
    since: str | None = None
    """The commit to count changes from; None counts from the last commit of the branch."""
    start: str | None = None
    """The commit that the diff and the list of changed files begin at."""
    diff_chars: int = DIFF_CHARS
    branch_message: str | None = None
    """Commit the tree on the current branch too, with this message."""
    rivals: tuple[str, ...] = ()
    """Branches that the current one may collide with when both are merged."""
    branch: str | None = None
    """The branch that has to be checked out for that; None takes whichever is."""
    empty: bool = False
    """Commit on the branch also when nothing changed."""
    of: str | None = None
    """Commit the tree of this earlier snapshot on the branch, not the working tree."""


class Merge(_Effect, frozen=True, kw_only=True, tag="merge"):
    """Merge a branch into another, tested before it lands, in the run's repository.

    The merge commit is made of the two branches and of what stands here, so that repeating it gives the same commit. The
    user's files follow only where nothing of theirs would be lost; else nothing lands and the outcome says who is in the way.
    """

    branch: str
    into: str
    message: str
    """The whole message, trailers included."""
    at_us: int
    """The commit's date, from the journal."""
    repo: str = ""
    """The repository, where it is not the run's home."""
    check: str | None = None
    """A command for `sh -c` that must pass on the merged tree, in a worktree of its own, before the merge lands."""
    timeout_s: float = CHECK_TIMEOUT_S
    output_limit_bytes: int = OUTPUT_LIMIT_BYTES


Effect = RunAgent | RunCheck | AskHuman | Wait | AwaitGates | ReadFile | Checkpoint | Merge

ACTIVE = (RunAgent, RunCheck, Checkpoint, Merge)
"""Effects that occupy the machine: what a pause drains and `--now` stops."""
