"""Swarms in words and file names."""

from __future__ import annotations

from agent_orchestrator.core.about import About, Command, ForeignState, Schema

ABOUT = About(
    name="swarm",
    state_file="state/runs/{run}.json",
    commands=(Command("swarm", "Dispatch beads to agents."),),
    unit="bead",
    explain="orc swarm status",
    retry="orc swarm retry",
    own_tree="give --branch for a worktree of its own",
    shares_tree=True,
    foreign=(ForeignState("state/runs/*.json", "orc import state"),),
    resume_imported="orc swarm retry {run}",  # its records are of the past
    schemas=(
        Schema("bead-run", "bead_run.schema.json", "state/runs/<bead>.json, an attempt of a bead"),
        Schema("bead-result", "bead_result.schema.json", "state/results/<bead>.json, how an attempt ended"),
    ),
)
