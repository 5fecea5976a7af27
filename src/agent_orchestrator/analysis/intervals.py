"""How sure one can be of a rate that was seen: three successes of three are no proof of anything."""

from __future__ import annotations

import math

Z_95 = 1.959963984540054


def wilson(successes: int, total: int, z: float = Z_95) -> tuple[float | None, float | None]:
    """The Wilson score interval of a proportion, at 95 % unless `z` says otherwise; not known without observations."""
    if total <= 0:
        return None, None
    share = successes / total
    square = z * z
    centre = (share + square / (2 * total)) / (1 + square / total)
    half = z * math.sqrt(share * (1 - share) / total + square / (4 * total * total)) / (1 + square / total)
    return max(0.0, centre - half), min(1.0, centre + half)
