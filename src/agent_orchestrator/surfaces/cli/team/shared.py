"""What the team commands share: which team is meant, and what is told at its end."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agent_orchestrator.runs.orchestrator import Orchestrator
    from agent_orchestrator.store.port import StoredRun


def pick_team(orchestrator: Orchestrator, given: str | None) -> StoredRun:
    """The team that is meant; left out, the one that is unfinished, else the newest."""
    from agent_orchestrator.runs.team.start import find_team

    return find_team(orchestrator, given)
