"""The only reader of the environment and of configuration files: turns them into frozen settings.

    documents.py   configuration files as keys with values and lines, and their faults
    store_address.py the store that runs are kept in
    subscribers.py who is told what happens, and how each is reached
    keys.py        the keys that there are, their values, and the variables that set them
    trust.py       the keys of a repository's file that count only with the user's word
    walls.py       the same of the wall around agents: stronger is free, weaker is not
    defaults.py    all of them together: agents, budget and the defaults of runs

Nothing else may look at environment variables, so that what reaches an agent is decided in one place. A key that is not
known is an error: a setting that is misspelled must not be silently ignored.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from functools import cache, partial
from pathlib import Path

import msgspec

from agent_orchestrator.config.store_address import STORE_FLAG, STORE_VARIABLE, check_store_url, find_password
from agent_orchestrator.core.ids import checked_text
from agent_orchestrator.errors import MissingPath, UsageError
from agent_orchestrator.git.environment import GitEnvironment, is_git_variable, use_environment
from agent_orchestrator.git.repository import store_folder, top_level

PASSED_ON = frozenset(
    (
        *("PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "TZ", "TMPDIR", "TMUX_TMPDIR", "TERM", "COLORTERM"),
        *("SSH_AUTH_SOCK", "VIRTUAL_ENV", "XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME", "XDG_RUNTIME_DIR"),
        *("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy"),
        *("SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE"),
        "ORC_LAUNCH",
    )
)
"""The variables by which a program finds its tools and its home, and the mark of the launch that we run in, by which its stop
reaches our agents. Keys and tokens are passed when asked for, and an agent's own vendor's to that agent."""

SECRET_WORDS = ("KEY", "TOKEN", "SECRET", "PASSWORD", "PASSWD", "PASSPHRASE", "CREDENTIAL", "CUSTOM_HEADERS")
SECRET_LENGTH_MIN = 8


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """The repository that we work in, and its environment."""

    home: Path
    """The repository."""
    folder: Path
    """Its store, locks and launches."""
    environ: Mapping[str, str]

    def child_env(self, names: tuple[str, ...] = ()) -> dict[str, str]:
        """Return the environment children start from: a short list, locale settings, and the names asked for."""
        return {
            name: value for name, value in self.environ.items() if name in PASSED_ON or name.startswith("LC_") or name in names
        }

    def is_secret(self, name: str, value: str) -> bool:
        """Return True if a value must not be stored: its name says so, or a secret of the environment stands in it."""
        return any(word in name.upper() for word in SECRET_WORDS) or any(secret in value for secret in self.secrets())

    def secrets(self, extra: Mapping[str, str] | None = None, passed: Iterable[str] = ()) -> tuple[str, ...]:
        """Return values that must not be stored: of variables whose name says that they are secret, and of those passed on.

        What somebody passes on to agents by its name is meant for them and for nobody else, unless it is a place on this machine.
        """
        known = {**self.environ, **(extra or {})}
        named = [value for name, value in known.items() if any(word in name.upper() for word in SECRET_WORDS)]
        given = [value for name in passed if (value := self.environ.get(name, "")) and not _is_place(value)]
        store = (find_password(known[STORE_VARIABLE]),) if known.get(STORE_VARIABLE) else ()
        return tuple(
            sorted({value for value in (*named, *given, *store) if len(value) >= SECRET_LENGTH_MIN}, key=len, reverse=True)
        )


_chosen_store: list[str] = []


def choose_store(url: str | None) -> None:
    """Take the store of a command line for all settings that are loaded from now on; None for what is configured."""
    if url is not None:
        check_store_url(url, STORE_FLAG)
    _chosen_store[:] = [] if url is None else [url]


def load_settings(repo: str | None = None, environ: Mapping[str, str] | None = None) -> Settings:
    """Load the settings for a repository; without one, for the repository around the current directory.

    From then on every git of this process sees the person's home and configuration.
    """
    if repo is None:
        here = Path.cwd()
        home = top_level(here) or here
    else:
        home = Path(repo).expanduser()
        if not home.exists():
            raise MissingPath(what="The repository", path=home)
        if not home.is_dir():
            raise UsageError(detail=f"The repository {home} is not a directory; give the folder that holds the project.")
        home = home.resolve()
    checked_text(str(home), "The repository")
    known = dict(os.environ if environ is None else environ)
    if _chosen_store:
        known[STORE_VARIABLE] = _chosen_store[0]
    settings = Settings(home=home, folder=store_folder(home), environ=known)
    names = tuple(name for name in settings.environ if is_git_variable(name))
    use_environment(GitEnvironment(variables=settings.child_env(names), is_trusted=cache(partial(_is_trusted, settings))))
    return settings


REPO_FILE = ".orc.toml"
"""In the repository; what it says wins over the file in the user's configuration folder, key by key."""


def config_files(settings: Settings) -> tuple[Path, ...]:
    """Return the configuration files, the weakest first."""
    environ = settings.environ
    folder = environ.get("XDG_CONFIG_HOME") or (f"{environ['HOME']}/.config" if environ.get("HOME") else "")
    users = (Path(folder, "orc", "config.toml"),) if folder else ()
    return (*users, settings.home / REPO_FILE)


def data_folder(settings: Settings) -> Path | None:
    """Return the folder in which we keep things of the user's that are no configuration; None without a home."""
    environ = settings.environ
    data = environ.get("XDG_DATA_HOME") or (f"{environ['HOME']}/.local/share" if environ.get("HOME") else "")
    return Path(data, "orc") if data else None


def _is_place(value: str) -> bool:
    """Tell whether a value is a path, or a list of them, to something that is there."""
    return value.startswith("/") and "\0" not in value and any(Path(one).exists() for one in value.split(":") if one)


def _is_trusted(settings: Settings, repository: Path) -> bool:
    from agent_orchestrator.config.trust import list_repositories

    return repository.resolve() in list_repositories(settings)


def is_debugging(environ: Mapping[str, str] | None = None) -> bool:
    """Return True if ORC_DEBUG asks for tracebacks."""
    return (os.environ if environ is None else environ).get("ORC_DEBUG", "") not in ("", "0")
