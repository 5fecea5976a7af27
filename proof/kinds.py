"""All kinds of faults, by name."""

from __future__ import annotations

from proof import cluster, fuzz, git_kills, kills, power, shortages, simulated, soak, syscalls
from proof.trial import Kind

ROOMS = (simulated, kills, git_kills, syscalls, shortages, power, cluster, fuzz, soak)
KINDS: dict[str, Kind] = {kind.name: kind for room in ROOMS for kind in room.KINDS}
