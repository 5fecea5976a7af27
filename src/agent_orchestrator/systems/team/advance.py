"""Says what follows by itself: who begins next, whose turn it is to merge, and when the team is done.

Groups come back to a developer before new ones begin; the levels of `depends_on` are no barriers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from agent_orchestrator.core.events import Ended, HumanAsked, MergeStarted, StopReason
from agent_orchestrator.core.lifecycle import Phase
from agent_orchestrator.core.text import clip_line
from agent_orchestrator.core.units import say_count
from agent_orchestrator.systems.team.events import AgentStarted, CheckStarted, Decided, GroupSerialised, SavingStarted, TeamEvent
from agent_orchestrator.systems.team.roles import Purpose
from agent_orchestrator.systems.team.state import PM, Group, Stage, TeamState, TeamUnit
from agent_orchestrator.systems.team.status import overlap

REASON_CHARS = 300

_WHY_DEVELOP = {
    "qa": "QA failed",
    "review": "The tech lead requested changes",
    "conflict": "The branch conflicts with what was merged",
    "red": "The check failed on the merged tree",
    "collision": "The group it collided with has landed",
    "unblocked": "The tech lead showed a way on",
    "partial": "The developer was not done",
    "saving": "The work could not be saved as it was left",
    "person": "A person said to go on",
}

_FOUND_BY = {"conflict": "merge", "red": "merge", "collision": "merge", "unblocked": "guidance"} | {
    name: name for name in ("qa", "review", "saving", "person")
}
"""Whose points are the reason."""


def advance(state: TeamState, now_us: int) -> Sequence[TeamEvent]:
    """Give the next facts, or none."""
    life = state.lifecycle
    if life.phase is Phase.ABORTING:
        if state.doing.active:
            return ()
        return [Decided(decision="abort_run", reasoning=life.detail), Ended(stop=StopReason.ABORTED, detail=life.detail)]
    if not life.running:
        return ()
    if state.conclusion is not None:
        stop, detail = state.conclusion
        return [Decided(decision="stop_run", reasoning=detail), Ended(stop=stop, detail=detail)]
    for name in state.due:
        events = _start(state, state.unit(name))
        if events:
            return events
    return _admit(state)


def _start(state: TeamState, unit: TeamUnit) -> list[TeamEvent]:
    if unit.question:
        return _ask(state, unit)
    if unit.turn is not None:
        return _again(state, unit)
    return _STARTS[unit.stage](state, unit)


def _ask(state: TeamState, unit: TeamUnit) -> list[TeamEvent]:
    where = "pm" if unit.unit == PM else f"group_{unit.unit}"
    asked = HumanAsked(
        effect=state.name_effect(unit, "human"),
        step=unit.unit,
        about=unit.asking,
        question=unit.question,
        after=unit.agent_launch,
    )
    return [Decided(decision=f"ask_person_{where}", reasoning=clip_line(unit.question, REASON_CHARS)), asked]


def _again(state: TeamState, unit: TeamUnit) -> list[TeamEvent]:
    """Go on with the same turn, in a new launch."""
    turn = unit.turn
    assert turn is not None, "a turn is under way"
    if turn.purpose is Purpose.DEVELOP and unit.unit not in state.developing and not _slots(state):
        return []
    effect = state.name_effect(unit, turn.purpose.value)
    return [AgentStarted(effect=effect, step=unit.unit, purpose=turn.purpose, again=True)]


def _spawn(state: TeamState, unit: TeamUnit, purpose: Purpose, decision: str, reasoning: str) -> list[TeamEvent]:
    return [Decided(decision=decision, reasoning=clip_line(reasoning, REASON_CHARS)), _started(state, unit, purpose)]


def _started(state: TeamState, unit: TeamUnit, purpose: Purpose) -> AgentStarted:
    effect = state.name_effect(unit, purpose.value, state.next_number(unit, purpose))
    return AgentStarted(effect=effect, step=unit.unit, purpose=purpose)


def _plan(state: TeamState, unit: TeamUnit) -> list[TeamEvent]:
    why = "Initial planning phase"
    if state.plan.made:
        why = "More was asked for: " + "; ".join(one.text for one in state.requirements if not one.planned)
    elif state.clarifications:
        why = "The questions are answered"
    return _spawn(state, unit, Purpose.PLAN, "spawn_pm_for_planning", why)


def _final(state: TeamState, unit: TeamUnit) -> list[TeamEvent]:
    back = unit.points.get("sent_back")
    why = f"Not accepted: {'; '.join(back)}" if back else f"All groups are complete: {', '.join(state.groups)}"
    return _spawn(state, unit, Purpose.FINAL, "spawn_pm_final_check", why)


def _verify(state: TeamState, unit: TeamUnit) -> list[TeamEvent]:
    """Run a requirement's own check; then ask the tech lead, for those that have none; then end."""
    for number, requirement in enumerate(state.requirements):
        if requirement.check is not None and not requirement.met_by:
            why = f"The requirement has a check of its own: {requirement.text}"
            effect = state.name_effect(unit, "check")
            started = CheckStarted(effect=effect, step=PM, requirement=number)
            return [Decided(decision=f"check_requirement_{number + 1}", reasoning=clip_line(why, REASON_CHARS)), started]
    left = [requirement for requirement in state.requirements if not requirement.met_by]
    if left:
        why = f"{say_count(len(left), 'requirement')} to be confirmed one by one"
        return _spawn(state, unit, Purpose.CONFIRM, "spawn_tech_lead_confirmation", why)
    reduced = sum(one.met_by == "approval" for one in state.requirements)
    count = len(state.requirements)
    told = f"All {count} requirements are met" if count > 1 else "The requirement is met"
    told += f", {reduced} of them left out with a person's approval" if reduced else ""
    return [Decided(decision="complete_run", reasoning=told), Ended(stop=StopReason.COMPLETED, detail=told)]


def _develop(state: TeamState, unit: TeamUnit) -> list[TeamEvent]:
    assert isinstance(unit, Group)
    if not _slots(state):
        return []
    why = _WHY_DEVELOP.get(unit.because, "The group continues")
    points = unit.points.get(_FOUND_BY.get(unit.because, ""), ())
    reasoning = f"{why}: {points[0]}" if points else why
    return _spawn(state, unit, Purpose.DEVELOP, f"spawn_developer_group_{unit.unit}", reasoning)


def _save(state: TeamState, unit: TeamUnit) -> list[TeamEvent]:
    return [SavingStarted(effect=state.name_effect(unit, "save"), step=unit.unit)]


def _qa(state: TeamState, unit: TeamUnit) -> list[TeamEvent]:
    return _spawn(state, unit, Purpose.QA, f"spawn_qa_expert_group_{unit.unit}", f"Developer {unit.unit} ready for QA")


def _review(state: TeamState, unit: TeamUnit) -> list[TeamEvent]:
    assert isinstance(unit, Group)
    tested = unit.qa and unit.then is Stage.QA
    why = f"QA passed in group {unit.unit}" if tested else f"Developer {unit.unit} ready for review"
    return _spawn(state, unit, Purpose.REVIEW, f"spawn_tech_lead_group_{unit.unit}", why)


def _consult(state: TeamState, unit: TeamUnit) -> list[TeamEvent]:
    assert isinstance(unit, Group)
    said = [one.description for one in unit.blockers if not one.resolved]
    why = f"Developer {unit.unit} is blocked" + (f": {said[-1]}" if said else "")
    return _spawn(state, unit, Purpose.CONSULT, f"spawn_tech_lead_group_{unit.unit}", why)


def _merge(state: TeamState, unit: TeamUnit) -> list[TeamEvent]:
    into = state.spec.into
    if state.queue.first(into) != unit.unit:
        return []
    why = f"The tech lead approved group {unit.unit}; it is its turn to be merged into {into}"
    started = MergeStarted(effect=state.name_effect(unit, "merge"), step=unit.unit)
    return [Decided(decision=f"merge_group_{unit.unit}", reasoning=why), started]


_STARTS: dict[Stage, Callable[[TeamState, TeamUnit], list[TeamEvent]]] = {
    Stage.PLAN: _plan,
    Stage.FINAL: _final,
    Stage.CHECKS: _verify,
    Stage.CONFIRM: _verify,
    Stage.DEVELOP: _develop,
    Stage.SAVE: _save,
    Stage.QA: _qa,
    Stage.REVIEW: _review,
    Stage.CONSULT: _consult,
    Stage.MERGE: _merge,
}


def _slots(state: TeamState) -> int:
    """Count the developers that may work besides."""
    waiting = state.spec.max_parallel - len(state.developing)
    return max(0, waiting)


def _admit(state: TeamState) -> list[TeamEvent]:
    """Begin groups together; those that could and change the same files as others have to wait."""
    begin: list[Group] = []
    serialised: list[TeamEvent] = []
    busy = [state.groups[name] for name in state.at_work]
    for name in state.ready:
        group = state.groups[name]
        if len(begin) >= _slots(state) or not _may_join(state, group, [*busy, *begin]):
            continue
        ahead = next((other for other in (*busy, *begin) if overlap(group, other)), None)
        if ahead is None:
            begin.append(group)
        elif not group.serialised:
            paths = overlap(group, ahead)
            both = f"Groups {group.unit} and {ahead.unit} both change {', '.join(paths)}"
            why = f"{both}: {group.unit} waits until {ahead.unit} is merged"
            serialised.append(Decided(decision=f"serialise_group_{group.unit}", reasoning=clip_line(why, REASON_CHARS)))
            serialised.append(GroupSerialised(group=group.unit, behind=ahead.unit, paths=paths))
    if not begin:
        return serialised
    return [*serialised, *_begin(state, begin)]


def _may_join(state: TeamState, group: Group, busy: list[Group]) -> bool:
    """Tell whether a group may begin: one that cannot be worked on beside others has the team to itself."""
    if not busy:
        return True
    alone = state.plan.mode == "simple" or not group.can_parallel
    return not alone and all(other.can_parallel for other in busy)


def _begin(state: TeamState, groups: list[Group]) -> list[TeamEvent]:
    started = [_started(state, group, Purpose.DEVELOP) for group in groups]
    if len(groups) == 1:
        group = groups[0]
        after = f" after {', '.join(group.depends_on)}" if group.depends_on else ""
        why = f"Group {group.unit} can begin{after}"
        return [Decided(decision=f"spawn_developer_group_{group.unit}", reasoning=why), *started]
    names = ", ".join(group.unit for group in groups)
    why = f"PM decided {state.plan.mode} mode with {say_count(len(state.groups), 'group')}; {names} can begin"
    return [Decided(decision=f"spawn_{len(groups)}_developers_parallel", reasoning=why), *started]
