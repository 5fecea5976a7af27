"""The ids of a run's trace: hashed, so that a launch's is known before it starts and every export says the same."""

from __future__ import annotations

import hashlib

from agent_orchestrator.core.ids import EffectId
from agent_orchestrator.core.system import Context


def trace_id(context: Context) -> int:
    """Return the id of a run's trace."""
    return _hash(16, context.home, context.run, str(context.created_us))


def span_id(context: Context, *of: str) -> int:
    """Return the id of a span of a run: the run's own, that of a unit, or that of an effect."""
    return _hash(8, f"{trace_id(context):032x}", *of)


def traceparent(context: Context, effect: EffectId) -> str:
    """Return the W3C header by which what a launch does becomes part of the run's trace."""
    return f"00-{trace_id(context):032x}-{span_id(context, effect):016x}-01"


def _hash(size: int, *parts: str) -> int:
    digest = hashlib.sha256("\0".join(parts).encode("utf-8", "surrogateescape")).digest()
    return int.from_bytes(digest[:size]) or 1
