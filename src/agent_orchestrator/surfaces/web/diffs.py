"""The changes of a run as data: the files, and the diff as text; read by a thread of its own, because git may take its time."""

from __future__ import annotations

from typing import Any

import msgspec

from agent_orchestrator.git.diffs import read_diff
from agent_orchestrator.runs.changes import ChangeSize, find_changes, find_judged_changes
from agent_orchestrator.runs.orchestrator import Orchestrator
from agent_orchestrator.surfaces.web.repositories import find_run

DIFF_CHARS = 2_000_000


def show_diff(orchestrator: Orchestrator, run_id: str, unit: str | None) -> dict[str, Any]:
    """Return the changes of a unit, or of the whole run where the unit has none of its own; raise Refused and GitFailed."""
    run = find_run(orchestrator, run_id)
    found = find_changes(orchestrator, run) if unit is None else find_judged_changes(orchestrator, run, unit)
    changes = []
    left = DIFF_CHARS
    for one in found:
        files, trees = one.files(), one.difference
        size = ChangeSize.of(files)
        text = read_diff(trees.repo, trees.old, trees.new, left)
        left = max(0, left - len(text))
        changes.append(
            {
                "unit": one.work.unit,
                "branch": one.work.branch,
                "folder": one.work.folder,
                "into": one.work.into,
                "old": trees.old,
                "new": trees.new,
                "files": [msgspec.to_builtins(file) for file in files],
                "added": size.added,
                "removed": size.removed,
                "text": text,
                "cut": text.endswith("\n… (cut)"),
            }
        )
    return {"changes": changes}
