"""A team in memory: the one place every fact stands in; all files are derived from it. Only `evolve` changes any of this.

A unit is the project manager (`pm`) or a group; each does one thing at a time. Its `stage` says what it is at; it is in
`due` while it may begin the next thing.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any

import msgspec

from agent_orchestrator.core.doing import Doing
from agent_orchestrator.core.events import StopReason
from agent_orchestrator.core.ids import EffectId, UnitId, effect_id
from agent_orchestrator.core.inputs import Commit
from agent_orchestrator.core.lifecycle import Lifecycle
from agent_orchestrator.core.queue import MergeQueue
from agent_orchestrator.core.system import Context
from agent_orchestrator.core.unit import UnitRecord
from agent_orchestrator.systems.team.roles import Purpose
from agent_orchestrator.systems.team.spec import RequirementSpec, TeamSpec

PM = "pm"
BOXES = ("dev_to_qa", "qa_to_techlead", "techlead_to_dev")
DECISIONS_KEPT = 2_000
"""The most that is kept in memory, newest last; the journal has all."""


class Stage(StrEnum):
    """The stage that a unit is at."""

    PLAN = "plan"
    WATCH = "watch"
    """The project manager has nothing to do while groups work."""
    FINAL = "final"
    CHECKS = "checks"
    CONFIRM = "confirm"
    DONE = "done"

    PENDING = "pending"
    DEVELOP = "develop"
    SAVE = "save"
    QA = "qa"
    REVIEW = "review"
    CONSULT = "consult"
    MERGE = "merge"
    HELD = "held"
    """Its work collides with that of a group that is ahead: it waits until that one has landed."""
    COMPLETE = "complete"


class Turn(msgspec.Struct, kw_only=True):
    """One agent's turn, however many attempts and launches it takes."""

    purpose: Purpose
    number: int
    attempt: int = 1
    told: tuple[str, ...] = ()
    """The messages that stood in its prompt: told again when it has to be tried again."""
    asked: int = 0
    """The number of requirements when it began."""


class TeamUnit(UnitRecord, kw_only=True):
    """The project manager or a group."""

    unit: str
    stage: Stage
    turn: Turn | None = None
    asking: str = ""
    """The subject: clarification, agent, qa_rounds, review_rounds, blocked, partial, saving, held, merge, scope."""
    question: str = ""
    """The question that a person is asked, or is to be asked as soon as may be; '' when there is none."""
    spawned_us: int = 0
    points: dict[str, tuple[str, ...]] = msgspec.field(default_factory=dict)
    """Points that earlier rounds left to be done, by who found them: qa, review, merge, guidance, person, saving, sent_back."""
    error: str = ""


class Requirement(msgspec.Struct, kw_only=True):
    """One requirement and what shows that it is met."""

    text: str
    check: str | None = None
    planned: bool = False
    """True once it stood in a prompt for planning."""
    met_by: str = ""
    """check, tech_lead, or approval (of the scope without it)."""
    evidence: str = ""


class Blocker(msgspec.Struct, kw_only=True, omit_defaults=True):
    """One entry of `blockers`."""

    description: str
    resolved: bool = False
    resolution: str | None = None


class Feedback(msgspec.Struct, frozen=True, kw_only=True):
    """One entry of `tech_lead_feedback`."""

    iteration: int
    decision: str
    feedback: str
    timestamp: str | None = None


class Group(TeamUnit, kw_only=True):
    """A group of tasks on a branch of its own."""

    name: str
    tasks: tuple[str, ...] = ()
    files_affected: tuple[str, ...] = ()
    branch_name: str
    can_parallel: bool = True
    depends_on: tuple[str, ...] = ()
    complexity: str | None = None
    estimated_effort_minutes: float | None = None
    order: int = 0
    level: int = 1
    missing: set[str] = msgspec.field(default_factory=set)
    """The groups that it depends on and that are not complete."""
    serialised: bool = False
    held_for: set[str] = msgspec.field(default_factory=set)
    because: str = ""
    """The reason why the developer is next: qa, review, conflict, red, collision, unblocked, partial, saving, person."""
    then: Stage = Stage.QA
    """The next stage when its tree is saved."""
    developer: int = 0
    qa: int = 0
    tech_lead: int = 0
    qa_failures: int = 0
    review_failures: int = 0
    """Since a person last allowed more."""
    blocks: int = 0
    partials: int = 0
    unsaved: int = 0
    """The number of times in a row that its work could not be saved."""
    failed_rounds: int = 0
    merges_failed: int = 0
    started_us: int | None = None
    ended_us: int | None = None
    updated_us: int = 0
    files_modified: tuple[str, ...] = ()
    commits: tuple[Commit, ...] = ()
    test_results: dict[str, dict[str, int]] = msgspec.field(default_factory=dict)
    reviews: list[Feedback] = msgspec.field(default_factory=list)
    blockers: list[Blocker] = msgspec.field(default_factory=list)
    quality: dict[str, float] = msgspec.field(default_factory=dict)
    summary: str = ""
    """The developer's last words about the work."""
    notes: str = ""
    diff: str = ""
    merged: str | None = None


class TeamTask(msgspec.Struct, kw_only=True):
    """One task of the plan."""

    id: str
    description: str = ""
    group_id: str = ""
    by_hand: str | None = None
    """The status a person gave it."""


class Decision(msgspec.Struct, frozen=True, kw_only=True):
    """One entry of `decisions_log`."""

    iteration: int
    decision: str
    reasoning: str
    timestamp: str | None = None


class TeamPlan(msgspec.Struct, kw_only=True):
    """The project manager's decision."""

    mode: str = ""
    mode_reasoning: str = ""

    @property
    def made(self) -> bool:
        """True once there is a plan."""
        return bool(self.mode)


class FileCount(msgspec.Struct, kw_only=True):
    """A document's own `iteration` and `last_update`."""

    iteration: int = 0
    updated_us: int = 0
    seen: int = 0
    """The number of the event that changed it last: one event is one change."""


class TeamState:
    """One team at work."""

    def __init__(self, spec: TeamSpec, context: Context) -> None:
        self.spec, self.context = spec, context
        self.lifecycle, self.doing = Lifecycle(), Doing()
        self.pm = TeamUnit(unit=PM, stage=Stage.PLAN)
        self.plan = TeamPlan()
        self.groups: dict[str, Group] = {}
        self.tasks: dict[str, TeamTask] = {}
        self.dependents: dict[str, list[str]] = {}
        self.requirements = [Requirement(text=one.text, check=one.check) for one in spec.wanted]
        self.added: list[RequirementSpec] = []
        self.clarifications: list[tuple[str, str]] = []
        self.questions: tuple[str, ...] = ()
        self.open: tuple[int, ...] = ()
        """The requirements that were not met when the project manager was sent back."""
        self.sent_back = 0
        """How often the project manager's DONE was not believed, since a person last allowed more."""
        self.finals = 0
        self.plans = 0
        self.due: dict[str, None] = {PM: None}
        self.ready: list[str] = []
        """Groups that may start, in the order of the plan."""
        self.at_work: dict[str, None] = {}
        """Groups in progress."""
        self.developing: dict[str, None] = {}
        """Groups that occupy a developer."""
        self.completed: list[str] = []
        self.holds: dict[str, list[str]] = {}
        """By the group that is ahead: who waits until it has landed."""
        self.queue = MergeQueue()
        self._begin_story(context)

    def _begin_story(self, context: Context) -> None:
        """Begin with nothing said, decided or counted."""
        self.messages: dict[str, list[dict[str, Any]]] = {box: [] for box in BOXES}
        self.unread: dict[tuple[str, str], list[dict[str, Any]]] = {}
        """By group and role: messages that nobody was told yet; the same objects as in `messages`."""
        self.known: dict[str, dict[str, Any]] = {}
        """Messages by id."""
        self.last_message = ""
        self.same_second = 0
        self.decisions: list[Decision] = []
        self.spawns = 0
        self.events = 0
        self.pm_file, self.team_file = FileCount(), FileCount(updated_us=context.created_us)
        self.conclusion: tuple[StopReason, str] | None = None
        self.started_us = self.updated_us = context.created_us
        self.ended_us: int | None = None
        self.pid: int | None = None

    def unit(self, name: str) -> TeamUnit:
        """Give the project manager or a group."""
        return self.pm if name == PM else self.groups[name]

    def name_effect(self, unit: TeamUnit, kind: str, number: int | None = None) -> EffectId:
        """Give the id of the unit's next effect: of the turn that goes on, or of the one with this number."""
        turn = unit.turn
        attempt = turn.attempt if turn is not None and number is None else 1
        if number is None:
            number = turn.number if turn is not None else unit.developer if isinstance(unit, Group) else self.finals
        return effect_id(self.context.run, UnitId(unit.unit), number, attempt, unit.launches + 1, kind, self.context.generation)

    def next_number(self, unit: TeamUnit, purpose: Purpose) -> int:
        """Give the number of the unit's next turn for a purpose."""
        if isinstance(unit, Group):
            counts = {Purpose.DEVELOP: unit.developer, Purpose.QA: unit.qa}
            return counts.get(purpose, unit.tech_lead) + 1
        return self.finals if purpose is Purpose.CONFIRM else self.plans + self.finals + 1

    def is_in_progress(self, group: Group) -> bool:
        """Tell whether it was begun and is not complete."""
        return group.stage not in (Stage.PENDING, Stage.COMPLETE)

    @property
    def all_complete(self) -> bool:
        """True when there is a plan and every group of it has landed."""
        return self.plan.made and len(self.completed) == len(self.groups)

    @property
    def requirements_text(self) -> str:
        """All that was asked for, verbatim."""
        return "\n\n".join([self.spec.requirements, *(one.text for one in self.added)])
