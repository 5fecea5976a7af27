"""A workflow file that changed since its run began: what differs, and what of that a run can still take.

A step that is done keeps its definition and its result, also where the file no longer has it. Every other step takes what
the file says; one that was begun or has failed, and is described differently, begins anew.
"""

from __future__ import annotations

import msgspec

from agent_orchestrator import typed
from agent_orchestrator.errors import Refused
from agent_orchestrator.systems.workflow.graph import graph_faults
from agent_orchestrator.systems.workflow.spec import StepSpec, WorkflowSpec, with_options_kept
from agent_orchestrator.systems.workflow.state import FINISHED, WorkflowState

KEYS = {"timeout_s": "timeout", "prompt_path": "prompt"}
"""Fields as the file spells them, where that differs."""
FAULTS_SHOWN = 5


class Difference(msgspec.Struct, frozen=True, kw_only=True):
    """One step, or the whole (""), that the file has otherwise than the run."""

    step: str
    keys: tuple[str, ...] = ()
    """The keys that differ; none where the step is new or removed."""
    new: bool = False
    removed: bool = False
    done: bool = False
    """True where it is done, and stays as it was."""
    begun: bool = False
    """True where it was begun, and begins anew when the change is taken."""


class Adoption(msgspec.Struct, frozen=True, kw_only=True):
    """The specification with what can be taken, and which steps that concerns."""

    spec: WorkflowSpec
    added: tuple[str, ...]
    removed: tuple[str, ...]
    changed: tuple[str, ...]
    again: tuple[str, ...]
    """Those that begin anew."""


def compare(state: WorkflowState, new: WorkflowSpec) -> list[Difference]:
    """List what a file has otherwise, in its order, and then what it no longer has."""
    new = _as_stored(new)
    whole = _keys(state.spec, new, ("description", "metadata"))
    found = [Difference(step="", keys=whole)] if whole else []
    for step in new.steps:
        held = state.specs.get(step.id)
        if held is None:
            found.append(Difference(step=step.id, new=True))
        elif keys := _keys(held, step, StepSpec.__struct_fields__):
            found.append(Difference(step=step.id, keys=keys, done=_is_done(state, step.id), begun=_is_begun(state, step.id)))
    kept = {step.id for step in new.steps}
    gone = [unit for unit in state.steps if unit not in kept]
    return [*found, *(Difference(step=unit, removed=True, done=_is_done(state, unit)) for unit in gone)]


def adopt(state: WorkflowState, new: WorkflowSpec) -> Adoption:
    """Takes what can be taken; raises Refused where nothing can, or where the steps would not fit together."""
    if not new.steps:
        raise Refused(why="the changed workflow has no steps")
    found = [one for one in compare(state, new) if not one.done]
    if not found:
        raise Refused(why="the workflow file has no changes that this run can take")
    file = _as_stored(new)
    kept = {unit: state.specs[unit] for unit in state.steps if _is_done(state, unit)}
    named = {step.id for step in file.steps}
    steps = (*(step for unit, step in kept.items() if unit not in named), *(kept.get(step.id, step) for step in file.steps))
    faults = [fault.message for fault in graph_faults(steps)][:FAULTS_SHOWN]
    if faults:
        why = f"the changed workflow does not fit what is done: {'; '.join(faults)}; start at a step with --start-at-step"
        raise Refused(why=why)
    spec = msgspec.structs.replace(with_options_kept(file, state.spec), name=state.spec.name, steps=steps)
    return Adoption(
        spec=spec,
        added=tuple(one.step for one in found if one.new),
        removed=tuple(one.step for one in found if one.removed),
        changed=tuple(one.step for one in found if one.keys and one.step),
        again=tuple(one.step for one in found if one.begun),
    )


def _is_done(state: WorkflowState, unit: str) -> bool:
    return state.steps[unit].status in FINISHED


def _is_begun(state: WorkflowState, unit: str) -> bool:
    """Tell whether the step is in the middle of something, or has failed: half of each definition would make no sense."""
    return unit in state.due or unit in state.failed or state.doing.of(unit) is not None


def _keys(held: msgspec.Struct, new: msgspec.Struct, fields: tuple[str, ...]) -> tuple[str, ...]:
    differing = (KEYS.get(name, name) for name in fields if getattr(held, name) != getattr(new, name))
    return tuple(dict.fromkeys(differing))


def _as_stored(spec: WorkflowSpec) -> WorkflowSpec:
    """As it is read back from the store: lists where a file may have given tuples."""
    return typed.decode(msgspec.json.encode(spec), WorkflowSpec)
