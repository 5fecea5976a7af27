"""Reads the settings of agents again for a run that is taken up, or for a successor of one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from agent_orchestrator.api.orchestrator import Orchestrator
from agent_orchestrator.config import load_agents
from agent_orchestrator.control.rereading import Reread, reread_agents
from agent_orchestrator.core.effects import AgentChoice

Permit = Callable[[AgentChoice], AgentChoice]
"""What a command line lets an agent do besides."""


def nothing_more(choice: AgentChoice) -> AgentChoice:
    """Nothing besides."""
    return choice


def reread(orchestrator: Orchestrator, spec: Any, permit: Permit = nothing_more) -> Reread:
    """What changed for the agents of a specification; raises a UsageError for a configuration with faults."""
    settings = orchestrator.settings
    return reread_agents(spec.assigned, load_agents(settings), settings.home, settings.is_secret, permit)
