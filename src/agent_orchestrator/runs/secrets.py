"""The secrets of a run, taken out of whatever is stored, committed or published of it."""

from __future__ import annotations

from typing import Any

import msgspec

from agent_orchestrator.engine.redact import Redactor
from agent_orchestrator.runs.orchestrator import Orchestrator
from agent_orchestrator.store.port import StoredRun


def make_redactor(orchestrator: Orchestrator, run: StoredRun) -> Redactor:
    """Make the redactor of a run: it knows the user's secrets, those given to the run's agents, and what is passed on to them."""
    given: dict[str, str] = {}
    passed = list(run.context.pass_env)
    spec = orchestrator.store.spec(run.id)
    stack: list[Any] = [msgspec.json.decode(spec)] if b'env"' in spec else []  # That of 10,000 steps takes long to go through.
    while stack:  # Whatever a system's specification keeps under `env` and `pass_env`, at any depth.
        node = stack.pop()
        if isinstance(node, dict):
            if isinstance(env := node.get("env"), dict):
                given.update((name, value) for name, value in env.items() if isinstance(value, str))
            if isinstance(names := node.get("pass_env"), list):
                passed += [name for name in names if isinstance(name, str)]
            stack.extend(node.values())
        elif isinstance(node, list):
            stack.extend(node)
    return Redactor(orchestrator.settings.secrets(given, passed))
