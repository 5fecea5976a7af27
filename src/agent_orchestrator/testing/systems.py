"""`check_system`: the contract that every system keeps, whatever way of working it is.

It plays runs of the given specifications under many seeds, with effects that end well, badly, late or not at all and a
person who meddles, and raises AssertionError with the promise that was broken. It knows systems only through their port.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import msgspec

from agent_orchestrator import typed
from agent_orchestrator.core.system import System
from agent_orchestrator.testing.bounds import check_bounds, check_returns, check_stops
from agent_orchestrator.testing.outcomes import Reports
from agent_orchestrator.testing.play import CheckDocument, CheckState, Play


def check_system(
    system: System,
    specs: Sequence[Any],
    *,
    seeds: Sequence[int] = range(20),
    ticks: int = 60,
    reports: Reports | None = None,
    check_document: CheckDocument | None = None,
) -> None:
    """Play every specification under every seed, through trouble that does not end, and with a stop in every state."""
    for spec in specs:
        again = typed.decode(msgspec.json.encode(spec), system.spec_type)
        assert again == spec, "a specification survives being stored"
        for seed in seeds:
            Play(system, spec, random.Random(seed), reports, check_document).play(ticks)
        check_bounds(system, spec, reports)
        check_stops(system, spec, reports)
        check_returns(system, spec, reports)


def play_system(
    system: System,
    spec: Any,
    seed: int,
    *,
    ticks: int,
    reports: Reports,
    check_state: CheckState,
) -> Any:
    """Play one specification under one seed until the run has ended; return its last state.

    For thousands of seeds: what a system promises of itself is checked after every tick, and that nothing hangs; what
    costs many times as much (that deciding is pure, that the journal folds to the same run) is left to `check_system`.
    """
    playing = Play(system, spec, random.Random(seed), reports, None, check_state)
    playing.play(ticks)
    return playing.state
