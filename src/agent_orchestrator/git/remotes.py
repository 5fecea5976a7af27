"""Remotes: their names, their push addresses, and the check that these are still the ones a person agreed to."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from urllib.parse import urlsplit

from agent_orchestrator.errors import Unavailable
from agent_orchestrator.git.command import git, run_program
from agent_orchestrator.git.large_files import push_large_files

HIDDEN = "***"

_SHORT_SSH = re.compile(r"(?:[^@/\s]+@)?(?P<host>[^:/\s]+):(?P<path>(?!//)\S+)\Z")
"""git@host:owner/name, as only git writes it."""
_OTHER_NAMES = {"ssh.github.com": "github.com"}


def list_remotes(workdir: Path) -> list[str]:
    """Return the names of the repository's remotes."""
    return git(workdir, "remote").split()


def list_push_urls(workdir: Path, remote: str) -> list[str]:
    """Return the push addresses of a remote, rewritten as `insteadOf` says; they may hold credentials."""
    return git(workdir, "remote", "get-url", "--push", "--all", remote).splitlines()


def fetch_url(workdir: Path, remote: str) -> str:
    """Return the address that a remote is fetched from, as `gh` looks at it."""
    return git(workdir, "remote", "get-url", remote)


def push_branch(workdir: Path, remote: str, branch: str, environ: Mapping[str, str]) -> None:
    """Push a branch and its large files, without force, with the user's own credentials; raises Unavailable with what git said.

    Whoever repeats it after a crash waits for a push that is still going on.
    """
    name = f"refs/heads/{branch}"
    push_large_files(workdir, remote, (name,), environ)
    run_program(workdir, ("git", "push", "--quiet", "--porcelain", remote, f"{name}:{name}"), environ)


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


def repository_of(url: str, *, with_port: bool = False) -> str:
    """HOST/OWNER/NAME as `gh --repo` takes it; '' for an address that is no such repository."""
    short = _SHORT_SSH.match(url) if "://" not in url else None
    try:
        parts = urlsplit(url)
        host, path = (short["host"], short["path"]) if short is not None else (parts.hostname or "", parts.path)
        port = f":{parts.port}" if with_port and parts.scheme == "https" and parts.port is not None else ""
    except ValueError:
        return ""
    names = path.strip("/").removesuffix(".git").split("/")
    host = _OTHER_NAMES.get(host.lower(), host.lower())
    # A host without a dot is a name in somebody's ssh configuration, which only `gh` itself can look up.
    fine = "." in host and len(names) == 2 and all(re.fullmatch(r"[A-Za-z0-9._-]+", name) for name in names)
    return "/".join((f"{host}{port}", *names)) if fine and not Path(url).is_absolute() else ""


def is_place(url: str) -> bool:
    """Tell whether an address is a folder of this machine."""
    return "://" not in url and _SHORT_SSH.match(url) is None
