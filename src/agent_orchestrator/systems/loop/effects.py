"""Builds a loop's effects from the spec and the state. Plain data; paths are relative to the loop's home or its tree."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from agent_orchestrator.core.effects import AgentChoice, AskHuman, Checkpoint, RunAgent, RunCheck
from agent_orchestrator.core.forms import Forms
from agent_orchestrator.core.ids import EffectId
from agent_orchestrator.core.limits import CHECK_TIMEOUT_S, TIMEOUT_LEFT_MIN_S
from agent_orchestrator.core.report import FAILED, ReportRule, common_words
from agent_orchestrator.systems.loop.prompts import compose, compose_confirmation
from agent_orchestrator.systems.loop.spec import ExecutionMode
from agent_orchestrator.systems.loop.state import UNIT, LoopState

ROLE = "loop"
CONFIRMER = "qa_expert"
WORDS = {"OK": "OK", FAILED: FAILED}
JUDGES = {"PASS": "PASS", "FAIL": "FAIL"}
ITERATION = "iteration"


class IterationReport(msgspec.Struct, frozen=True):
    """The fields that an iteration's report may add: both are noted, neither ends anything."""

    quality_score: Annotated[
        Annotated[float, Meta(ge=0, le=100)] | None,
        Meta(description="How good the work is now, from 0 to 100, if you can tell.", examples=[80]),
    ] = None
    done: Annotated[bool, Meta(description="Whether you believe that nothing is left to do; a check decides.")] = False


FORMS: Forms = {ITERATION: IterationReport}


def loop_directory(run: str) -> str:
    """The loop's directory of print-outs, relative to its home."""
    return f".aiwg/ralph/loops/{run}"


def ref_of(run: str, iteration: int) -> str:
    """Give the ref that keeps an iteration's tree."""
    return f"refs/orc/{run}/{iteration}"


def run_agent(state: LoopState, effect: EffectId, at_us: int) -> RunAgent:
    """The agent of the iteration at work."""
    spec, current, run = state.spec, state.current, state.context.run
    assert spec.agent is not None, "an iteration has an agent"
    assert current is not None, "an agent works in an iteration"
    env = spec.env if spec.handed_seed is None else spec.env | {"LOOP_SEED": str(spec.handed_seed)}
    return RunAgent(
        id=effect,
        unit=UNIT,
        agent=_with_options(state, spec.agent),
        role=ROLE,
        report=ReportRule(
            words=WORDS,
            aliases=common_words(WORDS, completed="OK"),
            any_status=True,
            ids={"run_id": run, "step_id": UNIT},
            form=ITERATION,
        ),
        iteration=current.number,
        attempt=1,
        prompt_text=compose(state, current.told),
        env=env,
        artifacts_dir=f"{loop_directory(run)}/artifacts",
        session=state.record.session,
        allowed_commands=tuple(dict.fromkeys(one for one in (spec.command, spec.test_command) if one)),
        timeout_s=_timeout_s(state, at_us),
        idle_timeout_s=spec.idle_timeout_s,
    )


def confirm(state: LoopState, effect: EffectId, at_us: int) -> RunAgent:
    """The other agent that confirms a prose criterion."""
    spec, run = state.spec, state.context.run
    assert spec.confirm_with is not None, "somebody confirms"
    return RunAgent(
        id=effect,
        unit=UNIT,
        agent=_with_options(state, spec.confirm_with),
        role=CONFIRMER,
        report=ReportRule(
            words=JUDGES,
            aliases=common_words(JUDGES, completed=None),
            required=True,
            ids={"run_id": run, "step_id": UNIT, "agent": CONFIRMER},
        ),
        iteration=state.number,
        attempt=1,
        prompt_text=compose_confirmation(state),
        env=spec.env,
        artifacts_dir=f"{loop_directory(run)}/artifacts",
        allowed_commands=(spec.test_command,) if spec.test_command else (),
        timeout_s=_timeout_s(state, at_us),
        idle_timeout_s=spec.idle_timeout_s,
    )


def run_check(state: LoopState, effect: EffectId, purpose: str, at_us: int) -> RunCheck:
    """The criterion, or the tests; the loop's own time-out is theirs too, until it is completing."""
    command = state.spec.test_command if purpose == "tests" else state.spec.command
    left_s = None if state.completing else state.time_left_s(at_us)
    limit_s = CHECK_TIMEOUT_S if left_s is None else min(CHECK_TIMEOUT_S, max(TIMEOUT_LEFT_MIN_S, left_s))
    return RunCheck(id=effect, unit=UNIT, command=command or "", timeout_s=limit_s)


def ask_human(state: LoopState, effect: EffectId, question: str, after: EffectId) -> AskHuman:
    """A question to a person."""
    return AskHuman(id=effect, unit=UNIT, question=question, after=after or effect)


def save_tree(state: LoopState, effect: EffectId, iteration: int, at_us: int) -> Checkpoint:
    """The tree as it was found, or as an iteration left it."""
    run, spec = state.context.run, state.spec
    trailers = f"Loop-Id: {run}\nLoop-Iteration: {iteration}\nOrc-Effect: {effect}\n"
    summary = state.current.summary.splitlines()[0][:60] if state.current is not None and state.current.summary else ""
    title = f"{run}: iteration {iteration}" if iteration else f"{run}: as it was found"
    wanted = spec.commit and iteration > 0
    return Checkpoint(
        id=effect,
        unit=UNIT,
        ref=ref_of(run, iteration),
        message=f"{title}\n\n{trailers}",
        at_us=at_us,
        since=state.last.commit if state.last is not None else None,
        start=state.start.commit if state.start is not None else None,
        branch_message=f"{summary or spec.task.splitlines()[0][:60]}\n\n{trailers}" if wanted else None,
    )


def _with_options(state: LoopState, choice: AgentChoice) -> AgentChoice:
    if state.spec.execution_mode is not ExecutionMode.STRICT:
        return choice
    return msgspec.structs.replace(choice, options=choice.options | {"temperature": 0})


def _timeout_s(state: LoopState, at_us: int) -> float | None:
    limits = (state.time_left_s(at_us), state.record.time_left_s(state.spec.iteration_timeout_s))
    known = [limit for limit in limits if limit is not None]
    return max(TIMEOUT_LEFT_MIN_S, min(known)) if known else None
