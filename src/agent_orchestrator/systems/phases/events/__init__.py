"""The facts of a phased run's journal, beside the common ones. Small, past tense, never changed once released.

Events that begin an effect carry its id and the unit (`step`); the effect itself is built by `evolve`.
"""

from __future__ import annotations

from agent_orchestrator.core.events import CommonEvent
from agent_orchestrator.systems.phases.events.launches import (
    AgentFinished,
    AgentGaveUp,
    AgentStarted,
    BackoffEnded,
    BackoffStarted,
    CheckAbandoned,
    CheckFinished,
    CheckStarted,
    HumanAsked,
    HumanJudged,
    LaunchInterrupted,
    LearningsRecorded,
    MergeFinished,
    MergeStarted,
    SavingStarted,
    TreeSaved,
)
from agent_orchestrator.systems.phases.events.runs import (
    AgentsDropped,
    Archived,
    BoundsChanged,
    Concluded,
    EditRefused,
    Finding,
    FindingSettled,
    FindingsListed,
    Imported,
    ListsEdited,
    MilestoneRecorded,
    PhaseCompleted,
    PlanApproved,
    PullRequestRecorded,
    QuestionsRaised,
    ReviewPassed,
    ReviewStarted,
    Rewound,
    RunPlanned,
)
from agent_orchestrator.systems.phases.events.tasks import (
    CheckRequested,
    Conflict,
    CriteriaReported,
    Intervened,
    IterationFinished,
    PlanChange,
    PlanChanged,
    SupervisorChecked,
    TaskBlocked,
    TaskCompleted,
    TaskFailed,
    TaskRetried,
    TasksSkipped,
    TaskStarted,
)

__all__ = [
    "AgentFinished",
    "AgentGaveUp",
    "AgentStarted",
    "AgentsDropped",
    "Archived",
    "BackoffEnded",
    "BackoffStarted",
    "BoundsChanged",
    "CheckAbandoned",
    "CheckFinished",
    "CheckRequested",
    "CheckStarted",
    "Concluded",
    "Conflict",
    "CriteriaReported",
    "EditRefused",
    "Finding",
    "FindingSettled",
    "FindingsListed",
    "HumanAsked",
    "HumanJudged",
    "Imported",
    "Intervened",
    "IterationFinished",
    "LaunchInterrupted",
    "LearningsRecorded",
    "ListsEdited",
    "MergeFinished",
    "MergeStarted",
    "MilestoneRecorded",
    "PhaseCompleted",
    "PhasesEvent",
    "PlanApproved",
    "PlanChange",
    "PlanChanged",
    "PullRequestRecorded",
    "QuestionsRaised",
    "ReviewPassed",
    "ReviewStarted",
    "Rewound",
    "RunPlanned",
    "SavingStarted",
    "SupervisorChecked",
    "TaskBlocked",
    "TaskCompleted",
    "TaskFailed",
    "TaskRetried",
    "TaskStarted",
    "TasksSkipped",
    "TreeSaved",
]

PhasesEvent = (
    CommonEvent
    | RunPlanned
    | SavingStarted
    | TreeSaved
    | AgentStarted
    | AgentFinished
    | LearningsRecorded
    | LaunchInterrupted
    | BackoffStarted
    | BackoffEnded
    | HumanAsked
    | HumanJudged
    | QuestionsRaised
    | PlanApproved
    | TaskStarted
    | TaskBlocked
    | MergeStarted
    | MergeFinished
    | CheckStarted
    | CheckFinished
    | CriteriaReported
    | IterationFinished
    | SupervisorChecked
    | Intervened
    | PlanChanged
    | TaskFailed
    | TaskRetried
    | TasksSkipped
    | TaskCompleted
    | PhaseCompleted
    | MilestoneRecorded
    | ReviewStarted
    | FindingsListed
    | FindingSettled
    | ReviewPassed
    | PullRequestRecorded
    | CheckRequested
    | AgentGaveUp
    | CheckAbandoned
    | BoundsChanged
    | ListsEdited
    | AgentsDropped
    | Rewound
    | Archived
    | EditRefused
    | Imported
    | Concluded
)
