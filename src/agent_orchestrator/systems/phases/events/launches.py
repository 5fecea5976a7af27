"""Facts about programs, commits, merges, waits and questions of any unit."""

from __future__ import annotations

from agent_orchestrator.core.events import Event
from agent_orchestrator.core.launch_events import AgentLaunchFinished, JudgedCheckFinished
from agent_orchestrator.core.report import Learning


class SavingStarted(Event, frozen=True, kw_only=True, tag="saving_started"):
    """The tree is being committed or kept: `base`, `work`, `kept`, `fix`, `left`, `checkpoint`, `mend`."""

    effect: str
    step: str
    purpose: str


class TreeSaved(Event, frozen=True, kw_only=True, tag="tree_saved"):
    """The tree is kept, or `unavailable` says why it is not."""

    step: str
    purpose: str
    unavailable: str = ""
    commit: str | None = None
    branch_commit: str | None = None
    head: str | None = None
    """The branch's commit before."""
    files: tuple[str, ...] = ()
    """What differs from the last checkpoint."""
    diff: str = ""
    then: str = ""
    """What follows for the review when nothing is left to mend: `scan`, `criteria`."""


class AgentStarted(Event, frozen=True, kw_only=True, tag="agent_started"):
    """An agent is to work: `plan`, `execute`, `pre_task`, `post_task`, `on_demand`, `scan`, `repair`."""

    effect: str
    step: str
    purpose: str
    iteration: int = 0
    attempt: int = 1


class AgentFinished(AgentLaunchFinished, frozen=True, kw_only=True, tag="agent_finished"):
    """The agent is over, and this is what it said; what it means follows as events of their own."""

    step: str
    purpose: str
    metered: bool = True
    """Whether it is known what it cost."""
    cost_usd: float | None = None


class LearningsRecorded(Event, frozen=True, kw_only=True, tag="learnings_recorded"):
    """What an agent wants later ones to know."""

    task: str
    iteration: int
    learnings: tuple[Learning, ...]


class LaunchInterrupted(Event, frozen=True, kw_only=True, tag="launch_interrupted"):
    """What ran was stopped; the same attempt goes on with a new launch as soon as it may."""

    step: str
    why: str


class BackoffStarted(Event, frozen=True, kw_only=True, tag="backoff_started"):
    """A new attempt of the unit starts at `until_us`."""

    effect: str
    step: str
    until_us: int
    reason: str


class BackoffEnded(Event, frozen=True, kw_only=True, tag="backoff_ended"):
    """What waited may start."""

    step: str


class HumanAsked(Event, frozen=True, kw_only=True, tag="human_asked"):
    """A person is asked about `questions`, the `plan`, a `replan`, a `task` that failed, a `check`, the `review`."""

    effect: str
    step: str
    about: str
    question: str
    after: str = ""


class HumanJudged(Event, frozen=True, kw_only=True, tag="human_judged"):
    """A person answered; what it means follows."""

    step: str
    about: str
    approved: bool
    comments: str = ""


class MergeStarted(Event, frozen=True, kw_only=True, tag="merge_started"):
    """A task's branch is being merged into the run's."""

    effect: str
    step: str


class MergeFinished(Event, frozen=True, kw_only=True, tag="merge_finished"):
    """What came of the merge."""

    step: str
    verdict: str
    detail: str = ""
    again: bool = False
    held: bool = False
    """A person has to make room for it."""


class CheckStarted(Event, frozen=True, kw_only=True, tag="check_started"):
    """A command is being run: a criterion of a task or of all (`criterion`, `verify`, `global`), or a tool."""

    effect: str
    step: str
    purpose: str
    criterion: str = ""


class CheckFinished(JudgedCheckFinished, frozen=True, kw_only=True, tag="check_finished"):
    """The evidence of one command."""

    step: str
    purpose: str
    criterion: str
    command: str
    then: str = ""
    """What follows the last criterion of the whole: `reviewed`, `repair`, `unmet`."""


class AgentGaveUp(Event, frozen=True, kw_only=True, tag="agent_gave_up"):
    """An agent that is no task's failed for good: a person has to say whether it is tried again."""

    step: str
    why: str


class CheckAbandoned(Event, frozen=True, kw_only=True, tag="check_abandoned"):
    """What the agent was to do is done without."""

    step: str
    why: str
