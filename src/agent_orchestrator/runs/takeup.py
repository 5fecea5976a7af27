"""Takes a stored run up again: what people changed on disk meanwhile, what they ask for now, and a place for a new run.

Edits are adopted only here, by a person's word, and only while nothing of the run is alive; a file that cannot be adopted is
put aside, never overwritten and never read as truth.
"""

from __future__ import annotations

import uuid

import msgspec

from agent_orchestrator.config.defaults import load_agents
from agent_orchestrator.core.budget import Budget
from agent_orchestrator.core.effects import ACTIVE
from agent_orchestrator.core.events import DirectiveRefused
from agent_orchestrator.core.inputs import Given, Resume, SetAgents, SetLimits
from agent_orchestrator.core.lifecycle import Phase
from agent_orchestrator.engine.journal import Folded
from agent_orchestrator.engine.launches import Standing
from agent_orchestrator.errors import Refused
from agent_orchestrator.runs.budget import refuse_unmetered
from agent_orchestrator.runs.edits import take_edits
from agent_orchestrator.runs.hooks import hooks_of
from agent_orchestrator.runs.interrupted import settle_interrupted
from agent_orchestrator.runs.orchestrator import Orchestrator
from agent_orchestrator.runs.sandbox import refuse_fallen
from agent_orchestrator.runs.settings import reread
from agent_orchestrator.runs.start import UNCHANGED, Change
from agent_orchestrator.runs.trees import enter_again, restore_tree
from agent_orchestrator.store.port import StoredRun


class TakeUp(msgspec.Struct, frozen=True, kw_only=True):
    """The first inputs for the engine of a run that is taken up, and what a person is told."""

    inputs: tuple[Given, ...]
    notes: tuple[str, ...]


def take_up(orchestrator: Orchestrator, run: StoredRun, change: Change = UNCHANGED) -> TakeUp:
    """Adopt edits and ask the run to go on, with what is changed on the way; raise Refused when it cannot.

    Settings of agents are read again; a configuration with faults is told before anything is touched. The caller owns the run.
    """
    load_agents(orchestrator.settings)
    refuse_fallen(run, orchestrator.settings)
    orchestrator.refuse_kept(run)
    run = settle_interrupted(orchestrator, run)
    restore_tree(orchestrator, run)
    hooks = hooks_of(run.system)
    continuation = hooks.go_on(orchestrator, run, change.values, adopt=change.adopt)
    beside = enter_again(orchestrator, run, shared=change.shared)
    hooks.claim(orchestrator, run)
    folded = orchestrator.fold(run)
    now_us = max(orchestrator.clock.now_us(), folded.at_us)
    inputs: list[Given] = []
    published, said = hooks.publish(orchestrator, run, change.publish)
    notes = [*beside, *said]
    if not _anything_alive(orchestrator, folded):
        edits = take_edits(orchestrator, run, folded, now_us, change.edits)
        notes += edits.notes
        for edited in edits.inputs:
            inputs.append(edited)
            folded.apply(folded.decide(edited, now_us), now_us)
    elif change.edits:
        why = (
            f"Agents of run {run.id} are alive, and edits wait until they are not: `orc pause {run.id} --now`, then resume it so."
        )
        raise Refused(why=why)
    adopted, told = continuation.compare(folded.state)
    changes = {**change.values, **published, **adopted}
    if change.budget.is_set:
        inputs.append(orchestrator.sign(run, SetLimits(id=uuid.uuid4().hex, limits=change.budget)))
    life = folded.state.lifecycle
    if changes or not (life.running or life.phase is Phase.ABORTING):  # an abort that was cut short only has to be ended
        resume = orchestrator.sign(run, Resume(id=uuid.uuid4().hex, changes=changes))
        for event in folded.decide(resume, now_us):
            if isinstance(event, DirectiveRefused):
                _print_ended(orchestrator, run, folded)
                raise Refused(why=f"Run {run.id} cannot continue: {event.why}.")
            folded.apply([event], now_us)
        inputs.append(resume)
    read = reread(orchestrator, folded.state.spec, change.permissions)
    if read.agents:
        inputs.append(orchestrator.sign(run, SetAgents(id=uuid.uuid4().hex, agents=read.agents, changes=read.changes)))
    notes += [*told, *read.notes, *read.changes]
    refuse_unkept(folded, change.budget)
    continuation.check(folded.state, adopted)
    return TakeUp(inputs=tuple(inputs), notes=tuple(notes))


def refuse_unkept(folded: Folded, budget: Budget) -> None:
    """Raises a UsageError when a stored run is given a budget that its agents, who do not say what they consume, would escape."""
    if budget.limits_cost or budget.limits_tokens:
        refuse_unmetered(folded.state.doing.budget.override(budget), folded.state.spec.choices)


def _print_ended(orchestrator: Orchestrator, run: StoredRun, folded: Folded) -> None:
    """A process that died between the last fact and its print-out left an old file, or somebody deleted it."""
    if folded.state.lifecycle.ended:
        orchestrator.settle(run)


def _anything_alive(orchestrator: Orchestrator, folded: Folded) -> bool:
    launches = orchestrator.launches()
    return any(
        launches.standing(effect.id, same_boot=True) is Standing.ALIVE
        for effect in folded.state.doing
        if isinstance(effect, ACTIVE)
    )
