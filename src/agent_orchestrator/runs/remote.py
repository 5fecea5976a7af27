"""The remote that a run's work is published to, by the user's own git and `gh`."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from agent_orchestrator.errors import Refused, Unavailable
from agent_orchestrator.git.forge import Forge
from agent_orchestrator.git.remotes import fetch_url, list_remotes, repository_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from agent_orchestrator.runs.orchestrator import Orchestrator


def pick_remote(repo: Path, given: str | None) -> str:
    """Return the remote that is meant: the one given, else origin, else the first; raise where there is none."""
    known = list_remotes(repo)
    if given is not None and given not in known:
        raise Refused(why=f"There is no remote {given} in {repo}; there are {', '.join(known) or 'none'}.")
    if not known:
        raise Unavailable(detail=f"{repo} has no remote to push to; add one with `git remote add origin URL`.")
    return given or ("origin" if "origin" in known else known[0])


def find_forge(repo: Path, remote: str, environ: Mapping[str, str]) -> Forge:
    """Return the server behind a remote."""
    return Forge(repo, repository_of(fetch_url(repo, remote), with_port=True), environ)


def refuse_unpublishable(orchestrator: Orchestrator) -> None:
    """Raise Unavailable where no pull request could ever be opened: better now than after hours of work."""
    pick_remote(orchestrator.settings.home, None)
    if shutil.which("gh", path=orchestrator.settings.environ.get("PATH")) is None:
        raise Unavailable(detail="gh is not installed, or not on the PATH; pull requests are opened with it.")
