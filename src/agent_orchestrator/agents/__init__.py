"""Agent adapters: a file each, found by name.

A module of this folder that defines `AGENT` is an adapter; it is imported when it is asked for and not before.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module

from agent_orchestrator.agents.adapter import Agent, Ending, InProcessAgent, Plan, Task, Verdict
from agent_orchestrator.core.effects import AgentChoice
from agent_orchestrator.errors import UsageError

ADAPTERS = ("claude", "codex", "command", "gemini", "opencode", "scripted", "shell", "wrapper")


@cache
def find_agent(name: str) -> Agent | InProcessAgent:
    """The adapter of that name, or a UsageError that lists those there are."""
    if name not in ADAPTERS:
        raise UsageError(detail=f"There is no agent {name!r}; there are: {', '.join(ADAPTERS)}.")
    agent: Agent | InProcessAgent = import_module(f"agent_orchestrator.agents.{name}").AGENT
    return agent


def find_performer(name: str) -> Agent | InProcessAgent:
    """The same for runs that exist: an adapter that is not there fails what it is asked for, and the run can go on or end."""
    return find_agent(name) if name in ADAPTERS else _Absent(name)


class _Absent:
    """Stands in for an adapter that a stored run names, from elsewhere or of another version, and that is not here."""

    appends_feedback = False

    def __init__(self, name: str) -> None:
        self.name = name

    def preflight(self, choice: AgentChoice) -> None:
        find_agent(self.name)

    def ask_for_report(self, task: Task) -> str:
        return ""

    def plan(self, task: Task) -> Plan:
        find_agent(self.name)
        raise AssertionError(f"{self.name} is there")

    def judge(self, task: Task, ending: Ending) -> Verdict:
        find_agent(self.name)
        raise AssertionError(f"{self.name} is there")
