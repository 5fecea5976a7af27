"""Workflows in words and file names."""

from __future__ import annotations

from agent_orchestrator.core.about import About, Command, ForeignState, Schema, SourceFile

ABOUT = About(
    name="workflow",
    state_file=".agents/runs/{run}/run_state.json",
    commands=(
        Command("run", "Run a task, or a workflow.", "run"),
        Command("init", "Write a starter workflow with its prompts.", "init", after="import"),
    ),
    own_tree="give --git-worktree for a tree of its own",
    source=SourceFile("workflow"),
    importable=("run_state.json",),
    foreign=(
        ForeignState(".agents/runs/*/run_state.json", "orc import {folder} --workflow FILE --agent NAME", named_by_run=True),
        ForeignState(".agents/run_state.json", "orc import {folder}/run_state.json --workflow FILE --agent NAME"),
    ),
    schemas=(
        Schema("run-state", "run_state.schema.json", "run_state.json, the state of a workflow run"),
        Schema("workflow", "workflow.schema.json", "a workflow file"),
    ),
)
