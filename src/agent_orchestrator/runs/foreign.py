"""State files that another tool left, found by their names: pointed out, never touched, until a run is made of them."""

from __future__ import annotations

from itertools import islice
from pathlib import Path
from typing import NamedTuple

from agent_orchestrator.core.about import ForeignState
from agent_orchestrator.runs.orchestrator import Orchestrator
from agent_orchestrator.systems import SYSTEMS, about

LOOKED_AT = 50
"""Files of a kind at most: somebody with more runs of ours than that knows where the others are."""


class NotImported(NamedTuple):
    """A state file that no run of ours wrote."""

    system: str
    path: str
    """Below the home."""
    command: str
    """The command that makes a run of it."""


def find_foreign(orchestrator: Orchestrator) -> list[NotImported]:
    """Return the state files of other tools, at most one for each mode; costs a look at each name, and reads none."""
    found = []
    home = orchestrator.settings.home
    for system in SYSTEMS:
        for kind in about(system).foreign:
            looked_at = islice(home.glob(kind.path), LOOKED_AT)
            path = next((one for one in looked_at if not _is_ours(orchestrator, system, kind, one)), None)
            if path is not None:
                folder = path.parent.relative_to(home)
                found.append(NotImported(system, str(folder / path.name), kind.command.format(folder=folder)))
                break
    return found


def _is_ours(orchestrator: Orchestrator, system: str, kind: ForeignState, path: Path) -> bool:
    """Return True for the file of a run that is known, or, where files do not name theirs, if any of the mode is."""
    if kind.named_by_run:
        return orchestrator.known(path.parent.name) is not None
    return next(orchestrator.scan(system), None) is not None
