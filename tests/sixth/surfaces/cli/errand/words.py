"""An errand's words: one event has a phrase, and the closing line says what ran."""

from __future__ import annotations

from typing import Any

from agent_orchestrator.surfaces.cli.words import Phrase, Words
from agent_orchestrator.systems.errand.system import CommandStarted  # type: ignore[import-not-found]  # put there by orc.py


def closing_lines(state: Any) -> list[str]:
    return [f"command: {state.spec.command}"]


WORDS = Words(phrases={CommandStarted: lambda event: Phrase("command", "is run")}, closing_lines=closing_lines)
