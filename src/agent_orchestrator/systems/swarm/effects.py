"""Builds a bead's effects from the spec and the state. Plain data; paths are relative to the run's home or its tree."""

from __future__ import annotations

import shlex

from agent_orchestrator.core.effects import RunAgent, RunCheck
from agent_orchestrator.core.report import ReportRule
from agent_orchestrator.core.units import US
from agent_orchestrator.systems.swarm.compose import compose
from agent_orchestrator.systems.swarm.spec import terminal_of
from agent_orchestrator.systems.swarm.state import SwarmState

WORDS = {"DONE": "DONE", "FAILED": "FAILED"}
REPORT_FIELDS: dict[str, tuple[str, ...]] = {"reason": ("string",)}
TIMEOUT_LEFT_MIN_S = 1.0
"""An interrupted attempt gets at least this much more time."""
CLOSE_TIMEOUT_S = 60.0


def run_agent(state: SwarmState, bead: str, effect: str, beside: tuple[str, ...]) -> RunAgent:
    """The bead's agent, for the attempt that the state is at."""
    spec, held, run = state.specs[bead], state.beads[bead], state.context.run
    timeout_s = spec.timeout_s
    if held.spent_us:
        timeout_s = max(TIMEOUT_LEFT_MIN_S, timeout_s - held.spent_us / US)
    return RunAgent(
        id=effect,
        unit=bead,
        agent=spec.agent,
        tree=spec.tree,
        role=spec.agent.name,
        report=ReportRule(words=WORDS, ids={"run_id": run, "step_id": bead, "bead": bead}, fields=REPORT_FIELDS),
        iteration=0,
        attempt=held.attempt,
        prompt_text=compose(spec, held.attempt, held.limit, beside),
        env=state.spec.env | {"BEAD_ID": bead},
        feedback=held.feedback,
        artifacts_dir=f".agents/runs/{run}/artifacts",
        session=held.session,
        terminal=terminal_of(bead) if state.spec.tmux else None,
        timeout_s=timeout_s,
        idle_timeout_s=state.spec.idle_timeout_s,
    )


def run_verification(state: SwarmState, bead: str, effect: str) -> RunCheck:
    """The command whose exit code says whether the work is good."""
    spec = state.specs[bead]
    return RunCheck(id=effect, unit=bead, command=spec.verify or "", tree=spec.tree)


def close_bead(state: SwarmState, bead: str, effect: str) -> RunCheck:
    """Tells the tracker, in the workspace, that the bead is done."""
    result = state.beads[bead].result
    reason = shlex.quote(result.reason if result is not None else "done")
    command = f"bd close {shlex.quote(bead)} --reason {reason}"
    return RunCheck(id=effect, unit=bead, command=command, timeout_s=CLOSE_TIMEOUT_S)
