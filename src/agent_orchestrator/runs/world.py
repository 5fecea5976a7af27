"""The parts that an engine of this process touches the world with. Whoever imports this pays for the event loop."""

from __future__ import annotations

from typing import Any

import msgspec

from agent_orchestrator.engine.clock import boot_id
from agent_orchestrator.engine.engine import World
from agent_orchestrator.engine.redact import Redactor
from agent_orchestrator.git.checkpoint import take_checkpoint
from agent_orchestrator.git.merges import GitMerges
from agent_orchestrator.git.results import open_with_results
from agent_orchestrator.git.snapshots import identify_tree
from agent_orchestrator.runs.orchestrator import Orchestrator
from agent_orchestrator.store.port import StoredRun
from agent_orchestrator.version import __version__


def make_world(orchestrator: Orchestrator, run: StoredRun) -> World:
    """Return the real world of a run."""
    return World(
        store=orchestrator.store,
        launches=orchestrator.launches(),
        clock=orchestrator.clock,
        boot=boot_id(),
        child_env=orchestrator.settings.child_env,
        redactor=Redactor(orchestrator.settings.secrets(_read_env(orchestrator, run))),
        tree_of=identify_tree,
        save_tree=take_checkpoint,
        open_tree=open_with_results,
        merges=GitMerges(),
        overviews=orchestrator.overviews(),
        version=__version__,
    )


def _read_env(orchestrator: Orchestrator, run: StoredRun) -> dict[str, str]:
    """Return the variables given for the run's agents: whatever a system's spec keeps under `env`, at any depth."""
    given: dict[str, str] = {}
    stack: list[Any] = [msgspec.json.decode(orchestrator.store.spec(run.id))]
    while stack:
        node = stack.pop()
        if isinstance(node, dict):
            if isinstance(env := node.get("env"), dict):
                given.update((name, value) for name, value in env.items() if isinstance(value, str))
            stack.extend(node.values())
        elif isinstance(node, list):
            stack.extend(node)
    return given
