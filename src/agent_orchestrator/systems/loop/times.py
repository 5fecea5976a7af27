"""The seed's spelling of times: UTC, whole seconds, ending in Z."""

from __future__ import annotations

from agent_orchestrator.core.units import iso


def stamp(at_us: int) -> str:
    """2026-02-02T21:00:00Z."""
    return f"{iso(at_us)[:19]}Z"
