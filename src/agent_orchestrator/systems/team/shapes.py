"""The files in `coordination/`, field by field and in the order of the seed; written from these, and edits are read with them.

A value that is not known yet is left out; on reading, null stands for that, as in the seed's own examples.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

Status = Literal[
    "pending",
    "dev_working",
    "dev_blocked",
    "waiting_qa",
    "qa_testing",
    "qa_failed",
    "waiting_review",
    "tech_review",
    "changes_requested",
    "complete",
]
Progress = Literal["pending", "assigned", "in_progress", "complete"]
TaskStatus = Literal["pending", "in_progress", "complete"]


class TaskEntry(msgspec.Struct, kw_only=True, omit_defaults=True):
    """One of `all_tasks`."""

    id: str | None = None
    description: str | None = None
    group_id: str | None = None
    status: TaskStatus | None = None


class GroupEntry(msgspec.Struct, kw_only=True, omit_defaults=True):
    """One of `task_groups`."""

    id: str | None = None
    name: str | None = None
    tasks: list[str] | None = None
    files_affected: list[str] | None = None
    branch_name: str | None = None
    status: Progress | None = None
    can_parallel: bool | None = None
    depends_on: list[str] | None = None
    complexity: Literal["low", "medium", "high"] | None = None
    estimated_effort_minutes: float | None = None


class PhaseEntry(msgspec.Struct, kw_only=True, omit_defaults=True):
    """One of `execution_phases`."""

    phase_number: int | None = None
    group_ids: list[str] | None = None
    parallel_count: int | None = None
    status: TaskStatus | None = None


class PmState(msgspec.Struct, kw_only=True, omit_defaults=True):
    """`pm_state.json`."""

    session_id: str
    mode: Literal["simple", "parallel"]
    mode_reasoning: str | None = None
    original_requirements: str
    all_tasks: list[TaskEntry] | None = None
    task_groups: list[GroupEntry]
    execution_phases: list[PhaseEntry] | None = None
    completed_groups: list[str] | None = None
    in_progress_groups: list[str] | None = None
    pending_groups: list[str] | None = None
    iteration: int
    last_update: str
    completion_percentage: float | None = None
    estimated_time_remaining_minutes: float | None = None


class Rounds(msgspec.Struct, kw_only=True, omit_defaults=True):
    """`iterations` of a group."""

    developer: int | None = None
    qa: int | None = None
    tech_lead: int | None = None


class CountEntry(msgspec.Struct, kw_only=True, omit_defaults=True):
    """The counts of tests of one kind."""

    total: int | None = None
    passed: int | None = None
    failed: int | None = None


class ResultsEntry(msgspec.Struct, kw_only=True, omit_defaults=True):
    """`test_results` of a group."""

    unit_tests: CountEntry | None = None
    integration_tests: CountEntry | None = None
    contract_tests: CountEntry | None = None
    e2e_tests: CountEntry | None = None


class FeedbackEntry(msgspec.Struct, kw_only=True, omit_defaults=True):
    """One of `tech_lead_feedback`."""

    iteration: int | None = None
    decision: Literal["approved", "changes_requested", "unblocked"] | None = None
    feedback: str | None = None
    timestamp: str | None = None


class BlockerEntry(msgspec.Struct, kw_only=True, omit_defaults=True):
    """One of `blockers`."""

    description: str | None = None
    resolved: bool | None = None
    resolution: str | None = None


class QualityMetrics(msgspec.Struct, kw_only=True, omit_defaults=True):
    """`quality_metrics` of a group."""

    code_quality_score: float | None = None
    security_issues_count: int | None = None
    first_pass_approval: bool | None = None


class GroupStatus(msgspec.Struct, kw_only=True, omit_defaults=True):
    """One group of `group_status.json`."""

    group_id: str | None = None
    group_name: str | None = None
    status: Status | None = None
    current_agent: Literal["developer", "qa_expert", "tech_lead", "none"] | None = None
    iterations: Rounds | None = None
    start_time: str | None = None
    end_time: str | None = None
    duration_minutes: float | None = None
    branch_name: str | None = None
    files_modified: list[str] | None = None
    commits: list[str] | None = None
    test_results: ResultsEntry | None = None
    tech_lead_feedback: list[FeedbackEntry] | None = None
    blockers: list[BlockerEntry] | None = None
    quality_metrics: QualityMetrics | None = None
    last_update: str | None = None


class ActiveAgent(msgspec.Struct, kw_only=True, omit_defaults=True):
    """One of `active_agents`; the project manager works for no group."""

    agent_type: str | None = None
    group_id: str | None = None
    spawned_at: str | None = None


class DecisionEntry(msgspec.Struct, kw_only=True, omit_defaults=True):
    """One of `decisions_log`."""

    iteration: int | None = None
    decision: str | None = None
    reasoning: str | None = None
    timestamp: str | None = None


class OrchestratorState(msgspec.Struct, kw_only=True, omit_defaults=True):
    """`orchestrator_state.json`."""

    session_id: str
    current_phase: Literal[
        "initialization", "pm_planning", "developer_working", "qa_testing", "tech_review", "pm_final_check", "completed"
    ]
    active_agents: list[ActiveAgent] | None = None
    iteration: int
    total_spawns: int | None = None
    decisions_log: list[DecisionEntry] | None = None
    status: Literal["running", "completed", "error"]
    start_time: str
    end_time: str | None = None
    last_update: str | None = None


class Messages(msgspec.Struct, kw_only=True):
    """One file of `messages/`; what stands in it is only ever derived."""

    messages: list[dict[str, Any]] | None = None


class ImportedGroup(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The progress of a group when its files were taken over: the fields of group_status.json."""

    status: str
    developer: int = 0
    qa: int = 0
    tech_lead: int = 0
    started_us: int | None = None
    ended_us: int | None = None
    filed: bool = False
    """The times are the file's alone; journals of older versions have the time of the import where it had none."""
    files_modified: tuple[str, ...] = ()
    commits: tuple[str, ...] = ()
    test_results: dict[str, dict[str, int]] = msgspec.field(default_factory=dict)
    feedback: tuple[dict[str, Any], ...] = ()
    blockers: tuple[dict[str, Any], ...] = ()
    quality: dict[str, float] = msgspec.field(default_factory=dict)
