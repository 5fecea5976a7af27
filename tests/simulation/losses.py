"""The launches that a crash between their mark and their start has lost: nobody can know whether they ran."""

from __future__ import annotations

from collections import Counter

from agent_orchestrator.testing.simulation import Simulation

RUNS_OF_A_CHECK = 2
"""A check that is lost is run once more; one that is lost again has not passed."""


def units_beaten(simulation: Simulation) -> set[str]:
    """Return the units with a check that was lost as often as it is run, so that it counts as not passed."""
    lost = [process.effect for process in simulation.machine.processes.values() if process.exit_code is None]
    checks = Counter(
        (effect.split("/")[1], effect.rpartition(".l")[0]) for effect in lost if effect.endswith((".check", ".criterion"))
    )
    return {unit for (unit, _), count in checks.items() if count >= RUNS_OF_A_CHECK}
