"""What the team commands share: which team is meant, and what is told at its end."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_orchestrator.core.units import say_count

if TYPE_CHECKING:
    from agent_orchestrator.api.orchestrator import Orchestrator
    from agent_orchestrator.store.port import StoredRun
    from agent_orchestrator.systems.team.state import TeamState


def pick_team(orchestrator: Orchestrator, given: str | None) -> StoredRun:
    """The team that is meant; left out, the one that is unfinished, else the newest."""
    from agent_orchestrator.api.teams import find_team

    return find_team(orchestrator, given)


def team_closing_lines(state: TeamState) -> list[str]:
    """What was merged, and what shows that the requirements are met."""
    merged = [name for name in state.completed if state.groups[name].merged is not None]
    lines = [f"merged into {state.spec.into}: {', '.join(merged) or 'nothing'}"]
    if state.lifecycle.ended and state.plan.made:
        for number, one in enumerate(state.requirements, 1):
            how = {"check": "its check passed", "tech_lead": "confirmed by the tech lead", "approval": "left out with approval"}
            lines.append(f"requirement {number}: {how.get(one.met_by, 'open')}: {one.text.splitlines()[0][:80]}")
    asked = [unit for unit in (state.pm, *state.groups.values()) if unit.question and not state.lifecycle.ended]
    lines += [f"{unit.unit} asks: {' '.join(unit.question.split())[:300]}" for unit in asked]
    if asked:
        told = "orc team answer 'text'" if any(unit.asking == "clarification" for unit in asked) else "orc team approve"
        lines.append(f"answer {say_count(len(asked), 'question')} with: {told}")
    return lines
