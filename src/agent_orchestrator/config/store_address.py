"""The store that a repository's runs are kept in: its own file, or a database that several machines share."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import msgspec
from msgspec import Meta

from agent_orchestrator.bounded import read_bounded
from agent_orchestrator.errors import InvalidValue, Unavailable, UsageError

if TYPE_CHECKING:
    from agent_orchestrator.config import Settings

OWN = "sqlite"
"""The repository's own store, which is the default, said in so many words."""
STORE_VARIABLE, REPOSITORY_VARIABLE, ROOT_VARIABLE = "ORC_STORE", "ORC_STORE_REPOSITORY", "ORC_STORE_ROOT"
ROOT = "/var/tmp/orc"
"""The folder in which workers keep the repositories of runs, where nobody names another."""
STORE_FLAG = "--store"
SCHEMES = ("postgresql", "postgres")
EXPECTED = f"postgresql://HOST/DATABASE, or {OWN} for the repository's own file"
NAME_LENGTH_MAX = 400
NAME_FILE = "repository"
"""In a repository's folder: the name that its first run was kept under, so that another remote does not hide the runs."""


class StoreTable(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """`[store]`: where runs are kept."""

    url: Annotated[str | None, Meta(description="As --store: postgresql://HOST/DATABASE without a password, or sqlite.")] = None
    repository: Annotated[
        str | None, Meta(description="The name that all machines know this repository by; without it, that of its remote.")
    ] = None
    root: Annotated[
        str | None, Meta(description="As --root of orc worker: where workers keep repositories; the same on every host.")
    ] = None


class StoreAddress(msgspec.Struct, frozen=True, kw_only=True):
    """A database, and the name of the repository in it."""

    url: str
    repository: str
    configured: bool = True
    """False if nobody gave the name: it is that of the first run here, or else that of the remote."""

    def __str__(self) -> str:
        return hide_password(self.url)


def check_store_url(value: object, what: str, *, secret: bool = False) -> None:
    """Raise InvalidValue for what is no store, and, unless the place is a secret one, for a password in it."""
    if value == OWN:
        return
    parts = _split(value)
    if parts is None or parts.scheme not in SCHEMES or not parts.names_something:
        shown = hide_password(value) if isinstance(value, str) else value
        raise InvalidValue(what=what, value=shown, expected=EXPECTED)
    if not secret and parts.password:
        detail = f"{what} has a password in it, which others could read; say it in PGPASSWORD, ~/.pgpass or a service file."
        raise UsageError(detail=detail)


def hide_password(url: str) -> str:
    """Return an address for people."""
    return re.sub(r"(password=)[^&#]*", r"\1***", re.sub(r"(://[^/?#@]*?):[^/?#]*@", r"\1:***@", url))


def find_store(settings: Settings) -> StoreAddress | None:
    """Return the database that a variable (a flag is one by now) or a file names; None for the repository's own store."""
    url, name = settings.environ.get(STORE_VARIABLE, ""), settings.environ.get(REPOSITORY_VARIABLE, "")
    if url:
        check_store_url(url, STORE_VARIABLE, secret=True)
    if url != OWN and not (url and name):
        url, name = _read_files(settings, url, name)
    if url in ("", OWN):
        return None
    if name:
        return StoreAddress(url=url, repository=checked_name(name))
    return StoreAddress(url=url, repository=kept_name(settings) or name_repository(settings.home), configured=False)


def kept_name(settings: Settings) -> str:
    """Return the name that the first run of a repository was kept under; '' while there was none."""
    file = settings.folder / NAME_FILE
    try:
        content = read_bounded(file, NAME_LENGTH_MAX * 4, root=settings.folder)
    except FileNotFoundError:
        return ""
    except OSError as error:
        raise Unavailable(detail=f"{file} cannot be read ({error.strerror}): move away what stands there.") from error
    return checked_name(content.decode(errors="replace").removesuffix("\n"), f"The name in {file}")


def check_root(value: object, what: str) -> Path:
    """Return a root; raise InvalidValue for what cannot be the same place on every host."""
    if not isinstance(value, str) or not value.startswith("/") or not value.isprintable():
        raise InvalidValue(what=what, value=value, expected="an absolute path, the same on every host")
    return Path(value)


def _read_files(settings: Settings, url: str, name: str) -> tuple[str, str]:
    """Add what the configuration files say; most have no word about it, and reading them is not free."""
    from agent_orchestrator.config import config_files

    if not any(_mentions(path) for path in config_files(settings)):
        return url, name
    from agent_orchestrator.config.defaults import load_store_table

    table = load_store_table(settings)
    return url or table.url or "", name or table.repository or ""


def _mentions(path: Path) -> bool:
    try:
        return b"store" in path.read_bytes()
    except OSError:
        return False


def name_repository(home: Path) -> str:
    """Return the name of a repository on every machine: that of its remote; without one it is this machine's alone."""
    from agent_orchestrator.git.remotes import fetch_url, hide_credentials, list_remotes, repository_of

    known = list_remotes(home) if (home / ".git").exists() else []
    if "origin" not in known:
        return f"{os.uname().nodename}:{home}"
    url = fetch_url(home, "origin")
    return repository_of(url, with_port=True) or hide_credentials(url)


def checked_name(value: object, what: str = "The name of the repository in the store") -> str:
    """Return a name; raise InvalidValue for what cannot be one."""
    if not isinstance(value, str) or not value.strip() or not value.isprintable() or len(value) > NAME_LENGTH_MAX:
        raise InvalidValue(what=what, value=value, expected="a name on one line, as in github.com/you/shop")
    return value


class _Parts(NamedTuple):
    scheme: str
    names_something: bool
    password: str


def _split(value: object) -> _Parts | None:
    from urllib.parse import parse_qs, unquote, urlsplit  # costly, and most repositories have their own store

    if not isinstance(value, str) or not value.isascii() or " " in value:
        return None
    try:
        parts = urlsplit(value)
        asked = parse_qs(parts.query)
        password = unquote(parts.password or "") or asked.get("password", [""])[0]
    except ValueError:
        return None
    return _Parts(parts.scheme, bool(parts.netloc or asked), password)


def find_password(url: str) -> str:
    """Return the password in an address; '' for none."""
    parts = _split(url)
    return parts.password if parts is not None else ""
