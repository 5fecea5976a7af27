"""Pull requests, through the user's own `gh`: found by the mark in their text, and made where there is none.

`gh api` speaks REST, which is the same for github.com and for servers of one's own. Nothing is created before it was looked
for; GitHub itself refuses a second open pull request of one branch.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TypeVar

import msgspec

from agent_orchestrator.errors import Unavailable
from agent_orchestrator.git.command import run_program

LISTED = 100

Some = TypeVar("Some")


class PullRequest(msgspec.Struct, frozen=True):
    """A pull request as the server tells it."""

    html_url: str
    state: str
    body: str | None = None
    merged_at: str | None = None


class NewPullRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A pull request to be made."""

    title: str
    head: str
    base: str
    body: str
    draft: bool = False


class Forge(msgspec.Struct, frozen=True):
    """The repository on a server, as HOST/OWNER/NAME; '' for the one that `gh` finds by the remotes."""

    workdir: Path
    repository: str
    environ: Mapping[str, str]

    def find(self, branch: str, mark: str) -> PullRequest | None:
        """Return the pull request with the mark: an open one, else the newest; raises Unavailable."""
        owner = self.repository.split("/")[1] if self.repository else "{owner}"
        query = f"?head={owner}:{branch}&state=all&per_page={LISTED}"
        found = self._ask(list[PullRequest], query)
        ours = [one for one in found if mark in (one.body or "")]
        return next((one for one in ours if one.state == "open"), ours[0] if ours else None)

    def create(self, new: NewPullRequest) -> PullRequest:
        """Make a pull request; raises Unavailable."""
        return self._ask(PullRequest, "", given=msgspec.json.encode(new).decode())

    def _ask(self, kind: type[Some], query: str, given: str = "") -> Some:
        host, _, name = self.repository.partition("/")
        environ = {**self.environ, "GH_HOST": host} if host else self.environ  # --hostname knows no ports
        how = ("--method", "POST", "--input", "-") if given else ()
        said = run_program(self.workdir, ("gh", "api", *how, f"repos/{name or '{owner}/{repo}'}/pulls{query}"), environ, given)
        try:
            return msgspec.json.decode(said, type=kind)
        except msgspec.DecodeError as error:
            raise Unavailable(detail=f"gh api answered with something else than pull requests: {error}") from None
