"""The environment of our git: what a person's own git would see of it, handed over by whoever reads it.

Without it git finds neither home nor configuration: a program that uses this package below its settings gets that.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec

PATH = "/usr/local/bin:/usr/bin:/bin:/opt/homebrew/bin"

ALWAYS = {"LC_ALL": "C", "GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0", "GIT_EDITOR": "false"}

_WANTED = ("GNUPGHOME", "GPG_TTY", "GIT_SSH", "GIT_SSH_COMMAND", "GIT_SSH_VARIANT", "GIT_EXEC_PATH", "LD_LIBRARY_PATH", "EMAIL")
_WANTED_BEGIN = ("GIT_CONFIG_", "GIT_AUTHOR_", "GIT_COMMITTER_", "GIT_SSL_")


class GitEnvironment(msgspec.Struct, frozen=True, kw_only=True):
    """The variables that our git starts from, and the repositories whose own configuration may name programs."""

    variables: Mapping[str, str] = {}
    is_trusted: Callable[[Path], bool] = lambda _: False


_current = GitEnvironment()


def is_git_variable(name: str) -> bool:
    """Return True if a variable says something about a person's git, and nothing about one repository."""
    return name in _WANTED or name.startswith(_WANTED_BEGIN)


def use_environment(environment: GitEnvironment) -> None:
    """Let every git of this process start from this environment."""
    global _current
    _current = environment


def current_environment() -> GitEnvironment:
    """Return the environment that every git of this process starts from."""
    return _current


def start_variables(top: Path | None, trusted: bool) -> dict[str, str]:
    """Return the variables of one git; programs that lie in the tree itself, where agents write, are not on its path."""
    given = dict(_current.variables)
    home = str(top) if top is not None and not trusted else None
    places = [one for one in given.get("PATH", PATH).split(":") if one.startswith("/") and not _is_below(one, home)]
    return {**given, "PATH": ":".join(places) or PATH, **ALWAYS}


def scratch_folder() -> str:
    """Return the folder for temporary files: never the current one, which Python takes where no other can be written."""
    named = _current.variables.get("TMPDIR", "")
    return named if named and Path(named).is_dir() else "/tmp"


def files_now_ns() -> int:
    """Return the time that the system gives what is made now, a pipe as well as a file: up to a tick behind its clock."""
    ends = os.pipe()
    try:
        return os.fstat(ends[0]).st_ctime_ns
    finally:
        for end in ends:
            os.close(end)


def _is_below(place: str, home: str | None) -> bool:
    return home is not None and (place == home or place.startswith(f"{home}/"))
