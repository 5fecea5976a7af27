"""Errands in words and file names."""

from __future__ import annotations

from agent_orchestrator.core.about import About, Command

ABOUT = About(
    name="errand",
    state_file=".agents/errands/{run}.json",
    commands=(Command("errand", "Run one command."),),
    noun="errand",
    unit="command",
)
