"""A team's events in words."""

from __future__ import annotations

from typing import Any

from agent_orchestrator.core.events import BackoffEnded, Concluded, HumanAsked, HumanJudged, MergeStarted, QuestionsRaised
from agent_orchestrator.core.units import say_count
from agent_orchestrator.errors import InvalidSpec, Problem
from agent_orchestrator.surfaces.cli.phrases import because, clock_time, say_end
from agent_orchestrator.surfaces.cli.words import Phrase, Phrases, Words
from agent_orchestrator.systems.team import events as team
from agent_orchestrator.systems.team.roles import ROLE_OF
from agent_orchestrator.systems.team.state import TeamState


def _agent_started(event: team.AgentStarted) -> Phrase:
    again = " (again)" if event.again else ""
    return Phrase(event.step, f"{ROLE_OF[event.purpose].value} started{again}")


def _agent_finished(event: team.AgentFinished) -> Phrase:
    return Phrase(event.step, say_end("agent", event, event.summary), quiet=event.failure is None)


def _human_judged(event: HumanJudged) -> Phrase:
    word = "answered" if event.about == "clarification" else "approved" if event.approved else "rejected"
    return Phrase(event.step, f"{word} by a person{because(event.comments)}")


def _plan_made(event: team.PlanMade) -> Phrase:
    names = ", ".join(group.id for group in event.groups)
    return Phrase("", f"planned {say_count(len(event.groups), 'group')} ({names}), {event.mode}")


def _work_saved(event: team.WorkSaved) -> Phrase:
    if event.unavailable:
        return Phrase(event.group, f"the work could not be saved: {event.unavailable}")
    files, commits = say_count(len(event.files_modified), "file"), say_count(len(event.commits), "commit")
    return Phrase(event.group, f"saved on its branch: {files}, {commits}", quiet=True)


def _merge_finished(event: team.MergeFinished) -> Phrase:
    return Phrase(event.group, f"merge: {event.verdict.value}{because(event.detail)}")


def _check_finished(event: team.CheckFinished) -> Phrase:
    name, again = f"the check of requirement {event.requirement + 1}", ", it is run once more" if event.again else ""
    if event.moved:
        return Phrase(event.step, f"{name} is void, the working tree changed while it ran{again}")
    if event.failure is not None:
        return Phrase(event.step, f"{name} could not be run to its end: {event.failure.message}{again}")
    return Phrase(event.step, f"{name} passed" if event.exit_code == 0 else f"{name} failed with {event.exit_code}")


_PHRASES: Phrases = {
    team.TeamBegan: lambda event: Phrase("", f"a team, {say_count(event.requirements, 'requirement')}"),
    team.Imported: lambda event: Phrase("", f"taken over with {say_count(len(event.groups), 'group')}"),
    team.Decided: lambda event: Phrase("", f"{event.decision}{because(event.reasoning)}"),
    team.AgentStarted: _agent_started,
    team.AgentFinished: _agent_finished,
    team.LaunchInterrupted: lambda event: Phrase(event.step, "interrupted"),
    team.RetryScheduled: lambda event: Phrase(event.step, f"tries again at {clock_time(event.until_us)}: {event.error}"),
    BackoffEnded: lambda event: Phrase(event.step, "may try again", quiet=True),
    team.PlanMade: _plan_made,
    QuestionsRaised: lambda event: Phrase("pm", f"asks: {'; '.join(event.questions)}"),
    HumanAsked: lambda event: Phrase(event.step, f"waiting for an answer: {event.question}"),
    HumanJudged: _human_judged,
    team.GroupSerialised: lambda event: Phrase(event.group, f"waits for {event.behind}", quiet=True),
    team.WorkReported: lambda event: Phrase(event.group, f"{event.status}{because(event.summary or event.blocker)}"),
    team.SavingStarted: lambda event: Phrase(event.step, "is being saved", quiet=True),
    team.WorkSaved: _work_saved,
    team.CollisionForeseen: lambda event: Phrase(event.group, f"would collide with {', '.join(event.behind)}", quiet=True),
    team.MessageSent: lambda event: Phrase(event.group, f"message {event.box}: {event.message.get('subject', '')}", quiet=True),
    team.QaReported: lambda event: Phrase(
        event.group, "QA passed" if event.passed else f"QA failed: {'; '.join(event.failures[:3])}"
    ),
    team.Reviewed: lambda event: Phrase(event.group, f"{event.decision.replace('_', ' ')}{because(event.feedback)}"),
    team.LimitReached: lambda event: Phrase(event.step, f"cannot continue: {event.description}"),
    MergeStarted: lambda event: Phrase(event.step, "is being merged", quiet=True),
    team.MergeFinished: _merge_finished,
    team.GroupCompleted: lambda event: Phrase(event.group, "complete"),
    team.RequirementAdded: lambda event: Phrase("", f"one more requirement: {event.text}"),
    team.CompletionClaimed: lambda event: Phrase("pm", "says that everything is done; that is verified now"),
    team.SentBack: lambda event: Phrase("pm", f"sent back: {'; '.join(event.reasons[:3])}"),
    team.CheckStarted: lambda event: Phrase(event.step, f"the check of requirement {event.requirement + 1} started", quiet=True),
    team.CheckFinished: _check_finished,
    team.RequirementMet: lambda event: Phrase("pm", f"requirement {event.requirement + 1} is met, by {event.by}"),
    team.ScopeReduced: lambda event: Phrase("", f"a person approved of less{because(event.comments)}"),
    Concluded: lambda event: Phrase("", f"ended{because(event.detail)}"),
    team.OptionsChanged: lambda event: Phrase("", f"options changed: {', '.join(event.changes)}"),
    team.StatusesEdited: lambda event: Phrase("", f"edits adopted: {', '.join([*event.groups, *event.tasks])}"),
    team.EditRefused: lambda event: Phrase("", f"edits refused: {'; '.join(event.problems[:3])}"),
}


def closing_lines(state: TeamState) -> list[str]:
    """Say what was merged, and what shows that the requirements are met."""
    merged = [name for name in state.completed if state.groups[name].merged is not None]
    lines = [f"merged into {state.spec.into}: {', '.join(merged) or 'nothing'}"]
    if state.lifecycle.ended and state.plan.made:
        for number, one in enumerate(state.requirements, 1):
            how = {"check": "its check passed", "tech_lead": "confirmed by the tech lead", "approval": "left out with approval"}
            lines.append(f"requirement {number}: {how.get(one.met_by, 'open')}: {one.text.splitlines()[0][:80]}")
    asked = [unit for unit in (state.pm, *state.groups.values()) if unit.question and not state.lifecycle.ended]
    for unit in asked:
        lines.append(f"{unit.unit} asks: {' '.join(unit.question.split())[:300]}")
        no = f"orc reject {state.context.run} {unit.unit} --comments 'why'"
        way = "orc team answer 'TEXT'" if unit.asking == "clarification" else f"orc team approve {unit.unit}   or: {no}"
        lines.append(f"answer with: {way}")
    return lines


def check_state(file: str, document: Any) -> str | None:
    """Check a file of `coordination/`."""
    from agent_orchestrator.systems.team.decide.people import check_document, team_file

    if (name := team_file(file)) is None:
        return None
    if faults := check_document(name, document):
        raise InvalidSpec(file, [Problem(fault) for fault in faults])
    return f"{name} of a team"


WORDS = Words(phrases=_PHRASES, closing_lines=closing_lines, check_state=check_state)
