"""Notifications that were given up: looked at by commands that must stay instant, so that nothing of `notify` is loaded."""

from __future__ import annotations

from typing import Any

import msgspec

from agent_orchestrator import typed
from agent_orchestrator.runs.orchestrator import Orchestrator


class _Problem(msgspec.Struct):
    problem: str = ""


_read = typed.decoder(_Problem)


def list_untold(orchestrator: Orchestrator) -> list[dict[str, Any]]:
    """Return who could not be told something, how often, and why."""
    given_up = orchestrator.store.outbox.deliveries(given_up=True) if orchestrator.has_store else []
    names = dict.fromkeys(one.reader for one in given_up)
    found = [(name, [one for one in given_up if one.reader == name]) for name in names]
    return [{"name": name, "count": len(some), "problem": _read(some[-1].body).problem} for name, some in found]
