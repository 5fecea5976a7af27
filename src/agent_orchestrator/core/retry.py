"""When a failed attempt is tried again, and after how long. Deterministic: the jitter comes from the effect's id."""

from __future__ import annotations

import zlib

from agent_orchestrator.core.ids import EffectId
from agent_orchestrator.core.limits import RETRY_BASE_S, RETRY_CAP_S, SHORTAGE_BASE_S, SHORTAGE_CAP_S
from agent_orchestrator.core.units import US

DOUBLINGS_MAX = 16
"""A disk may stay full for a week: without a bound the power outgrows every number."""


def shortage_pause_s(tries: int) -> float:
    """The pause after the machine was short of something for the `tries`-th time (from 0): doubling, capped."""
    return min(SHORTAGE_CAP_S, SHORTAGE_BASE_S * 2.0 ** min(tries, DOUBLINGS_MAX))


def backoff_us(attempt: int, effect: EffectId, base_s: float = RETRY_BASE_S, cap_s: float = RETRY_CAP_S) -> int:
    """The pause after failed attempt `attempt` (from 1): doubling, capped, up to 25 % longer by the id's hash.

    The jitter keeps parallel steps that failed together from starting again together.
    """
    pause_s = min(cap_s, base_s * 2 ** min(attempt - 1, DOUBLINGS_MAX))
    jitter = 1 + 0.25 * (zlib.crc32(effect.encode()) % 1000) / 1000
    return int(pause_s * jitter * US)
