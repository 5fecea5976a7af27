"""Agent adapters: a file each, found by name.

A module of this folder that defines `AGENT` is an adapter; it is imported when it is asked for and not before.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module

from agent_orchestrator.agents.adapter import Agent, InProcessAgent
from agent_orchestrator.errors import UsageError

ADAPTERS = ("claude", "codex", "command", "gemini", "opencode", "scripted", "shell", "wrapper")


@cache
def find_agent(name: str) -> Agent | InProcessAgent:
    """The adapter of that name, or a UsageError that lists those there are."""
    if name not in ADAPTERS:
        raise UsageError(detail=f"There is no agent {name!r}; there are: {', '.join(ADAPTERS)}.")
    agent: Agent | InProcessAgent = import_module(f"agent_orchestrator.agents.{name}").AGENT
    return agent
