"""Loops in words and file names."""

from __future__ import annotations

from agent_orchestrator.core.about import About, Command, ForeignState, Schema

ABOUT = About(
    name="loop",
    state_file=".aiwg/ralph/loops/{run}/state.json",
    commands=(Command("loop", "Iterate until a check passes."),),
    noun="loop",
    unit="iteration",
    iterates=True,
    resume="orc loop resume",
    explain="orc loop status",
    retry="orc loop resume",
    raise_limit="--max-iterations N",
    own_tree="give --git-worktree for a tree of its own",
    importable=("state.json", "current-loop.json", "loop-state.json", "registry.json"),
    foreign=(
        ForeignState(".aiwg/ralph/current-loop.json", "orc import {folder}"),
        ForeignState(".aiwg/ralph/loops/*/state.json", "orc import {folder}", named_by_run=True),
    ),
    resume_imported="orc loop resume {run} --agent NAME",  # its state file does not say who worked
    schemas=(Schema("loop-state", "loop_state.schema.json", "state.json, the state of a loop"),),
)
