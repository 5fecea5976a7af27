"""The only reader of the environment and of configuration files: turns them into frozen settings.

Nothing else may look at environment variables, so that what reaches an agent is decided in one place. A key that is not
known is an error: a setting that is misspelled must not be silently ignored.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from agent_orchestrator.core.ids import checked_text
from agent_orchestrator.errors import MissingPath, UsageError
from agent_orchestrator.git.repository import store_folder, top_level

if TYPE_CHECKING:
    from agent_orchestrator.agents.options import AgentSettings
    from agent_orchestrator.core.budget import Budget

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

    def secrets(self, extra: Mapping[str, str] | None = None) -> tuple[str, ...]:
        """Return values that must not be stored: of variables whose name says that they are secret."""
        known = {**self.environ, **(extra or {})}
        return tuple(
            sorted(
                {
                    value
                    for name, value in known.items()
                    if len(value) >= SECRET_LENGTH_MIN and any(word in name.upper() for word in SECRET_WORDS)
                },
                key=len,
                reverse=True,
            )
        )


def load_settings(repo: str | None = None, environ: Mapping[str, str] | None = None) -> Settings:
    """Load the settings for a repository; without one, for the repository around the current directory."""
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
    return Settings(home=home, folder=store_folder(home), environ=dict(os.environ if environ is None else environ))


REPO_FILE = ".orc.toml"
"""In the repository; what it says wins over the file in the user's configuration folder, key by key."""


def config_files(settings: Settings) -> tuple[Path, ...]:
    """Return the configuration files, the weakest first."""
    environ = settings.environ
    folder = environ.get("XDG_CONFIG_HOME") or (f"{environ['HOME']}/.config" if environ.get("HOME") else "")
    users = (Path(folder, "orc", "config.toml"),) if folder else ()
    return (*users, settings.home / REPO_FILE)


def load_agents(settings: Settings) -> dict[str, AgentSettings]:
    """Load the `[agents.NAME]` tables of all configuration files."""
    from agent_orchestrator.agents.options import read_settings

    tables: dict[str, dict[str, object]] = {}
    for file in config_files(settings):
        for name, table in _read_agents(file).items():
            read_settings(table, f"{file}: [agents.{name}]")
            tables[name] = {**tables.get(name, {}), **table}
    return {name: read_settings(table, f"[agents.{name}]") for name, table in tables.items()}


def load_budget(settings: Settings) -> Budget:
    """Load the `[budget]` tables of all configuration files."""
    from agent_orchestrator.core.budget import Budget, read_budget

    budget = Budget()
    for file in config_files(settings):
        table = _read_tables(file).get("budget", {})
        if not isinstance(table, dict):
            raise UsageError(detail=f"{file}: budget must be a table, [budget].")
        budget = budget.override(read_budget(table, f"{file}: [budget]"))
    return budget


def load_publish(settings: Settings) -> bool | None:
    """Load the key `publish` of the configuration files; None if none of them has it."""
    wanted: bool | None = None
    for file in config_files(settings):
        said = _read_tables(file).get("publish")
        if said is not None and not isinstance(said, bool):
            raise UsageError(detail=f"{file}: publish is {said!r}; it must be true or false.")
        wanted = wanted if said is None else said
    return wanted


def _read_agents(file: Path) -> dict[str, dict[str, object]]:
    agents = _read_tables(file).get("agents", {})
    if not isinstance(agents, dict) or not all(isinstance(table, dict) for table in agents.values()):
        raise UsageError(detail=f"{file}: agents must be tables, as in [agents.claude].")
    return agents


def _read_tables(file: Path) -> dict[str, object]:
    import tomllib

    try:
        document = tomllib.loads(file.read_text("utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except OSError as error:
        raise UsageError(detail=f"The configuration {file} cannot be read: {error.strerror}.") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(detail=f"The configuration {file} is not TOML: {error}.") from None
    foreign = [key for key in document if key not in ("agents", "budget", "publish")]
    if foreign:
        raise UsageError(detail=f"{file}: unknown key {foreign[0]}; there are publish, [agents.NAME] and [budget].")
    return document


def is_debugging(environ: Mapping[str, str] | None = None) -> bool:
    """Return True if ORC_DEBUG asks for tracebacks."""
    return (os.environ if environ is None else environ).get("ORC_DEBUG", "") not in ("", "0")
