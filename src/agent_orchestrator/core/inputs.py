"""The inputs of a run: outcomes of its effects, directives from people, documents edited by hand.

Everything a system learns arrives as one of these; a system never looks at the world itself.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any

import msgspec

from agent_orchestrator.core.budget import Budget
from agent_orchestrator.core.effects import AgentChoice, KeptTree
from agent_orchestrator.core.failure import Failure
from agent_orchestrator.core.ids import EffectId
from agent_orchestrator.core.queue import Landing
from agent_orchestrator.core.report import Report
from agent_orchestrator.core.who import Who


class Usage(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The usage of one launch; None means unknown, which is not zero."""

    model: str | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_read_tokens: int | None = None
    cache_write_tokens: int | None = None
    cost_usd: float | None = None
    session: str | None = None
    """The agent's session in which this was consumed."""
    wall_s: float | None = None
    """The time that it ran; known where that is limited for its step or the day."""
    calls: int | None = None
    """The number of calls to the model."""

    @property
    def tokens(self) -> int | None:
        """All tokens together."""
        counts = (self.input_tokens, self.output_tokens, self.cache_read_tokens, self.cache_write_tokens)
        known = [count for count in counts if count is not None]
        return sum(known) if known else None


class Denial(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A tool that was refused to an agent."""

    tool: str
    asked: str = ""
    """The thing it was to do: a command, a path."""
    allow: str = ""
    """The options of a command line that would allow it, as in `--allow-tool 'Bash(make:*)'`; empty where none would."""


class _Outcome(msgspec.Struct, frozen=True, kw_only=True, tag_field="input", omit_defaults=True):
    effect: EffectId


class AgentEnded(_Outcome, frozen=True, kw_only=True, tag="agent_ended"):
    """A RunAgent is over. `failure` None means success: exit code and report agree."""

    started_us: int
    ended_us: int
    exit_code: int | None = None
    failure: Failure | None = None
    report: Report | None = None
    usage: Usage | None = None
    session: str | None = None
    """The agent's own session, if it has such a thing."""
    tail: str = ""
    warnings: tuple[str, ...] = ()
    denials: tuple[Denial, ...] = ()
    """Tools that it was refused, however it ended."""
    kept: KeptTree | None = None
    """The tree as it left it, where that is another than before."""


class CheckEnded(_Outcome, frozen=True, kw_only=True, tag="check_ended"):
    """A RunCheck is over. It passed when `failure` is None and the exit code is 0.

    `tree_before` and `tree_after` identify the working tree (None without git); if they differ the evidence is void.
    """

    started_us: int
    ended_us: int
    exit_code: int | None = None
    failure: Failure | None = None
    tail: str = ""
    tree_before: str | None = None
    tree_after: str | None = None
    counted: tuple[int, int] | None = None
    """The tests that ran and those that passed, by the words of a known runner."""
    doubts: tuple[str, ...] = ()
    """Reasons why its passing is worth less than it seems: see `core/evidence`."""


class TimerFired(_Outcome, frozen=True, kw_only=True, tag="timer_fired"):
    """A Wait is over."""


class GatesOpened(_Outcome, frozen=True, kw_only=True, tag="gates_opened"):
    """An AwaitGates is over."""


class HumanAnswered(_Outcome, frozen=True, kw_only=True, tag="human_answered"):
    """A person wrote the answer file of an AskHuman."""

    approved: bool
    comments: str = ""
    who: Who | None = None
    """The file's owner."""


class FileRead(_Outcome, frozen=True, kw_only=True, tag="file_read"):
    """A ReadFile is over: the text, or why there is none."""

    text: str = ""
    failure: Failure | None = None


class FileChange(msgspec.Struct, frozen=True, array_like=True):
    """A file that differs between two trees: A(dded), M(odified), D(eleted) or T(ype changed), and what it became."""

    status: str
    path: str
    blob: str = ""


class Commit(msgspec.Struct, frozen=True, array_like=True):
    """A commit as people name it."""

    sha: str
    subject: str

    def __str__(self) -> str:
        return f"{self.sha} - {self.subject}" if self.subject else self.sha


class Collision(msgspec.Struct, frozen=True, array_like=True):
    """A branch that cannot be merged with this one as both are, and the paths in which."""

    branch: str
    paths: tuple[str, ...]


class CheckpointEnded(_Outcome, frozen=True, kw_only=True, tag="checkpoint_ended"):
    """A Checkpoint is over; without git, or when git failed, `unavailable` says why and nothing else is known."""

    unavailable: str = ""
    commit: str | None = None
    tree: str | None = None
    head: str | None = None
    """The branch's commit at the time."""
    files_changed: int = 0
    lines_added: int = 0
    lines_removed: int = 0
    """Counted from `since`."""
    changed: tuple[FileChange, ...] = ()
    """Counted from `start`, at most CHANGED_FILES_MAX."""
    diff: str = ""
    branch_commit: str | None = None
    commits: tuple[Commit, ...] = ()
    """Those of the branch since `start`, the oldest first, at most COMMITS_MAX; only where it was to be committed on."""
    collisions: tuple[Collision, ...] = ()
    """The rivals that collide."""
    kept: KeptTree | None = None
    """The tree as it is now, where that is another than before."""


class MergeVerdict(StrEnum):
    """The outcome of a merge; only `LANDED` moved the branch."""

    LANDED = "landed"
    CONFLICT = "conflict"
    RED = "red"
    """The check failed on the merged tree, or ran out of time."""
    HELD = "held"
    """A checkout of the target has changes that the merge would overwrite: a person has to commit or stash them."""
    MOVED = "moved"
    """The target moved while the merge was being checked: do it again, as a new launch."""
    INTERRUPTED = "interrupted"
    """The check was stopped or got lost: do it again, as a new launch."""
    UNAVAILABLE = "unavailable"
    """It cannot be done here: no git, a git that is too old, a branch that is not there."""


class MergeEnded(_Outcome, frozen=True, kw_only=True, tag="merge_ended"):
    """A Merge is over."""

    verdict: MergeVerdict
    detail: str = ""
    """The reason that it did not land, in a sentence; '' when it did."""
    commit: str | None = None
    """The commit of the target, once it has landed; the merge that was tried, when the check failed."""
    conflicts: tuple[str, ...] = ()
    """The paths that both sides changed."""
    conflict_text: str = ""
    """The places in them, with markers, at most CONFLICT_CHARS."""
    exit_code: int | None = None
    failure: Failure | None = None
    tail: str = ""
    """Of the check."""
    started_us: int = 0
    ended_us: int = 0
    kept: KeptTree | None = None
    """The target, once it has landed."""

    @property
    def again(self) -> bool:
        """True when nothing was learned and the same merge is to be tried as a new launch."""
        return self.verdict in (MergeVerdict.MOVED, MergeVerdict.INTERRUPTED)


Outcome = AgentEnded | CheckEnded | TimerFired | GatesOpened | HumanAnswered | FileRead | CheckpointEnded | MergeEnded


class _Directive(msgspec.Struct, frozen=True, kw_only=True, tag_field="directive", omit_defaults=True):
    id: str
    """Made by the sender and unique: a directive sent twice counts once."""
    who: Who | None = None
    """The sender; filled in where it is sent."""


class Pause(_Directive, frozen=True, kw_only=True, tag="pause"):
    """Start nothing new; `now` also stops what runs."""

    now: bool = False
    reason: str = "asked to pause"


class Resume(_Directive, frozen=True, kw_only=True, tag="resume"):
    """Go on; `changes` are the system's own (limits raised, a step to start at)."""

    changes: dict[str, Any] = {}


class Abort(_Directive, frozen=True, kw_only=True, tag="abort"):
    """Stop everything and end the run."""

    reason: str = "aborted by a person"


class Answer(_Directive, frozen=True, kw_only=True, tag="answer"):
    """Approve or reject the unit that waits for a person; `unit` may be left out when only one does."""

    approved: bool
    unit: str | None = None
    comments: str = ""
    asked: EffectId | None = None
    """The question that was seen, by the id of its effect: an answer to another one does not count."""


class Instruct(_Directive, frozen=True, kw_only=True, tag="instruct"):
    """Something that only some systems understand; the others refuse it."""

    what: str
    values: dict[str, Any] = {}
    asked: EffectId | None = None
    """The question that was seen, where this answers one."""


Directive = Pause | Resume | Abort | Answer | Instruct


class SetLimits(_Directive, frozen=True, kw_only=True, tag="set_limits"):
    """Change what the run may spend; what is not given stays. The engine's own: no system sees it."""

    limits: Budget


class SetAgents(_Directive, frozen=True, kw_only=True, tag="set_agents"):
    """Let other agents work, or the same ones with other settings, from the next launch on. The engine's own, too."""

    agents: dict[str, AgentChoice]
    """By role, and by bead in a swarm: only those that change."""
    changes: tuple[str, ...] = ()
    """The same in words."""


class Land(_Directive, frozen=True, kw_only=True, tag="land"):
    """Merge these branches of the run, which may have ended. The engine's own, too, like the next two."""

    landings: tuple[Landing, ...]


class Discard(_Directive, frozen=True, kw_only=True, tag="discard"):
    """The work of an ended run is discarded; `kept` are the refs that keep it."""

    kept: dict[str, str]


class Publish(_Directive, frozen=True, kw_only=True, tag="publish"):
    """The unit's branch has this pull request."""

    branch: str
    url: str
    unit: str = ""


class Steer(_Directive, frozen=True, kw_only=True, tag="steer"):
    """Tell the agents of a unit, or of all units, something. The engine's own, too: no system sees it."""

    text: str
    unit: str | None = None
    now: bool = False
    """Stop the agent at work, which goes on in a new launch that has read the words."""


class TakeOver(_Directive, frozen=True, kw_only=True, tag="take_over"):
    """Let a person have the session of the unit's agent; the other units go on. The engine's own, too, like the next one."""

    unit: str


class HandBack(_Directive, frozen=True, kw_only=True, tag="hand_back"):
    """Let the unit's agent go on in the session that a person had."""

    unit: str
    done: bool = False
    """The work is done, as the person says: the agent has only to report on it."""


class Saying(StrEnum):
    """The kinds of things that an agent at work says to people."""

    NOTE = "note"
    """It has come so far."""
    QUESTION = "question"
    """It wants to know something, and goes on meanwhile."""
    HEARD = "heard"
    """It has read the words that people had for it."""


class Speak(_Directive, frozen=True, kw_only=True, tag="speak"):
    """An agent at work says something, by the server that its launch was given. It directs nothing. The engine's own, too."""

    effect: EffectId
    saying: Saying
    text: str = ""


Posted = Directive | SetLimits | SetAgents | Steer | TakeOver | HandBack | Speak | Land | Discard | Publish
"""The directives that may lie in an inbox."""


class Edited(msgspec.Struct, frozen=True, kw_only=True):
    """A print-out was changed by hand and the change was accepted as valid JSON of the document's shape."""

    path: str
    document: dict[str, Any]


Input = Outcome | Directive | Edited
"""The inputs that a system is asked about."""

Given = Input | SetLimits | SetAgents | Steer | TakeOver | HandBack | Speak | Land | Discard | Publish
"""The inputs of a run, the directives to the engine included."""

OUTCOMES = (AgentEnded, CheckEnded, TimerFired, GatesOpened, HumanAnswered, FileRead, CheckpointEnded, MergeEnded)
DIRECTIVES = (
    *(Pause, Resume, Abort, Answer, Instruct, SetLimits, SetAgents),
    *(Steer, TakeOver, HandBack, Speak, Land, Discard, Publish),
)
