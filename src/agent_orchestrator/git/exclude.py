"""Keeps what we write out of the repository's commits: one line in `.git/info/exclude`, once."""

from __future__ import annotations

import re
from pathlib import Path

from agent_orchestrator.git.locate import common_dir, top_level

MARK = "# agent-orchestrator: state of runs, never committed"


def exclude(home: Path, patterns: tuple[str, ...]) -> None:
    """Adds the patterns that are not there yet; does nothing outside a repository.

    They are for this folder alone: a project may well have a `src/state/` of its own.
    """
    top = top_level(home)
    common = common_dir(top) if top else None
    if top is None or common is None:
        return
    below = "".join(f"{_literal(part)}/" for part in home.relative_to(top).parts)
    patterns = tuple(f"/{below}{pattern}" for pattern in patterns)
    file = common / "info" / "exclude"
    present = file.read_text("utf-8", "replace").splitlines() if file.exists() else []
    missing = [pattern for pattern in patterns if pattern not in present]
    if not missing:
        return
    file.parent.mkdir(parents=True, exist_ok=True)
    head = [] if MARK in present else [MARK]
    lead = "\n" if present and present[-1] else ""
    with file.open("a", encoding="utf-8") as out:
        out.write(lead + "\n".join([*head, *missing]) + "\n")


def _literal(name: str) -> str:
    return re.sub(r"([*?\[\\])", r"\\\1", name)
