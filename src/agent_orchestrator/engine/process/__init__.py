"""Real programs behind the `Launches` port: a folder, a lock and a constant shim per launch.

    folder.py     the launch's directory: its lock, its marks, who started it when
    shim.py       the constant `sh` text and the one place that spawns
    identity.py   which processes belong to a launch, by the nonce in their environment
    cgroups.py    the same by a cgroup for each launch, where one can be made
    newcomers.py  whether a launch left no process behind, by the few that were made since it began
    watched.py    one launch under watch: its shim, and how its processes are signalled
    agenda.py     when which launch is looked at
    monitor.py    all launches under watch: ends, limits, leftovers, the stop ladder
    ends.py       ends launches, and the process that drove them, for whoever looks after a host
    launches.py   ProcessLaunches, the port itself

Nothing outside this package starts, signals or reaps a program that changes anything.
"""

from __future__ import annotations

from agent_orchestrator.engine.process.launches import ProcessLaunches

__all__ = ["ProcessLaunches"]
