"""What the team commands share: which team is meant, and what is told at its end."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agent_orchestrator.runs.orchestrator import Orchestrator
    from agent_orchestrator.store.port import StoredRun
    from agent_orchestrator.systems.team.state import TeamState


def pick_team(orchestrator: Orchestrator, given: str | None) -> StoredRun:
    """The team that is meant; left out, the one that is unfinished, else the newest."""
    from agent_orchestrator.runs.team.start import find_team

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
    for unit in asked:
        lines.append(f"{unit.unit} asks: {' '.join(unit.question.split())[:300]}")
        no = f"orc reject {state.context.run} {unit.unit} --comments 'why'"
        way = "orc team answer 'TEXT'" if unit.asking == "clarification" else f"orc team approve {unit.unit}   or: {no}"
        lines.append(f"answer with: {way}")
    return lines
