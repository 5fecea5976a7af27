"""Facts about the run as a whole: planned, its phases and milestones, its review, what people change."""

from __future__ import annotations

from typing import Any

import msgspec

from agent_orchestrator.core.events import Event, StopReason
from agent_orchestrator.systems.phases.events.tasks import PlanChange


class Finding(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Something that the review found."""

    priority: str
    issue: str
    file: str = ""


class RunPlanned(Event, frozen=True, kw_only=True, tag="run_planned"):
    """The run exists."""

    name: str
    phases: int
    tasks: int


class QuestionsRaised(Event, frozen=True, kw_only=True, tag="questions_raised"):
    """What the planner wants to know before anything starts."""

    questions: tuple[str, ...]


class PlanApproved(Event, frozen=True, kw_only=True, tag="plan_approved"):
    """The phases are being executed from now on."""


class PhaseCompleted(Event, frozen=True, kw_only=True, tag="phase_completed"):
    """Nothing of a phase is left to do."""

    phase: int
    completed: bool = True
    """Whether anything of it was done; a phase that was skipped whole is no milestone."""


class MilestoneRecorded(Event, frozen=True, kw_only=True, tag="milestone_recorded"):
    """A phase's milestone exists as an issue, or as a file when `problem` or the lack of a remote says so."""

    phase: int
    url: str
    body: str = ""
    problem: str = ""


class ReviewStarted(Event, frozen=True, kw_only=True, tag="review_started"):
    """All phases are complete."""


class FindingsListed(Event, frozen=True, kw_only=True, tag="findings_listed"):
    """What is to be mended, the most urgent first; nothing ends the outer loop."""

    findings: tuple[Finding, ...]
    fixed: bool = False
    """The scanner mended something itself."""


class FindingSettled(Event, frozen=True, kw_only=True, tag="finding_settled"):
    """The finding at work was mended, or left with a reason."""

    left: str = ""
    then: str = ""
    """What follows: `repair` the next one, `scan` again, or the `criteria` of the whole."""


class ReviewPassed(Event, frozen=True, kw_only=True, tag="review_passed"):
    """Nothing is left to review; `left` says what was given up."""

    left: str = ""


class PullRequestRecorded(Event, frozen=True, kw_only=True, tag="pull_request_recorded"):
    """The work is offered as a pull request, or described in a file."""

    url: str
    body: str = ""
    problem: str = ""


class BoundsChanged(Event, frozen=True, kw_only=True, tag="bounds_changed"):
    """Safety bounds and options given on resuming, or edited by hand; cost and time are only how they are written."""

    changes: dict[str, Any]


class ListsEdited(Event, frozen=True, kw_only=True, tag="lists_edited"):
    """Task lists that a person edited in the state file."""

    changes: tuple[PlanChange, ...] = ()
    done: tuple[dict[str, Any], ...] = ()
    """Tasks declared to be completed, as `completed_tasks` has them."""
    undone: tuple[str, ...] = ()
    skipped: tuple[str, ...] = ()


class AgentsDropped(Event, frozen=True, kw_only=True, tag="agents_dropped"):
    """Agents that a person took out of `active_agents`: each is stopped and spawned again."""

    steps: tuple[str, ...]


class Rewound(Event, frozen=True, kw_only=True, tag="rewound"):
    """State and plan are those of a checkpoint again."""

    to: int
    why: str


class Archived(Event, frozen=True, kw_only=True, tag="archived"):
    """Another run begins: this one's print-outs stand in the archive from now on."""


class EditRefused(Event, frozen=True, kw_only=True, tag="edit_refused"):
    """An edited state file was not adopted."""

    problems: tuple[str, ...]


class Imported(Event, frozen=True, kw_only=True, tag="imported"):
    """What a state file without a journal said of the run, as far as it could be used; lists as the file has them."""

    stage: str
    started_us: int | None = None
    ended_us: int | None = None
    start: str = ""
    """The commit that it goes on from."""
    completed: tuple[dict[str, Any], ...] = ()
    supervisor: dict[str, Any]
    learnings: tuple[dict[str, Any], ...] = ()
    milestones: tuple[dict[str, Any], ...] = ()
    checkpoints: tuple[dict[str, Any], ...] = ()
    warnings: tuple[str, ...] = ()
    cost_usd: float | None = None
    unmetered: bool = False
    elapsed_s: float = 0.0


class Concluded(Event, frozen=True, kw_only=True, tag="concluded"):
    """Nothing more will be tried; `Ended` follows."""

    stop: StopReason
    detail: str
