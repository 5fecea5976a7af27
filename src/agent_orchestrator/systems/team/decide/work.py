"""Decides what follows saved work, merges and checks."""

from __future__ import annotations

from agent_orchestrator.core.ids import unit_of
from agent_orchestrator.core.inputs import CheckEnded, CheckpointEnded, MergeEnded, MergeVerdict
from agent_orchestrator.core.judging import After, Worth, judge_attempt, judge_check, retry_us, tree_moved
from agent_orchestrator.core.launch_events import check_fields
from agent_orchestrator.core.text import clip
from agent_orchestrator.core.units import say_count
from agent_orchestrator.systems.team.decide.agents import reach_limit
from agent_orchestrator.systems.team.decide.plans import check_patience
from agent_orchestrator.systems.team.events import (
    CheckFinished,
    CollisionForeseen,
    Decided,
    GroupCompleted,
    LaunchInterrupted,
    LimitReached,
    MergeFinished,
    MessageSent,
    RequirementMet,
    RetryScheduled,
    SentBack,
    TeamEvent,
    WorkSaved,
)
from agent_orchestrator.systems.team.messages import DEV_TO_QA, ready_for_qa
from agent_orchestrator.systems.team.state import Group, Stage, TeamState

AHEAD = (Stage.SAVE, Stage.QA, Stage.REVIEW, Stage.MERGE)
"""Stages of a group whose development is done for now: one that collides with it waits for it."""
PATHS_KEPT = 20


def settle_tree(state: TeamState, outcome: CheckpointEnded, now_us: int) -> list[TeamEvent]:
    """Settle a saved branch; a collision with a group that is ahead holds this one."""
    group = state.groups[unit_of(outcome.effect)]
    files = tuple(change.path for change in outcome.changed)
    saved = WorkSaved(
        group=group.unit,
        unavailable=outcome.unavailable,
        head=outcome.branch_commit or outcome.head,
        files_modified=files,
        commits=outcome.commits,
        diff=outcome.diff,
    )
    if outcome.unavailable:
        if group.unsaved + 1 < state.spec.max_attempts:
            return [saved]
        tries = say_count(group.unsaved + 1, "time")
        return [
            saved,
            reach_limit(group, "saving", f"its work could not be saved, {tries} in a row: {outcome.unavailable}"),
        ]
    held = _held(state, group, outcome)
    if held:
        return [saved, *held]
    if group.then is Stage.QA:
        message = ready_for_qa(state, group, files, [commit.sha for commit in outcome.commits], now_us)
        return [saved, MessageSent(box=DEV_TO_QA, group=group.unit, message=message)]
    return [saved]


def _held(state: TeamState, group: Group, outcome: CheckpointEnded) -> list[TeamEvent]:
    if group.then not in (Stage.QA, Stage.REVIEW):
        return []
    branches = {one.branch: one.paths for one in outcome.collisions}
    others = [other for other in state.groups.values() if other.branch_name in branches and other.stage in AHEAD]
    ahead = [other for other in others if not (other.stage is Stage.SAVE and other.then in (Stage.DEVELOP, Stage.CONSULT))]
    if not ahead:
        return []
    names = tuple(other.unit for other in ahead)
    paths = tuple(dict.fromkeys(path for other in ahead for path in branches[other.branch_name]))[:PATHS_KEPT]
    why = f"Its branch and that of {', '.join(names)} both change {', '.join(paths)}: {group.unit} waits until it is merged"
    decided = Decided(decision=f"serialise_group_{group.unit}", reasoning=why[:300])
    return [decided, CollisionForeseen(group=group.unit, behind=names, paths=paths)]


def settle_merge(state: TeamState, outcome: MergeEnded, now_us: int) -> list[TeamEvent]:
    """Route landed → complete; conflict or red → developer; in the way → a person; not possible now → later, then a person."""
    group = state.groups[unit_of(outcome.effect)]
    finished = MergeFinished(
        effect=outcome.effect,
        group=group.unit,
        verdict=outcome.verdict,
        detail=outcome.detail,
        commit=outcome.commit,
        conflicts=outcome.conflicts,
        conflict_text=outcome.conflict_text,
        tail=outcome.tail if outcome.verdict is MergeVerdict.RED else "",
    )
    return [finished, *_after_merge(state, group, outcome, now_us)]


def _after_merge(state: TeamState, group: Group, outcome: MergeEnded, now_us: int) -> list[TeamEvent]:
    match outcome.verdict:
        case MergeVerdict.LANDED:
            return [GroupCompleted(group=group.unit, commit=outcome.commit)]
        case MergeVerdict.CONFLICT | MergeVerdict.RED:
            rounds = group.review_failures + 1
            if rounds < state.spec.max_review_rounds:
                return []
            return [
                reach_limit(group, "review_rounds", f"it could not be merged, in round {rounds} of reviews: {outcome.detail}")
            ]
        case MergeVerdict.HELD:
            question = f"Group {group.unit} cannot be merged: {outcome.detail}. Approve when that is done; reject to give up."
            return [LimitReached(step=group.unit, about="held", description=outcome.detail, question=question)]
        case MergeVerdict.UNAVAILABLE:
            tries = group.merges_failed + 1
            if judge_attempt(tries, state.spec.max_attempts) is After.FAILURE:
                return [reach_limit(group, "merge", f"it cannot be merged: {outcome.detail}")]
            effect = state.name_effect(group, "wait")
            until_us = retry_us(tries, effect, now_us)
            return [
                RetryScheduled(effect=effect, step=group.unit, until_us=until_us, attempt=tries + 1, error=outcome.detail),
            ]
        case MergeVerdict.MOVED | MergeVerdict.INTERRUPTED:
            return []


def settle_check(state: TeamState, outcome: CheckEnded, now_us: int) -> list[TeamEvent]:
    """Settle a requirement's check: evidence that it is met, or a reason to send the project manager back."""
    number, failure = _checked(state), outcome.failure
    worth, moved = judge_check(outcome, state.pm.reruns), tree_moved(outcome)
    finished = CheckFinished(
        step=state.pm.unit,
        requirement=number,
        again=worth is Worth.AGAIN,
        worth=worth,
        **check_fields(outcome),
    )
    if worth is Worth.AGAIN:
        return [finished]
    if worth is Worth.STOPPED:
        return [finished, LaunchInterrupted(step=state.pm.unit)]
    requirement = state.requirements[number]
    if worth is Worth.PASSED:
        return [finished, RequirementMet(requirement=number, by="check", evidence=f"`{requirement.check}` passed")]
    said = f"exit code {outcome.exit_code}"
    if moved:
        said = "it changed the working tree while it ran"
    elif failure is not None:
        said = failure.message
    why = clip(f"the check of a requirement failed ({said}): {requirement.text}\n{outcome.tail[-500:]}")
    return [finished, SentBack(reasons=(why,), open=(number,)), *check_patience(state, [number])]


def _checked(state: TeamState) -> int:
    """Find the requirement that was checked: the first whose check has not passed."""
    return next(number for number, one in enumerate(state.requirements) if one.check is not None and not one.met_by)
