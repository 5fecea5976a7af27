"""The folder `coordination/`, which has the files of one team at a time: the unfinished one, or the last.

While a team is unfinished a second one is refused; when a new one starts, the ended one's files are moved to `archive/<run>`
beside them. Nothing is ever overwritten or deleted here.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

import msgspec

from agent_orchestrator import typed
from agent_orchestrator.beneath import LinkInTheWay, move_beneath, open_folder
from agent_orchestrator.bounded import read_bounded
from agent_orchestrator.core.ids import checked_id
from agent_orchestrator.errors import InvalidId, Refused
from agent_orchestrator.git.ownership import list_tracked, put_back
from agent_orchestrator.projections.inspection import EDIT_LIMIT_BYTES
from agent_orchestrator.runs.orchestrator import Orchestrator
from agent_orchestrator.store.port import StoredRun, Which
from agent_orchestrator.systems.team.about import ABOUT
from agent_orchestrator.systems.team.state import BOXES

FOLDER = "coordination"
FILES = ("pm_state.json", "group_status.json", "orchestrator_state.json", *(f"messages/{box}.json" for box in BOXES))
FOREIGN = "foreign"
"""The owner of files that say nothing of their team."""


class _Session(msgspec.Struct):
    session_id: str


def claim_folder(orchestrator: Orchestrator, run: str, *, again: Path | None = None) -> None:
    """Take the files for a team; raise Refused while another one is unfinished.

    A team that had them before, taken up `again` in its home, takes files that do not say whose they are for its own, edited
    or broken.
    """
    home = again or orchestrator.settings.home
    refuse_unfinished(orchestrator, run, home)
    folder = home / FOLDER
    owner = owner_of(home, folder)
    if owner is not None and owner != run and not (again is not None and owner == FOREIGN):
        _archive(home, folder, owner)


def refuse_unfinished(orchestrator: Orchestrator, run: str, home: Path | None = None) -> None:
    """Raise Refused while another team is unfinished in a home; a fork has one of its own."""
    place = str(home or orchestrator.settings.home)
    for other in orchestrator.runs(Which(system=ABOUT.name, ended=False)):
        if other.id != run and other.context.home == place:
            way = f"continue with `orc resume {other.id}`, or end it with `orc abort {other.id}`"
            raise Refused(
                why=f"Team {other.id} is unfinished ({other.summary.status}), and a repository has one at a time; {way}."
            )


def owner_of(home: Path, folder: Path) -> str | None:
    """Return the team that the files in a folder below its home are of; None when there are none."""
    if not any((folder / name).exists() for name in FILES):
        return None
    try:
        content = read_bounded(folder / "orchestrator_state.json", EDIT_LIMIT_BYTES, root=home)
        return checked_id(typed.decode(content, _Session).session_id, "The session")
    except (OSError, msgspec.DecodeError, InvalidId):
        return FOREIGN


def _archive(home: Path, folder: Path, owner: str) -> Path:
    place, number = folder / "archive" / owner, 1
    while place.exists():
        number += 1
        place = folder / "archive" / f"{owner}-{number}"
    tracked = list_tracked(folder.parent, [f"{folder.name}/{name}" for name in FILES])
    for name in FILES:
        # A file that somebody committed and no team wrote is his own.
        if (folder / name).exists() and not (owner == FOREIGN and f"{folder.name}/{name}" in tracked):
            _move(home, folder / name, place / name)
    # Whoever committed a file of this name gets it back: it would be missing from the working tree.
    put_back(folder.parent, tracked)
    with contextlib.suppress(OSError), open_folder(home, folder) as opened:  # Something else may lie there.
        os.rmdir("messages", dir_fd=opened)
    return place


def _move(home: Path, file: Path, target: Path) -> None:
    try:
        move_beneath(home, file, target)
    except LinkInTheWay as error:
        raise Refused(why=f"{file} cannot be moved to {target.parent}: {error.filename} is a link; remove it.") from None


def archives_of(run: StoredRun) -> list[Path]:
    """Return the folders that hold nothing but a team's files; those that are still in use are archived first."""
    home = Path(run.context.home)
    folder = home / FOLDER
    if owner_of(home, folder) == run.id:
        _archive(home, folder, run.id)
    archives = sorted((folder / "archive").glob(f"{run.id}*"))
    return [archive for archive in archives if owner_of(home, archive) == run.id]
