"""`shell`: the prompt is a script, run by `sh` in the working tree; a step that needs no model."""

from __future__ import annotations

from agent_orchestrator.agents.adapter import AgentTask, Ending, Invocation, Verdict
from agent_orchestrator.agents.environment import build_environment
from agent_orchestrator.agents.verdict import judge
from agent_orchestrator.core.effects import AgentChoice


class ShellAgent:
    """An adapter for scripts."""

    name = "shell"
    appends_feedback = False
    abilities = frozenset({"tokens", "cost", "free"})
    """It asks no model: what it costs is known to be nothing."""

    def preflight(self, choice: AgentChoice) -> None:
        """Check nothing: there is a shell wherever the engine itself can run."""

    def ask_for_report(self, task: AgentTask) -> str:
        """Return nothing: a script is not asked."""
        return ""

    def plan(self, task: AgentTask) -> Invocation:
        """Return the script by path, so that its own input stays empty."""
        return Invocation(argv=("/bin/sh", str(task.prompt)), env=build_environment(task), stdin=None)

    def judge(self, task: AgentTask, ending: Ending) -> Verdict:
        """Judge by exit code and, if the script wrote one, its report."""
        return judge(task, ending)


AGENT = ShellAgent()
