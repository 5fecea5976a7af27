"""The files that a verification leaves beside the records, as `<bead>-verify.json`: they are of a bead, and no beads."""

from __future__ import annotations

from pathlib import Path

import msgspec

from agent_orchestrator.bounded import read_bounded
from agent_orchestrator.core.limits import REPORT_LIMIT_BYTES
from agent_orchestrator.systems.swarm.records import RESULTS, RUNS

SUFFIX = "-verify.json"


def is_companion(path: str, bead: object) -> bool:
    """Tell a companion by its name and by the `bead` that stands in it; a bead may be called `x-verify` itself."""
    if not path.endswith(SUFFIX):
        return False
    file = Path(path).absolute()
    owner = file.name.removesuffix(SUFFIX)
    if isinstance(bead, str):
        return bead == owner
    state = file.parents[1]
    return any((state / Path(folder).name / f"{owner}.json").exists() for folder in (RUNS, RESULTS))


def find_owner(file: Path) -> str | None:
    """Return the bead that a companion is of; None for any other file."""
    if not file.name.endswith(SUFFIX):
        return None
    try:
        document = msgspec.json.decode(read_bounded(file, REPORT_LIMIT_BYTES, root=file.parent))
    except (OSError, msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        document = None
    bead = document.get("bead") if isinstance(document, dict) else None
    return file.name.removesuffix(SUFFIX) if is_companion(str(file), bead) else None
