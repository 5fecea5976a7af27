"""The programs that a repository's own configuration names: our git does not run them, because an agent may have named them.

Whoever may write to `.git/config` could have any git run a filter, a hook, a monitor or a merge driver. What a person
configured for all repositories is his own and counts; what the repository says is put out of force, key by key, by settings
that outrank it. A filter without which a file cannot be read or written rightly makes git fail: nothing is ever committed
unfiltered. A person may trust a repository, and then it is read like any other.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache

import msgspec

from agent_orchestrator.git.settings import LOCAL, Listed

Setting = tuple[str, str]

_AS_TEXT = ("--no-ext-diff", "--no-textconv")
_THIS_REPOSITORY = "--ignore-submodules=dirty"
"""Git would look into a repository inside this one with a git of its own, which reads that one's configuration."""
FLAGS: dict[str, tuple[str, ...]] = {
    "diff": (*_AS_TEXT, _THIS_REPOSITORY),
    "diff-files": (*_AS_TEXT, _THIS_REPOSITORY),
    "diff-index": (*_AS_TEXT, _THIS_REPOSITORY),
    "diff-tree": _AS_TEXT,
    "log": _AS_TEXT,
    "show": _AS_TEXT,
    "status": (_THIS_REPOSITORY,),
}
"""The flags by which a command runs no program and no other git, and shows files as they are."""

PLAIN: tuple[Setting, ...] = (
    ("gc.auto", "0"),
    ("maintenance.auto", "false"),
    ("color.ui", "false"),
    ("column.ui", "never"),
    ("core.fsync", "added"),
    ("core.safecrlf", "false"),
    ("i18n.commitEncoding", "UTF-8"),
    ("i18n.logOutputEncoding", "UTF-8"),
    ("log.showSignature", "false"),
    ("submodule.recurse", "false"),
    ("user.useConfigOnly", "true"),
)
"""Settings under which our git does one thing and says it in one way, whatever a person likes on his screen.

Objects are synced, which git leaves out by itself: a commit that the journal names must be there after a power cut.
"""

HOOKS_OFF: tuple[Setting, ...] = (("core.fsmonitor", "false"), ("core.hooksPath", "/dev/null"))

_RUN = frozenset(
    (
        *("fsmonitor", "hookspath", "editor", "pager", "askpass", "gitproxy", "clean", "smudge", "process", "external"),
        *("textconv", "driver", "uploadpack", "receivepack", "uploadarchive", "vcs", "difffilter", "path", "allow"),
        *("smtpserver", "tunnel", "standalonetransferagent"),
    )
)
_RUN_END = ("command", "cmd", "program", "helper", "hook")
_PLAIN_PATHS = frozenset({"core", "include", "includeif", "submodule"})
"""Sections whose `path` names no program."""

_DEFAULTS = {
    "core.sshcommand": "ssh",
    "gpg.program": "gpg",
    "gpg.openpgp.program": "gpg",
    "gpg.ssh.program": "ssh-keygen",
    "gpg.x509.program": "gpgsm",
    "core.fsmonitor": "false",
    "core.hookspath": "/dev/null",
    "core.gitproxy": "none",
}
_DEFAULTS_BY_NAME = {
    "driver": "git merge-file %A %O %B",
    "uploadpack": "git-upload-pack",
    "receivepack": "git-receive-pack",
    "allow": "never",
}
"""A foreign driver's files are merged as text, as git does without one."""

_FILTER = re.compile(r"filter\.(?P<name>.+)\.(?P<part>clean|smudge|process|required)", re.S)
_FAILED_FILTER = re.compile(r"(?:clean|smudge) filter '(?P<name>[^']+)' failed")


class LocalPrograms(msgspec.Struct, frozen=True, kw_only=True):
    """The programs that a repository's own configuration names, and what puts them out of force."""

    settings: tuple[Setting, ...] = ()
    filters: tuple[str, ...] = ()
    worktree: str | None = None
    """The folder that the repository says its files are in, if it does."""

    def explain(self, said: str) -> str:
        """Say what to do when git failed because one of its filters is out of force; empty when it was something else."""
        found = _FAILED_FILTER.search(said)
        if found is None or found["name"] not in self.filters:
            return ""
        return (
            f" (the filter {found['name']} is defined in this repository's own configuration, whose programs orc does not run: "
            f"define it with `git config --global`, or trust the repository, see docs/trust.md)"
        )


@lru_cache(maxsize=64)
def judge_settings(settings: tuple[Listed, ...]) -> LocalPrograms:
    """Return what outranks the programs among the settings of a repository: those of the person, or git's own."""
    theirs: dict[str, None] = {}
    persons: dict[str, list[str]] = {}
    filters: dict[str, set[str]] = {}
    worktree = None
    for scope, key, value in settings:
        if scope not in LOCAL:
            persons.setdefault(key, []).append(value)
        elif key == "core.worktree":
            worktree = value
        elif (named := _FILTER.fullmatch(key)) is not None:
            filters.setdefault(named["name"], set()).add(named["part"])
        elif _names_program(key):
            theirs[key] = None
    outranking = [one for name, parts in filters.items() for one in _restore_filter(name, parts, persons)]
    for key in theirs:
        outranking += _restore(key, persons.get(key, []))
    return LocalPrograms(
        settings=(*HOOKS_OFF, *outranking),
        filters=tuple(filters),
        worktree=worktree,
    )


def _names_program(key: str) -> bool:
    section, name = key.partition(".")[0], key.rpartition(".")[2]
    if name == "path" and section in _PLAIN_PATHS:
        return False
    return section == "alias" or name in _RUN or name.endswith(_RUN_END)


def _restore_filter(name: str, parts: set[str], persons: Mapping[str, list[str]]) -> list[Setting]:
    """Return a filter as the person has it; one that cannot be had so is required and always fails."""
    has = {part: persons.get(f"filter.{name}.{part}", [""])[-1] for part in ("clean", "smudge", "process", "required")}
    # Git asks a `process` that is set before all others, even an empty one, and there is no way to unset it.
    spoiled = not (has["clean"] or has["smudge"] or has["process"]) or ("process" in parts and not has["process"])
    restored = {part: has[part] for part in sorted(parts - {"required"})}
    restored["required"] = "true" if spoiled else has["required"] or "false"
    if spoiled:
        restored |= {"clean": "", "smudge": ""}
    return [(f"filter.{name}.{part}", value) for part, value in restored.items()]


def _restore(key: str, persons: list[str]) -> list[Setting]:
    name = key.rpartition(".")[2]
    if name == "helper":
        return [(key, ""), *((key, value) for value in persons)]  # An empty one begins the list anew.
    if persons:
        return [(key, persons[-1])]
    return [(key, _DEFAULTS.get(key, _DEFAULTS_BY_NAME.get(name, "")))]


def as_variables(settings: Iterable[Setting], given: Mapping[str, str]) -> dict[str, str]:
    """Return settings as the variables by which git takes them from nobody else, after those that are given already."""
    count = int(given.get("GIT_CONFIG_COUNT") or 0) if (given.get("GIT_CONFIG_COUNT") or "0").isdigit() else 0
    variables = {}
    for key, value in settings:
        variables[f"GIT_CONFIG_KEY_{count}"] = key
        variables[f"GIT_CONFIG_VALUE_{count}"] = value
        count += 1
    return {**variables, "GIT_CONFIG_COUNT": str(count)}
