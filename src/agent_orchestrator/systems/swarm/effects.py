"""Builds a bead's effects from the spec and the state. Plain data; paths are relative to the run's home or its tree."""

from __future__ import annotations

import shlex
from typing import Annotated

import msgspec
from msgspec import Meta

from agent_orchestrator.core.effects import Checkpoint, Merge, RunAgent, RunCheck
from agent_orchestrator.core.forms import Forms
from agent_orchestrator.core.ids import EffectId
from agent_orchestrator.core.report import FAILED, ReportRule, common_words
from agent_orchestrator.systems.swarm.prompts import compose
from agent_orchestrator.systems.swarm.spec import terminal_of
from agent_orchestrator.systems.swarm.state import SwarmState

WORDS = {"DONE": "DONE", FAILED: FAILED}
ALIASES = common_words(WORDS, completed="DONE")
BEAD = "bead"


class BeadReport(msgspec.Struct, frozen=True):
    """The field that a bead's report may add."""

    reason: Annotated[str, Meta(description="What you did, or why it could not be done.")] = ""


FORMS: Forms = {BEAD: BeadReport}
CLOSE_TIMEOUT_S = 60.0
TITLE_CHARS = 60


def run_agent(state: SwarmState, bead: str, effect: EffectId, beside: tuple[str, ...]) -> RunAgent:
    """The bead's agent, for the attempt that the state is at."""
    spec, held, run = state.specs[bead], state.beads[bead], state.context.run
    return RunAgent(
        id=effect,
        unit=bead,
        agent=spec.agent,
        tree=spec.tree,
        role=spec.agent.name,
        report=ReportRule(words=WORDS, aliases=ALIASES, ids={"run_id": run, "step_id": bead, "bead": bead}, form=BEAD),
        iteration=0,
        attempt=held.attempt,
        prompt_text=compose(spec, held.attempt, held.limit, beside),
        env=state.spec.env | {"BEAD_ID": bead},
        feedback=held.feedback,
        artifacts_dir=f".agents/runs/{run}/artifacts",
        session=held.session,
        allowed_commands=(spec.verify,) if spec.verify else (),
        terminal=terminal_of(bead) if state.spec.tmux else None,
        timeout_s=held.time_left_s(spec.timeout_s),
        idle_timeout_s=state.spec.idle_timeout_s,
        output_limit_bytes=state.spec.output_limit_bytes,
    )


def run_verification(state: SwarmState, bead: str, effect: EffectId) -> RunCheck:
    """The command whose exit code says whether the work is good."""
    spec = state.specs[bead]
    return RunCheck(id=effect, unit=bead, command=spec.verify or "", tree=spec.tree)


def close_bead(state: SwarmState, bead: str, effect: EffectId) -> RunCheck:
    """Tells the tracker, in the workspace, that the bead is done."""
    result = state.beads[bead].result
    reason = shlex.quote(result.reason if result is not None else "done")
    command = f"bd close {shlex.quote(bead)} --reason {reason}"
    if state.spec.bd_close_epics:  # An epic that stays open takes nothing back: the bead is closed.
        command += " && { bd epic close-eligible || echo 'no epic was closed' >&2; }"
    return RunCheck(id=effect, unit=bead, command=command, timeout_s=CLOSE_TIMEOUT_S)


def save_work(state: SwarmState, bead: str, effect: EffectId, at_us: int) -> Checkpoint:
    """Commits on the bead's branch what its agent left uncommitted."""
    spec = state.specs[bead]
    message = f"{title_of(state, bead)}\n\n{_trailers(state, bead)}"
    ref = f"refs/orc/{state.context.run}/{bead}"
    return Checkpoint(id=effect, unit=bead, ref=ref, message=message, tree=spec.tree, at_us=at_us, branch_message=message)


def merge_branch(state: SwarmState, bead: str, effect: EffectId, at_us: int) -> Merge:
    """Brings the bead's branch into the one that was asked for."""
    spec, job = state.specs[bead], state.beads[bead].merge
    assert job is not None, "what is merged was asked for"
    message = f"Merge {spec.branch}: {title_of(state, bead)}\n\n{_trailers(state, bead)}"
    return Merge(
        id=effect, unit=bead, branch=spec.branch, into=job.into, message=message, at_us=at_us, repo=spec.repo, check=job.check
    )


def title_of(state: SwarmState, bead: str) -> str:
    """Return what was done on a bead in a line: what its agent said, else its title."""
    said = state.beads[bead].summary.strip() or state.specs[bead].title
    return said.partition("\n")[0][:TITLE_CHARS]


def _trailers(state: SwarmState, bead: str) -> str:
    return f"Bead-Id: {bead}\nOrc-Run: {state.context.run}\n"
