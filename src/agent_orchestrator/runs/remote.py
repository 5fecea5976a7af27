"""The remote that a run's work is published to, by the user's own git and `gh`."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from agent_orchestrator.errors import Refused, Unavailable
from agent_orchestrator.git.forge import Forge
from agent_orchestrator.git.remotes import fetch_url, hide_credentials, list_remotes, repository_of

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


def find_forge(repo: Path, remote: str, environ: Mapping[str, str], upstream: str = "") -> Forge:
    """Return the repository behind a remote; with another one as its upstream, that one, of which the remote is a fork."""
    target = repository_of(fetch_url(repo, upstream or remote), with_port=True)
    if upstream in ("", remote):
        return Forge(repo, target, environ)
    pushed = repository_of(fetch_url(repo, remote), with_port=True)
    for name, found in ((upstream, target), (remote, pushed)):
        if not found:
            where = hide_credentials(fetch_url(repo, name))
            raise Refused(why=f"The remote {name} is at {where}, which names no owner on a server: a fork and its upstream do.")
    return Forge(repo, target, environ, fork_owner=pushed.split("/")[1])


def refuse_unpublishable(orchestrator: Orchestrator) -> None:
    """Raise Unavailable where no pull request could ever be opened: better now than after hours of work."""
    pick_remote(orchestrator.settings.home, None)
    if shutil.which("gh", path=orchestrator.settings.environ.get("PATH")) is None:
        raise Unavailable(detail="gh is not installed, or not on the PATH; pull requests are opened with it.")
