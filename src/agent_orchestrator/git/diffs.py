"""The differences between two trees: listed for programs, and shown as the user's own git shows them."""

from __future__ import annotations

import os
import subprocess
from collections import deque
from collections.abc import Mapping
from pathlib import Path

import msgspec

from agent_orchestrator.core.inputs import FileChange
from agent_orchestrator.core.limits import CHANGED_FILES_MAX
from agent_orchestrator.errors import GitFailed
from agent_orchestrator.git.command import ask_git, git, guard_variables, list_names, own_environment
from agent_orchestrator.git.ownership import list_untouched, select_but
from agent_orchestrator.git.repository import top_level

EMPTY_TREE = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"


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


class ChangeCount(msgspec.Struct, frozen=True, kw_only=True):
    """The size of the difference between two trees."""

    files: int
    added: int
    removed: int


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
    return (difference.old, difference.new, *_not_ours(difference.repo))


def _not_ours(workdir: Path) -> tuple[str, ...]:
    """Return arguments that leave out our files: an agent may have committed one that is tracked, with all that it commits."""
    return select_but(list_untouched(top_level(workdir) or workdir))


def count_changes(workdir: Path, old: str | None, new: str) -> ChangeCount:
    """Count the differences between two trees or commits."""
    files = added = removed = 0
    how = ("-r", "--no-renames", "--numstat")
    for line in git(workdir, "diff-tree", *how, old or EMPTY_TREE, new, *_not_ours(workdir)).splitlines():
        more, less, *_ = line.split("\t")
        files += 1
        added += int(more) if more.isdigit() else 0
        removed += int(less) if less.isdigit() else 0
    return ChangeCount(files=files, added=added, removed=removed)


def list_changes(workdir: Path, old: str | None, new: str) -> tuple[FileChange, ...]:
    """Return the files that differ, with what each became; at most CHANGED_FILES_MAX."""
    raw = git(workdir, "diff-tree", "-r", "-z", "--no-renames", "--raw", old or EMPTY_TREE, new, *_not_ours(workdir))
    fields = raw.split("\0")
    found = []
    for about, path in zip(fields[::2], fields[1::2], strict=False):
        words = about.split()
        if len(words) == 5:
            gone = words[4].startswith("D")
            found.append(FileChange(words[4][:1], path, "" if gone else words[3]))
    return tuple(found[:CHANGED_FILES_MAX])


def read_diff(workdir: Path, old: str | None, new: str, limit_chars: int) -> str:
    """Return the diff as people read it, at most so much of it."""
    how = ("-r", "-p", "--no-renames", "--no-color")
    text = git(workdir, "diff-tree", *how, old or EMPTY_TREE, new, *_not_ours(workdir))
    return text if len(text) <= limit_chars else text[:limit_chars] + "\n… (cut)"


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
