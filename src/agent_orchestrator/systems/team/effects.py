"""Builds a team's effects from the spec and the state. Plain data; each group works in a worktree of its own branch."""

from __future__ import annotations

from agent_orchestrator.core.effects import AgentChoice, AskHuman, Checkpoint, Merge, RunAgent, RunCheck, Tree
from agent_orchestrator.core.ids import EffectId
from agent_orchestrator.core.limits import CHECK_TIMEOUT_S
from agent_orchestrator.systems.team.prompts import compose
from agent_orchestrator.systems.team.roles import ROLE_OF, Purpose, Role, rule_of
from agent_orchestrator.systems.team.spec import ESCALATES_AFTER
from agent_orchestrator.systems.team.state import PM, Group, Stage, TeamState, TeamUnit, Turn

RIVALS_MAX = 20
"""Branches that one is compared with when it is saved."""
TURN = "TEAM_TURN"
"""Tells an agent what its turn is for: the project manager plans and checks, the tech lead reviews, helps and confirms."""


def folder_of(run: str, unit: str) -> str:
    """Give the folder of a unit's own files, relative to the run's home."""
    return f".agents/runs/{run}/{unit}"


def tree_of(state: TeamState, unit: TeamUnit) -> Tree:
    """Give the tree of a unit: a group is on its branch, the project manager on a fresh look at what was merged so far."""
    if isinstance(unit, Group):
        return Tree(branch=unit.branch_name, start=state.spec.into)
    return Tree(branch=f"orc/{state.context.run}/pm-{state.plans + state.finals}", start=state.spec.into)


def verified_tree(state: TeamState) -> Tree:
    """Give the tree that requirements are verified in: what was merged, without what the project manager may have left."""
    return Tree(branch=f"orc/{state.context.run}/check-{state.finals}", start=state.spec.into)


def choose(state: TeamState, unit: TeamUnit, role: Role) -> AgentChoice:
    """Choose who plays a role: after two failed rounds the stronger one, where there is one."""
    spec = state.spec
    failed = unit.failed_rounds if isinstance(unit, Group) else state.sent_back
    if failed >= ESCALATES_AFTER and role.value in spec.escalate:
        return spec.escalate[role.value]
    return spec.agents.get(role.value) or spec.agents[""]


def run_agent(state: TeamState, unit: TeamUnit, turn: Turn, effect: EffectId) -> RunAgent:
    """Make the effect that runs the agent whose turn it is."""
    spec, run = state.spec, state.context.run
    role = ROLE_OF[turn.purpose]
    return RunAgent(
        id=effect,
        unit=unit.unit,
        agent=choose(state, unit, role),
        tree=verified_tree(state) if turn.purpose is Purpose.CONFIRM else tree_of(state, unit),
        role=role.value,
        report=rule_of(turn.purpose, run, unit.unit),
        iteration=turn.number,
        attempt=turn.attempt,
        prompt_text=compose(state, unit, turn),
        env={**spec.env, TURN: turn.purpose.value},
        told=tuple({"found_by": who, "points": list(points)} for who, points in unit.points.items() if points),
        feedback=unit.feedback,
        artifacts_dir=f"{folder_of(run, unit.unit)}/artifacts",
        session=unit.session,
        allowed_commands=tuple(dict.fromkeys(one for one in (spec.check, *(each.check for each in state.requirements)) if one)),
        timeout_s=unit.time_left_s(spec.agent_timeout_s),
        idle_timeout_s=spec.idle_timeout_s,
    )


def save_work(state: TeamState, group: Group, effect: EffectId, at_us: int) -> Checkpoint:
    """Make the effect that commits what the agents left on the group's branch, with trailers that say whose it is."""
    run = state.context.run
    trailers = f"Orc-Run: {run}\nOrc-Group: {group.unit}\nOrc-Effect: {effect}\n"
    said = (group.summary or group.notes).splitlines()
    title = said[0] if said else f"{group.name}: round {group.developer}"
    title = "".join(one for one in title if one.isprintable())[:72]
    watches = group.then is not Stage.MERGE
    return Checkpoint(
        id=effect,
        unit=group.unit,
        ref=f"refs/orc/{run}/{group.unit}-{group.launches}",
        message=f"{run}: group {group.unit} after round {group.developer}\n\n{trailers}",
        tree=tree_of(state, group),
        at_us=at_us,
        start=state.spec.into,
        branch_message=f"{title}\n\n{trailers}",
        rivals=_rivals(state, group) if watches else (),
    )


def _rivals(state: TeamState, group: Group) -> tuple[str, ...]:
    others = [state.groups[name] for name in state.at_work if name != group.unit]
    return tuple(other.branch_name for other in others)[:RIVALS_MAX]


def merge_work(state: TeamState, group: Group, effect: EffectId, at_us: int) -> Merge:
    """Make the effect that merges the group's branch into the target, tested on the way."""
    spec, run = state.spec, state.context.run
    trailers = f"Orc-Run: {run}\nOrc-Group: {group.unit}\nOrc-Effect: {effect}\n"
    return Merge(
        id=effect,
        unit=group.unit,
        branch=group.branch_name,
        into=spec.into,
        message=f"Merge group {group.unit}: {group.name}\n\n{trailers}",
        at_us=at_us,
        check=spec.check,
        timeout_s=spec.check_timeout_s or CHECK_TIMEOUT_S,
    )


def check_requirement(state: TeamState, effect: EffectId, number: int) -> RunCheck:
    """Make the effect that runs a requirement's own check on what was merged."""
    command = state.requirements[number].check or ""
    timeout_s = state.spec.check_timeout_s or CHECK_TIMEOUT_S
    return RunCheck(id=effect, unit=PM, command=command, tree=verified_tree(state), timeout_s=timeout_s)


def ask_human(state: TeamState, unit: TeamUnit, effect: EffectId, question: str, after: EffectId) -> AskHuman:
    """Make a question to a person."""
    in_words = unit.asking == "clarification"
    return AskHuman(id=effect, unit=unit.unit, question=question, after=after or effect, in_words=in_words)
