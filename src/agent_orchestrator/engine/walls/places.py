"""The places that a wall opens, closes and hides for one launch.

Read-only is the rule. Writable are the working tree, the launch's own folder, what the agent's client keeps of its own, and
what the user names. Hidden are the journal and the launches of others, and the places where people keep secrets.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterable, Iterator, Mapping
from enum import StrEnum
from pathlib import Path

import msgspec

from agent_orchestrator.core.sandbox import Sandbox

SECRETS = (
    *(".ssh", ".gnupg", ".aws", ".azure", ".kube", ".docker", ".password-store", ".terraform.d", ".mozilla", ".thunderbird"),
    *(".config/gcloud", ".config/gh", ".config/hub", ".config/op", ".config/google-chrome", ".config/chromium", ".config/orc"),
    *(".local/share/keyrings", ".netrc", ".git-credentials", ".config/git/credentials", ".npmrc", ".pypirc", ".Xauthority"),
    *(".cargo/credentials", ".cargo/credentials.toml", ".m2/settings.xml", ".bash_history", ".zsh_history", ".python_history"),
    *(".claude", ".claude.json", ".codex", ".gemini", ".local/share/opencode"),
)
"""Below the user's home; an agent's own client's place is opened again."""

PRIVATE = ("/tmp", "/var/tmp", "/run")
"""Folders in which everybody's sockets and scratch files lie: the launch gets its own in their place."""

OPEN_BELOW_RUN = ("/run/systemd/resolve", "/run/resolvconf", "/run/NetworkManager", "/run/current-system", "/run/wrappers")
"""Names are looked up by these; the last two are where NixOS has its programs."""

OUR_FOLDERS = (".git", ".agents")
"""Within the working tree, where that is the repository itself."""

SCRATCH, CACHE = "tmp", "cache"
"""In the folder of the launch, and in that of the run."""

LEFT_BEHIND = ("SSH_AUTH_SOCK", "XDG_RUNTIME_DIR", "TMUX_TMPDIR", "DBUS_SESSION_BUS_ADDRESS")
"""Variables that name sockets of the user's: nothing behind the wall could use them, or it should not."""


class Access(StrEnum):
    """The access to a path and everything below it."""

    HIDE = "hide"
    READ = "read"
    WRITE = "write"


Rule = tuple[Access, str]


class Places(msgspec.Struct, frozen=True, kw_only=True):
    """The rules of one launch, and two folders of its own. Paths are absolute and without links."""

    rules: tuple[Rule, ...]
    """A later rule wins over an earlier one about a folder around it."""
    scratch: str
    """For temporary files."""
    cache: str
    """For what programs keep to be quicker next time, the whole run's; "" where the user's is opened."""

    def find_hole(self) -> str | None:
        """Return a path that must not be written to within a folder that may be; None without any."""
        for number, (access, path) in enumerate(self.rules):
            earlier = self.rules[:number]
            if access is not Access.WRITE and any(kind is Access.WRITE and _is_below(path, around) for kind, around in earlier):
                return path
        return None


class Surroundings(msgspec.Struct, frozen=True, kw_only=True):
    """The facts about a launch that its places follow from."""

    repo: Path
    store: Path
    tree: Path
    launch: Path
    env: Mapping[str, str]
    more: tuple[Path, ...] = ()
    """Writable besides: artifacts, and what the agent's client keeps."""
    programs: tuple[str, ...] = ()
    """Programs that will be started, by a path or a name on the PATH."""


def find_places(sandbox: Sandbox, around: Surroundings) -> Places:
    """Return the places of one launch."""
    home, launch = around.env.get("HOME", ""), os.path.realpath(around.launch)
    cache = "" if _opens_cache(sandbox, around.env) else f"{os.path.dirname(launch)}/{CACHE}"
    needed = (*_folders_of_programs(around), sys.prefix, sys.base_prefix, str(Path(__file__).parents[2]), home, str(around.repo))
    private = _real(PRIVATE)
    tree = os.path.realpath(around.tree)
    ours = [one for name in OUR_FOLDERS if os.path.isdir(one := f"{tree}/{name}") and not os.path.islink(one)]
    rules = [
        *_all(Access.READ, ("/",)),
        *_all(Access.HIDE, private),
        *_all(Access.READ, OPEN_BELOW_RUN),
        *((Access.READ, one) for one in _real(needed) if any(_is_below(one, folder) for folder in private)),
        *_all(Access.HIDE, [f"{home}/{name}" for name in SECRETS] if home else ()),
        *_all(Access.READ, sandbox.read),
        *_all(Access.WRITE, (tree, *sandbox.write)),
        *_all(Access.READ, ours),
        *_all(Access.HIDE, (str(around.store),)),
        *_all(Access.WRITE, (launch, cache, *map(str, around.more))),
    ]
    return Places(rules=tuple(rules), scratch=f"{launch}/{SCRATCH}", cache=cache)


def _folders_of_programs(around: Surroundings) -> Iterator[str]:
    """A program that is a link, as npm makes them, needs the folder that it leads to as well."""
    path = around.env.get("PATH", "")
    yield from path.split(":")
    for program in around.programs:
        found = shutil.which(program, path=path) or program
        if found.startswith("/"):
            yield from (os.path.dirname(found), os.path.dirname(os.path.realpath(found)))


def _all(access: Access, paths: Iterable[str]) -> Iterator[Rule]:
    for path in _real(paths):
        yield access, path


def child_env(env: Mapping[str, str], places: Places, sandbox: Sandbox, passed: Iterable[str]) -> dict[str, str]:
    """Return the environment behind the wall: no sockets of the user's, caches of the run's own, the proxy."""
    named = set(passed)
    inner = {name: value for name, value in env.items() if name not in LEFT_BEHIND or name in named}
    inner["ORC_WALL"] = sandbox.wall
    if places.cache:
        inner |= {"XDG_CACHE_HOME": places.cache, "npm_config_cache": f"{places.cache}/npm"}
    if sandbox.proxy:
        names = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")
        inner |= {spelled: sandbox.proxy for name in names for spelled in (name, name.lower())}
    return inner


def _opens_cache(sandbox: Sandbox, env: Mapping[str, str]) -> bool:
    mine = os.path.realpath(env.get("XDG_CACHE_HOME") or f"{env.get('HOME', '')}/.cache")
    return any(mine == folder or _is_below(mine, folder) for folder in _real(sandbox.write))


def _real(paths: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(os.path.realpath(path) for path in paths if path.startswith("/")))


def _is_below(path: str, folder: str) -> bool:
    return path.startswith(f"{folder.rstrip('/')}/")
