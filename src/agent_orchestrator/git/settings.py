"""The settings that git has for a repository: listed once, and again when a file that they come from changed.

To ask git for each of them whenever an agent ends would take as long as to look at the tree.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from agent_orchestrator.core.units import latest_ns
from agent_orchestrator.git.environment import files_now_ns

HOW = ("config", "--list", "--includes", "--show-scope", "--show-origin", "-z")
"""The git command whose output is read here."""
KEPT_MAX = 200
"""Repositories and worktrees of which the settings are kept."""
LOCAL = ("local", "worktree")
SYSTEM = "/etc/gitconfig"


FileMark = tuple[int, ...] | None
"""The number, size and times by which a file is told from what stood in its place before; None where there is no file."""


class Listed(NamedTuple):
    """One line of a configuration. The key is lower case, but for what stands between its dots."""

    scope: str
    key: str
    value: str


class _Listing(NamedTuple):
    files: tuple[str, ...]
    marks: tuple[FileMark, ...]
    settings: tuple[Listed, ...]


_known: dict[tuple[Path, Path, frozenset[tuple[str, str]]], _Listing] = {}


def find_settings(
    common: Path, own: Path, variables: Mapping[str, str], read: Callable[[], bytes], now_ns: Callable[[], int] = files_now_ns
) -> tuple[Listed, ...]:
    """Return the settings of a repository in their order, the last of a key counts; `read` runs git as HOW says."""
    key = (common, own, frozenset(variables.items()))
    known = _known.get(key)
    if known is not None and _mark(known.files) == known.marks:
        return known.settings
    files = dict.fromkeys([str(common / "config"), str(own / "config.worktree"), *_persons_files(variables)])
    while True:
        looked_ns = now_ns()
        marks = _mark(files)  # Before it is read: what changes meanwhile is read again the next time.
        origins, settings = _parse(read())
        found = {*_absolute(origins), *_included(origins, settings, variables)} - files.keys()
        if not found:
            break
        files |= dict.fromkeys(sorted(found))
    _known.pop(key, None)
    # What changed in this very tick may change again within it, and then bears the same mark.
    is_old = all(mark is None or latest_ns(mark[-1]) < looked_ns for mark in marks)
    if is_old and not any(_is_fickle(one) for one in settings):
        if len(_known) >= KEPT_MAX:
            _known.clear()
        _known[key] = _Listing(tuple(files), marks, settings)
    return settings


def _is_fickle(setting: Listed) -> bool:
    """Say whether others may come or go without a trace in any file: what a repository's own file includes, or a branch."""
    includes = setting.scope in LOCAL and setting.key.startswith(("include.", "includeif."))
    return includes or setting.key.startswith("includeif.onbranch:")


def _persons_files(variables: Mapping[str, str]) -> Iterable[str]:
    """Return the files in which a person's settings would be, there or not."""
    home = variables.get("HOME", "")
    yield variables.get("GIT_CONFIG_SYSTEM") or SYSTEM
    if named := variables.get("GIT_CONFIG_GLOBAL"):
        yield named
    else:
        yield f"{home}/.gitconfig"
        yield f"{variables.get('XDG_CONFIG_HOME') or f'{home}/.config'}/git/config"


def _parse(listed: bytes) -> tuple[list[str], tuple[Listed, ...]]:
    """Return where each setting comes from, and the settings."""
    fields = [os.fsdecode(one) for one in listed.split(b"\0")]
    pairs = [setting.partition("\n") for setting in fields[2::3]]
    settings = (Listed(scope, key, value) for scope, (key, _, value) in zip(fields[::3], pairs, strict=False))
    return fields[1::3], tuple(settings)


def _absolute(origins: Iterable[str]) -> set[str]:
    """Return the files that settings come from; one that git names from where it works is the repository's own."""
    return {one.removeprefix("file:") for one in origins if one.startswith("file:/")}


def _included(origins: Iterable[str], settings: Iterable[Listed], variables: Mapping[str, str]) -> Iterable[str]:
    """Return the files that a person's settings include, or would if they were there."""
    for origin, (scope, key, value) in zip(origins, settings, strict=False):
        if scope not in LOCAL and key.startswith(("include.", "includeif.")) and key.endswith(".path"):
            value = f"{variables.get('HOME', '')}{value[1:]}" if value.startswith("~/") else value
            yield os.path.join(os.path.dirname(origin.removeprefix("file:")), value)  # noqa: PTH118, PTH120 - text, as git has it


def mark_file(file: str | Path) -> FileMark:
    """Return the mark of a file as it is now."""
    try:
        about = os.stat(file)  # noqa: PTH116 - whenever git is asked something: a Path would cost more than the answer
    except OSError:
        return None
    return about.st_dev, about.st_ino, about.st_size, about.st_mtime_ns, about.st_ctime_ns


def _mark(files: Iterable[str]) -> tuple[FileMark, ...]:
    return tuple(mark_file(file) for file in files)
