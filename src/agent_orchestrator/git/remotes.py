"""Remotes: which there are, where a push goes, and whether that is still where a person said that it may go."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from agent_orchestrator.errors import Unavailable
from agent_orchestrator.git.run import git

HIDDEN = "***"


def remotes(workdir: Path) -> list[str]:
    """The names of the repository's remotes."""
    return git(workdir, "remote").split()


def push_urls(workdir: Path, remote: str) -> list[str]:
    """Where a push to a remote goes, rewritten as `insteadOf` says; the addresses may hold credentials."""
    return git(workdir, "remote", "get-url", "--push", "--all", remote).splitlines()


def address_of(urls: Iterable[str]) -> str:
    """All addresses of a remote as one text without credentials."""
    return ", ".join(without_credentials(url) for url in urls)


def refuse_moved(workdir: Path, remote: str, address: str) -> None:
    """Raises Unavailable when a remote is not at this address, as `address_of` has it: anybody may change its name's meaning."""
    found = address_of(push_urls(workdir, remote))
    if found != address:
        raise Unavailable(detail=f"the remote {remote} is at {found} now; nothing is sent there, only {address} was agreed to")


def without_credentials(url: str) -> str:
    """An address for people: a password or token in it is hidden, and so is a query, which may hold one."""
    if "://" not in url:
        return url
    scheme, _, rest = url.partition("://")
    place, slash, path = rest.partition("/")
    user, at, host = place.rpartition("@")
    shown = user.partition(":")[0] if scheme.endswith("ssh") else HIDDEN
    path = re.sub(r"[?#].*", f"?{HIDDEN}", path)
    return f"{scheme}://{shown if at else ''}{at}{host}{slash}{path}"
