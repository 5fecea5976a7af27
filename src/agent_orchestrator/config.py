"""The only reader of the environment: turns it, with the repository given, into frozen settings.

Nothing else may look at environment variables, so that what reaches an agent is decided in one place.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import msgspec

from agent_orchestrator.errors import MissingPath, UsageError
from agent_orchestrator.git.locate import store_folder, top_level

PASSED_ON = frozenset(
    (
        *("PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "TZ", "TMPDIR", "TERM", "COLORTERM"),
        *("SSH_AUTH_SOCK", "VIRTUAL_ENV", "XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME", "XDG_RUNTIME_DIR"),
        *("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy"),
        *("SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE"),
    )
)
"""What a program needs to find its tools and its home. Keys and tokens are passed only when asked for."""

SECRET_WORDS = ("KEY", "TOKEN", "SECRET", "PASSWORD", "PASSWD", "CREDENTIAL")
SECRET_LENGTH_MIN = 8


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """Where we work and what we know of the environment."""

    home: Path
    """The repository."""
    folder: Path
    """Its store, locks and launches."""
    environ: Mapping[str, str]

    def child_env(self, names: tuple[str, ...] = ()) -> dict[str, str]:
        """The environment children start from: a short list, locale settings, and the names asked for."""
        return {
            name: value for name, value in self.environ.items() if name in PASSED_ON or name.startswith("LC_") or name in names
        }

    def secrets(self, extra: Mapping[str, str] | None = None) -> tuple[str, ...]:
        """Values that must not be stored: of variables whose name says that they are secret."""
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
    """Settings for a repository; without one, for the repository around the current directory."""
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
    return Settings(home=home, folder=store_folder(home), environ=dict(os.environ if environ is None else environ))


def is_debugging(environ: Mapping[str, str] | None = None) -> bool:
    """Whether ORC_DEBUG asks for tracebacks."""
    return (os.environ if environ is None else environ).get("ORC_DEBUG", "") not in ("", "0")
