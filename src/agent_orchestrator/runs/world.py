"""The parts that an engine of this process touches the world with. Whoever imports this pays for the event loop."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from agent_orchestrator.config.defaults import load_telemetry
from agent_orchestrator.core.ids import EffectId
from agent_orchestrator.engine.engine import World
from agent_orchestrator.git.checkpoint import take_checkpoint
from agent_orchestrator.git.diffs import list_changes
from agent_orchestrator.git.kept_trees import TreeKeeper, may_keep
from agent_orchestrator.git.merges import GitMerges
from agent_orchestrator.git.results import open_with_results
from agent_orchestrator.git.snapshots import identify_tree
from agent_orchestrator.runs.agent_door import AgentDoor
from agent_orchestrator.runs.key_marks import find_salt, mark_key
from agent_orchestrator.runs.orchestrator import Orchestrator
from agent_orchestrator.runs.returns import return_trees
from agent_orchestrator.runs.secrets import make_redactor
from agent_orchestrator.runs.telemetry.trace import traceparent
from agent_orchestrator.store.port import StoredRun
from agent_orchestrator.version import __version__


def _trace(orchestrator: Orchestrator, run: StoredRun) -> Callable[[EffectId], dict[str, str]]:
    """Return what gives a launch its place in the run's trace, while telemetry is on."""
    if load_telemetry(orchestrator.settings) is None:
        return lambda effect: {}
    return lambda effect: {"TRACEPARENT": traceparent(run.context, effect)}


def make_world(orchestrator: Orchestrator, run: StoredRun, door: AgentDoor | None = None) -> World:
    """Return the real world of a run, with the door of its MCP server where it has one."""
    return World(
        store=orchestrator.store,
        launches=orchestrator.launches(),
        clock=orchestrator.clock,
        boot=orchestrator.boot,
        owned=orchestrator.owned(run.id),
        child_env=orchestrator.settings.child_env,
        key_of=partial(mark_key, orchestrator.settings, find_salt(orchestrator.store)),
        redactor=make_redactor(orchestrator, run),
        tree_of=identify_tree,
        save_tree=take_checkpoint,
        list_changes=list_changes,
        keep_tree=TreeKeeper().keep,
        has_tree=may_keep,
        return_trees=lambda going: return_trees(orchestrator, run, going),
        open_tree=open_with_results,
        server_of=door.server_of if door is not None else lambda effect: None,
        merges=GitMerges(),
        prints=orchestrator.prints,
        overviews=orchestrator.overviews(),
        trace=_trace(orchestrator, run),
        version=__version__,
    )
