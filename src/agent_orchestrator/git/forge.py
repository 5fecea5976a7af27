"""The repository on a server, through the user's own `gh`: its pull requests, found by the mark in their text, and statuses.

`gh api` speaks REST, which is the same for github.com and for servers of one's own. Nothing is created before it was looked
for; GitHub itself refuses a second open pull request of one branch.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from agent_orchestrator import typed
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


class CommitStatus(msgspec.Struct, frozen=True, kw_only=True):
    """A verdict that the server shows at a commit."""

    state: str
    """success or failure."""
    context: str
    description: str


class Forge(msgspec.Struct, frozen=True):
    """The repository on a server, as HOST/OWNER/NAME; '' for the one that `gh` finds by the remotes."""

    workdir: Path
    repository: str
    environ: Mapping[str, str]
    fork_owner: str = ""
    """The owner of the fork that branches are pushed to; '' where that is the repository itself."""

    def find(self, branch: str, mark: str) -> PullRequest | None:
        """Return the pull request with the mark: an open one, else the newest; raises Unavailable."""
        owner = self.fork_owner or (self.repository.split("/")[1] if self.repository else "{owner}")
        found = self.ask(list[PullRequest], f"pulls?head={owner}:{branch}&state=all&per_page={LISTED}")
        ours = [one for one in found if mark in (one.body or "")]
        return next((one for one in ours if one.state == "open"), ours[0] if ours else None)

    def create(self, new: NewPullRequest) -> PullRequest:
        """Make a pull request; raises Unavailable."""
        if self.fork_owner:
            new = msgspec.structs.replace(new, head=f"{self.fork_owner}:{new.head}")
        return self.ask(PullRequest, "pulls", new)

    def set_status(self, commit: str, status: CommitStatus) -> None:
        """Show a status at a commit; the newest of a context counts. Raises Unavailable."""
        self.ask(dict[str, Any], f"statuses/{commit}", status)

    def ask(self, kind: type[Some], path: str, given: object = None, method: str = "") -> Some:
        """Ask the server about the repository, or tell it something; raises Unavailable."""
        name = self.repository.partition("/")[2] or "{owner}/{repo}"
        return self.call(kind, f"repos/{name}/{path}", given, method)

    def call(self, kind: type[Some], path: str, given: object = None, method: str = "") -> Some:
        """Call the server's API; raises Unavailable."""
        host = self.repository.partition("/")[0]
        environ = {**self.environ, "GH_HOST": host} if host else self.environ  # --hostname knows no ports
        how = ("--method", method or "GET") if given is None else ("--method", method or "POST", "--input", "-")
        body = msgspec.json.encode(given).decode() if given is not None else ""
        said = run_program(self.workdir, ("gh", "api", *how, path), environ, body)
        try:
            return typed.decode(said, kind)
        except msgspec.DecodeError as error:
            raise Unavailable(detail=f"gh api {path.partition('?')[0]} gave an answer that makes no sense: {error}") from None
