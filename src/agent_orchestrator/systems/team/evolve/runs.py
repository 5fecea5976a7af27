"""Facts about the team as a whole: the story, the requirements, what people change, the end."""

from __future__ import annotations

import msgspec

from agent_orchestrator import typed
from agent_orchestrator.core.events import Concluded, Ended, HoldEnded, QuestionsRaised, Resumed, StopReason, TakenUp, UnitHeld
from agent_orchestrator.core.lifecycle import Facts
from agent_orchestrator.core.text import stamp
from agent_orchestrator.systems.team import events as e
from agent_orchestrator.systems.team.evolve.marks import recount, rest, touch, touch_plan
from agent_orchestrator.systems.team.spec import RequirementSpec, TeamSpec
from agent_orchestrator.systems.team.state import DECISIONS_KEPT, Decision, Requirement, Stage, TeamState


def _decided(state: TeamState, event: e.Decided, at_us: int) -> None:
    touch(state, state.team_file, at_us)
    number = state.team_file.iteration
    made = Decision(iteration=number, decision=event.decision, reasoning=event.reasoning, timestamp=stamp(at_us))
    state.decisions.append(made)
    del state.decisions[:-DECISIONS_KEPT]


def _questions_raised(state: TeamState, event: QuestionsRaised, at_us: int) -> None:
    state.questions = event.questions
    state.pm.asking, state.pm.question = "clarification", "\n".join(event.questions)
    rest(state, state.pm)


def _requirement_added(state: TeamState, event: e.RequirementAdded, at_us: int) -> None:
    state.requirements.append(Requirement(text=event.text, check=event.check))
    state.added.append(RequirementSpec(text=event.text, check=event.check))
    pm = state.pm
    if pm.stage is not Stage.PLAN:
        # Whatever the project manager was checking is no longer all there is.
        pm.stage, pm.turn, pm.asking, pm.question = Stage.PLAN, None, "", ""
        rest(state, pm)
    touch_plan(state, at_us)


def _completion_claimed(state: TeamState, event: e.CompletionClaimed, at_us: int) -> None:
    for number, requirement in enumerate(state.requirements):
        if requirement.met_by != "approval":
            requirement.met_by, requirement.evidence = "", event.evidence.get(number, "")
    state.pm.stage, state.pm.reruns = Stage.CHECKS, 0
    rest(state, state.pm)


def _sent_back(state: TeamState, event: e.SentBack, at_us: int) -> None:
    pm = state.pm
    state.sent_back += 1
    state.open = event.open
    pm.points["sent_back"] = event.reasons
    pm.stage, pm.turn = Stage.FINAL, None
    rest(state, pm)


def _requirement_met(state: TeamState, event: e.RequirementMet, at_us: int) -> None:
    requirement = state.requirements[event.requirement]
    requirement.met_by = event.by
    requirement.evidence = event.evidence or requirement.evidence
    state.pm.stage = Stage.CHECKS
    rest(state, state.pm)


def _scope_reduced(state: TeamState, event: e.ScopeReduced, at_us: int) -> None:
    for number in event.requirements:
        state.requirements[number].met_by = "approval"
        state.requirements[number].evidence = event.comments
    state.pm.stage, state.sent_back = Stage.CHECKS, 0
    state.pm.points.pop("sent_back", None)
    rest(state, state.pm)


def _concluded(state: TeamState, event: Concluded, at_us: int) -> None:
    for effect in list(state.doing):
        state.doing.drop(effect.unit)
    state.conclusion = event.stop, event.detail


def _options_changed(state: TeamState, event: e.OptionsChanged, at_us: int) -> None:
    state.spec = typed.convert(msgspec.to_builtins(state.spec) | event.changes, TeamSpec)


def _taken_up(state: TeamState, event: TakenUp, at_us: int) -> None:
    state.pid = event.pid


def _held(state: TeamState, event: UnitHeld | HoldEnded, at_us: int) -> None:
    """Note that others are at work now; the hold itself is kept in `doing`, for all systems alike."""
    if state.doing.wants(event.hold.effect if isinstance(event, UnitHeld) else event.effect):
        touch(state, state.team_file, at_us)


def _resumed(state: TeamState, event: Resumed, at_us: int) -> None:
    if state.lifecycle.ended:
        state.conclusion, state.ended_us = None, None
        recount(state)
        touch(state, state.team_file, at_us)
    state.lifecycle.evolve(event)


def _ended(state: TeamState, event: Ended, at_us: int) -> None:
    for effect in list(state.doing):
        state.doing.drop(effect.unit)
    state.due.clear()
    state.developing.clear()
    if event.stop is StopReason.COMPLETED:
        state.pm.stage = Stage.DONE
    state.ended_us = at_us if state.ended_us is None else state.ended_us
    touch(state, state.team_file, at_us)
    state.lifecycle.evolve(event)


RUN_FACTS: Facts = {
    e.Decided: _decided,
    QuestionsRaised: _questions_raised,
    e.RequirementAdded: _requirement_added,
    e.CompletionClaimed: _completion_claimed,
    e.SentBack: _sent_back,
    e.RequirementMet: _requirement_met,
    e.ScopeReduced: _scope_reduced,
    Concluded: _concluded,
    e.OptionsChanged: _options_changed,
    TakenUp: _taken_up,
    UnitHeld: _held,
    HoldEnded: _held,
    Resumed: _resumed,
    Ended: _ended,
}
