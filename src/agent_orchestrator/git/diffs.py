"""The differences between two trees: listed for programs, and shown as the user's own git shows them."""

from __future__ import annotations

import os
import subprocess
from collections import deque
from collections.abc import Mapping
from pathlib import Path

import msgspec

from agent_orchestrator.errors import GitFailed
from agent_orchestrator.git.command import ask_git, guard_variables, list_names, own_environment
from agent_orchestrator.git.ownership import list_untouched, select_but
from agent_orchestrator.git.repository import top_level


class TreePair(msgspec.Struct, frozen=True):
    """Two trees, or commits, of a repository."""

    repo: Path
    old: str
    new: str


class ChangedFile(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A file that differs; a binary one has no lines."""

    path: str
    status: str
    """A(dded), M(odified), D(eleted), R(enamed), C(opied) or T(ype changed)."""
    was: str = ""
    """The earlier path of a renamed or copied one."""
    added: int | None = None
    removed: int | None = None


def list_changed(difference: TreePair) -> tuple[ChangedFile, ...]:
    """Return the files that differ, renames found; a name that is no UTF-8 has `\\xNN` in it. Raises GitFailed."""
    fields = deque(list_names(difference.repo, *_diff("--raw", "--numstat", "-z"), *_range(difference)))
    kinds: list[tuple[str, list[str]]] = []
    while fields and fields[0].startswith(":"):
        status = fields.popleft().rpartition(" ")[2][:1]
        kinds.append((status, [fields.popleft() for _ in range(2 if status in "RC" else 1)]))
    files: list[ChangedFile] = []
    for status, names in kinds:
        added, removed, path = fields.popleft().split("\t", 2)
        if not path:
            del fields[0], fields[0]
        files.append(
            ChangedFile(
                path=_readable(names[-1]),
                status=status,
                was=_readable(names[0]) if len(names) > 1 else "",
                added=int(added) if added.isdigit() else None,
                removed=int(removed) if removed.isdigit() else None,
            )
        )
    return tuple(files)


def _readable(name: str) -> str:
    return os.fsencode(name).decode("utf-8", "backslashreplace")


def _diff(*how: str) -> tuple[str, ...]:
    return ("diff", "--no-color", "--no-ext-diff", "--find-renames", *how)


def _range(difference: TreePair) -> tuple[str, ...]:
    """The two trees, without the files that are ours: an agent may have committed one that is tracked."""
    ours = list_untouched(top_level(difference.repo) or difference.repo)
    return (difference.old, difference.new, *select_but(ours))


def show_diff(difference: TreePair, how: tuple[str, ...], environ: Mapping[str, str], *, terminal: bool) -> int:
    """Write the diff to our own output; at a terminal with the user's pager and colours. Returns git's exit code."""
    plain = () if terminal else ("--no-pager",)
    options = ("diff", *how) if terminal else _diff(*how)
    argv = ["git", "-C", str(difference.repo), *plain, *options, *_range(difference)]
    try:
        env = own_environment(environ) | guard_variables(difference.repo, environ)
        return subprocess.run(argv, env=env, check=False).returncode
    except FileNotFoundError as error:
        raise GitFailed(command="diff", where=difference.repo, detail="git is not installed") from error


def find_fork_point(repo: Path, target: str, tip: str) -> str | None:
    """Return the commit at which a branch left another; None where they have nothing in common."""
    code, base = ask_git(repo, "merge-base", target, tip, answers=(0, 1))
    return base if code == 0 else None
