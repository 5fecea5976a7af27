"""Runs of phases in words and file names."""

from __future__ import annotations

from agent_orchestrator.core.about import About, Command, ForeignState, Schema, SourceFile

ABOUT = About(
    name="phases",
    state_file=".claude/agent-state.json",
    commands=(Command("phases", "Execute a task document, phase by phase."),),
    unit="task",
    source=SourceFile("task-document", ".md"),
    importable=("agent-state.json",),
    foreign=(ForeignState(".claude/agent-state.json", "orc import {folder}/agent-state.json --document FILE --agent NAME"),),
    schemas=(Schema("agent-state", "agent_state.schema.json", "agent-state.json, the state of a run of phases"),),
)
