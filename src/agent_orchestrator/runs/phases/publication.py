"""The place that a run of phases publishes to, if it does: the remote that it pushes to, and the repository that `gh` writes to.

Nothing leaves the machine unless a person asked for it, with a flag or in the configuration; what is shown of an address
holds no credentials.
"""

from __future__ import annotations

import shutil

from agent_orchestrator.config import Settings
from agent_orchestrator.config.defaults import load_defaults
from agent_orchestrator.errors import Unavailable
from agent_orchestrator.git.remotes import join_addresses, list_push_urls, list_remotes, repository_of
from agent_orchestrator.git.repository import top_level
from agent_orchestrator.systems.phases.spec import Publication


def choose_publication(settings: Settings, flag: bool | None, stored: bool | None = None) -> tuple[Publication | None, str]:
    """Return what a run does from now on, None where that stays as it is, and what a person should know.

    A flag decides; without one the run's own decision stands; where it has none, the configuration decides. Raises
    Unavailable when a flag asks for what cannot be done here.
    """
    wanted = flag if flag is not None or stored is not None else load_defaults(settings).publish
    if wanted is None:
        return None, ""
    if not wanted:
        return Publication(publish=False), ""
    try:
        return find_publication(settings), ""
    except Unavailable as error:
        if flag:
            raise
        return Publication(publish=True), f"publish is set, but nothing can be published: {error}"


def find_publication(settings: Settings) -> Publication:
    """Find where this repository publishes; raises Unavailable when it cannot."""
    home = settings.home
    known = list_remotes(home) if top_level(home) is not None else []
    if not known:
        raise Unavailable(detail=f"{home} has no remote to publish to; add one with `git remote add origin URL`.")
    if shutil.which("gh", path=settings.environ.get("PATH")) is None:
        raise Unavailable(detail="Issues and pull requests are made with `gh`, and there is none on the PATH; install it.")
    remote = "origin" if "origin" in known else known[0]
    urls = list_push_urls(home, remote)
    return Publication(
        publish=True,
        remote=remote,
        address=join_addresses(urls),
        repository=repository_of(urls[0]) if urls else "",
    )
