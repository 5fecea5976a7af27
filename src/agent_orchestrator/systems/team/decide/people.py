"""What a person's answer means, by what was asked."""

from __future__ import annotations

from agent_orchestrator.core.events import StopReason
from agent_orchestrator.core.text import clip
from agent_orchestrator.systems.team.events import Concluded, HumanJudged, ScopeReduced, SentBack, TeamEvent
from agent_orchestrator.systems.team.state import TeamState

LIMITS = ("qa_rounds", "review_rounds", "blocked", "partial", "saving")


def judged(state: TeamState, unit: str, approved: bool, comments: str) -> list[TeamEvent]:
    """Yes goes on, with the comments in the next prompt; no gives up, but for questions and for the scope."""
    asked = state.unit(unit)
    about, comments = asked.asking, clip(comments)
    answer = HumanJudged(step=unit, about=about, approved=approved, comments=comments)
    if about == "scope":
        if approved:
            return [answer, ScopeReduced(requirements=state.open, comments=comments or "approved by a person")]
        why = f"a person wants it done: {comments or 'the scope stays as it is'}"
        # In this order: the rounds are counted anew after a person's word.
        return [SentBack(reasons=(why,), open=state.open), answer]
    if approved or about == "clarification":
        return [answer]
    stop = StopReason.LIMIT_REACHED if about in LIMITS else StopReason.FAILED
    said = f": {comments}" if comments else ""
    return [answer, Concluded(stop=stop, detail=f"{asked.error or asked.question} (a person gave it up{said})")]
