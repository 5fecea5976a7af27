"""Decides what follows a report of the project manager: a plan, questions, more groups, or a claim that all is done.

The claim is not believed: each requirement needs its check or the tech lead's confirmation, and what is open sends the
project manager back.
"""

from __future__ import annotations

import re

from agent_orchestrator.core.events import QuestionsRaised
from agent_orchestrator.core.failure import Failure, invalid_report
from agent_orchestrator.core.inputs import AgentEnded
from agent_orchestrator.core.report import Report
from agent_orchestrator.core.text import clip
from agent_orchestrator.core.units import say_count
from agent_orchestrator.systems.team.events import CompletionClaimed, LimitReached, PlanMade, RequirementMet, SentBack, TeamEvent
from agent_orchestrator.systems.team.proposals import draw
from agent_orchestrator.systems.team.roles import Claim, ConfirmReport, FinalReport, PlanReport, Proposal, read
from agent_orchestrator.systems.team.spec import split_requirements
from agent_orchestrator.systems.team.state import PM, TeamState, TeamUnit

CONFIRMED = "tech_lead"


def route_plan(state: TeamState, unit: TeamUnit, report: Report, outcome: AgentEnded, now_us: int) -> list[TeamEvent] | Failure:
    """Route PLANNING_COMPLETE → the groups; NEEDS_CLARIFICATION → a person is asked."""
    proposal = read(report, PlanReport)
    if isinstance(proposal, Failure):
        return proposal
    if report.status == "NEEDS_CLARIFICATION":
        questions = tuple(clip(one) for one in proposal.questions if one.strip())
        return [QuestionsRaised(questions=questions)] if questions else invalid_report("NEEDS_CLARIFICATION needs `questions`")
    if not proposal.groups and not state.plan.made:
        return invalid_report("PLANNING_COMPLETE needs `groups`: a plan has at least one")
    return _plan(state, proposal)


def route_final(state: TeamState, unit: TeamUnit, report: Report, outcome: AgentEnded, now_us: int) -> list[TeamEvent] | Failure:
    """Route CONTINUE → further groups; DONE → verified, unless requirements are open by the report itself."""
    proposal = read(report, FinalReport)
    if isinstance(proposal, Failure):
        return proposal
    if report.status == "CONTINUE":
        return _plan(state, proposal) if proposal.groups else invalid_report("CONTINUE needs `groups`: what is to be done?")
    claims = proposal.requirements
    reasons, still_open = _open(state, claims)
    if reasons:
        return _back(state, reasons, still_open)
    return [CompletionClaimed(evidence=_evidence(state, claims or []))]


def _plan(state: TeamState, proposal: Proposal) -> list[TeamEvent] | Failure:
    known = {name: group.branch_name for name, group in state.groups.items()}
    drawn = draw(proposal, known, state.tasks, (*state.spec.taken_branches, state.spec.into))
    if isinstance(drawn, Failure):
        return drawn
    mode = proposal.mode or state.plan.mode or ("parallel" if len(drawn.groups) > 1 else "simple")
    return [PlanMade(mode=mode, mode_reasoning=clip(proposal.mode_reasoning), tasks=drawn.tasks, groups=drawn.groups)]


def _open(state: TeamState, claims: list[Claim] | None) -> tuple[list[str], list[int]]:
    """List what the report itself leaves open; one requirement in prose may be claimed in as many parts as one likes."""
    if claims is None:
        return [], []
    reasons, numbers = [], []
    single = len(state.requirements) == 1
    for number, requirement in enumerate(state.requirements):
        if requirement.met_by == "approval":
            continue
        mine = claims if single else [claim for claim in claims if _same(claim.text, requirement.text)]
        unmet = [claim for claim in mine if not claim.met]
        if not mine:
            reasons.append(f"nothing is said about the requirement: {requirement.text}")
        for claim in unmet:
            said = f" ({claim.evidence})" if claim.evidence else ""
            reasons.append(f"the requirement is not met by your own words: {claim.text}{said}")
        if not mine or unmet:
            numbers.append(number)
    return reasons, numbers


def _evidence(state: TeamState, claims: list[Claim]) -> dict[int, str]:
    single = len(state.requirements) == 1
    found = {}
    for number, requirement in enumerate(state.requirements):
        mine = [claim for claim in claims if single or _same(claim.text, requirement.text)]
        said = "; ".join(claim.evidence for claim in mine if claim.evidence)
        if said:
            found[number] = clip(said)
    return found


def _same(one: str, other: str) -> bool:
    return _plain(one) == _plain(other)


def _plain(text: str) -> str:
    """Strip a requirement of its mark in a list, its check and the punctuation, all of which may be copied, to compare it."""
    items = split_requirements(text)
    text = items[0].text if len(items) == 1 else text
    return re.sub(r"[\s.;:!]+", " ", text).strip().casefold()


def route_confirmation(
    state: TeamState, unit: TeamUnit, report: Report, outcome: AgentEnded, now_us: int
) -> list[TeamEvent] | Failure:
    """Route what the tech lead confirms, requirement by requirement, or says is missing."""
    found = read(report, ConfirmReport)
    if isinstance(found, Failure):
        return found
    assert unit.turn is not None
    asked = [number for number, one in enumerate(state.requirements[: unit.turn.asked]) if not one.met_by]
    single = len(asked) == 1
    refused: dict[int, str] = {}
    strays = []
    left_out = [one.text for one in state.requirements if one.met_by == "approval"]
    for claim in found.requirements:
        if claim.met or any(_same(claim.text, text) for text in left_out):
            continue
        mine = [number for number in asked if single or _same(claim.text, state.requirements[number].text)]
        said_why = f" ({claim.evidence})" if claim.evidence else ""
        for number in mine:
            refused.setdefault(number, f"the tech lead does not confirm: {state.requirements[number].text}{said_why}")
        if not mine:
            # A no counts, in whatever words it names what is not met.
            strays.append(f"the tech lead does not confirm: {claim.text}{said_why}")
    said = [clip(one) for one in (found.feedback or report.summary, *(issue.line() for issue in found.issues)) if one.strip()]
    if report.status == "CHANGES_REQUESTED":
        reasons = [*refused.values(), *strays, *said] or ["the tech lead requested changes without saying which"]
        return _back(state, reasons, list(refused) or asked)
    if refused or strays:
        return _back(state, [*refused.values(), *strays], list(refused) if not strays else asked)
    evidence = {
        number: next((c.evidence for c in found.requirements if _same(c.text, state.requirements[number].text)), "")
        for number in asked
    }
    return [RequirementMet(requirement=number, by=CONFIRMED, evidence=clip(evidence[number])) for number in asked]


def _back(state: TeamState, reasons: list[str], still_open: list[int]) -> list[TeamEvent]:
    return [SentBack(reasons=tuple(clip(one) for one in reasons), open=tuple(still_open)), *check_patience(state, still_open)]


def check_patience(state: TeamState, still_open: list[int]) -> list[TeamEvent]:
    """Let a person decide about what is left after so many rounds."""
    rounds = state.sent_back + 1
    if rounds < state.spec.max_review_rounds:
        return []
    left = "; ".join(state.requirements[number].text for number in still_open) or "none by name"
    what = f"the project manager said DONE {say_count(rounds, 'time')} with open requirements: {left}"
    question = f"{what[0].upper()}{what[1:]}. Approve to end without them, reject to have the project manager go on."
    return [LimitReached(step=PM, about="scope", description=what, question=question)]
