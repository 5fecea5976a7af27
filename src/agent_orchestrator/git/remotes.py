"""Remotes: their names, their push addresses, and the check that these are still the ones a person agreed to."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from agent_orchestrator.errors import Unavailable
from agent_orchestrator.git.command import git

HIDDEN = "***"


def list_remotes(workdir: Path) -> list[str]:
    """Return the names of the repository's remotes."""
    return git(workdir, "remote").split()


def list_push_urls(workdir: Path, remote: str) -> list[str]:
    """Return the push addresses of a remote, rewritten as `insteadOf` says; they may hold credentials."""
    return git(workdir, "remote", "get-url", "--push", "--all", remote).splitlines()


def join_addresses(urls: Iterable[str]) -> str:
    """Return all addresses of a remote as one text without credentials."""
    return ", ".join(hide_credentials(url) for url in urls)


def refuse_moved(workdir: Path, remote: str, address: str) -> None:
    """Raise Unavailable when a remote is not at this joined address: anybody may point its name elsewhere."""
    found = join_addresses(list_push_urls(workdir, remote))
    if found != address:
        raise Unavailable(detail=f"the remote {remote} is at {found} now; nothing is sent there, only {address} was agreed to")


def hide_credentials(url: str) -> str:
    """Return an address for people: a password or token in it is hidden, and so is a query, which may hold one."""
    if "://" not in url:
        return url
    scheme, _, rest = url.partition("://")
    place, slash, path = rest.partition("/")
    user, at, host = place.rpartition("@")
    shown = user.partition(":")[0] if scheme.endswith("ssh") else HIDDEN
    path = re.sub(r"[?#].*", f"?{HIDDEN}", path)
    return f"{scheme}://{shown if at else ''}{at}{host}{slash}{path}"
