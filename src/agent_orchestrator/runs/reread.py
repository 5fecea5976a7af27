"""Reads the settings of agents again for a run that is taken up, or for a successor of one."""

from __future__ import annotations

from typing import Any

from agent_orchestrator.config import load_agents
from agent_orchestrator.runs.choices import Permissions
from agent_orchestrator.runs.orchestrator import Orchestrator
from agent_orchestrator.runs.settings import Reread, reread_agents

NOTHING_MORE = Permissions()


def reread(orchestrator: Orchestrator, spec: Any, permissions: Permissions = NOTHING_MORE) -> Reread:
    """What changed for the agents of a specification, and what they may do besides; raises a UsageError for a fault."""
    settings = orchestrator.settings
    permissions.check(spec.choices)
    return reread_agents(spec.assigned, load_agents(settings), settings.home, settings.is_secret, permissions.given_to)
