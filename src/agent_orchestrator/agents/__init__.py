"""Agent adapters: a file each, found by name.

A module of this folder that defines `AGENT` is an adapter; it is imported when it is asked for and not before.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module

from agent_orchestrator.agents.adapter import Agent, AgentTask, Ending, InProcessAgent, Invocation, Verdict
from agent_orchestrator.core.effects import AgentChoice
from agent_orchestrator.errors import UsageError

ADAPTERS = ("claude", "codex", "command", "gemini", "opencode", "scripted", "shell", "wrapper")


@cache
def find_agent(name: str) -> Agent | InProcessAgent:
    """Return the adapter of that name; raise a UsageError that lists the adapters if there is none."""
    if name not in ADAPTERS:
        raise UsageError(detail=f"There is no agent {name!r}; there are: {', '.join(ADAPTERS)}.")
    agent: Agent | InProcessAgent = import_module(f"agent_orchestrator.agents.{name}").AGENT
    return agent


def find_performer(name: str) -> Agent | InProcessAgent:
    """Return the adapter that a stored run names; one that is missing here fails its launches, and the run can go on or end."""
    return find_agent(name) if name in ADAPTERS else _Absent(name)


class _Absent:
    """The stand-in for an adapter that a stored run names and that this version does not have."""

    appends_feedback = False

    def __init__(self, name: str) -> None:
        self.name = name

    def preflight(self, choice: AgentChoice) -> None:
        find_agent(self.name)

    def ask_for_report(self, task: AgentTask) -> str:
        return ""

    def plan(self, task: AgentTask) -> Invocation:
        find_agent(self.name)
        raise AssertionError(f"{self.name} is there")

    def judge(self, task: AgentTask, ending: Ending) -> Verdict:
        find_agent(self.name)
        raise AssertionError(f"{self.name} is there")
