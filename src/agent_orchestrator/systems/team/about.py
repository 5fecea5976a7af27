"""Teams in words and file names."""

from __future__ import annotations

from agent_orchestrator.core.about import About, Command, ForeignState, Schema

_FILES = ("pm_state", "group_status", "orchestrator_state")
_MESSAGES = ("messages/dev_to_qa", "messages/qa_to_techlead", "messages/techlead_to_dev")

ABOUT = About(
    name="team",
    state_file="coordination/orchestrator_state.json",
    commands=(Command("team", "Let a team of agents build what is required."),),
    noun="team",
    unit="group",
    answer="orc team answer 'TEXT'",
    importable=tuple(f"{name}.json" for name in _FILES),
    foreign=tuple(ForeignState(f"coordination/{name}.json", "orc import {folder} --agent NAME") for name in _FILES),
    schemas=tuple(
        Schema(f"team-{name.replace('_', '-')}", f"{name}.schema.json", f"coordination/{path}.json, of a team")
        for path in (*_FILES, *_MESSAGES)
        for name in [path.rpartition("/")[2]]
    ),
)
