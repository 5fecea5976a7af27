"""Our block in `.git/info/exclude`, which keeps what we write out of git: exact patterns, never a folder that others use.

Git reads that file for every working tree of a repository. A block says in which of them our files lie: the same path in
another one, say in the worktree of an agent, is work like any other. Lines of older versions, which hid whole folders, are
taken back.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path

import msgspec

from agent_orchestrator.bounded import read_bounded
from agent_orchestrator.core.files import DRAFT, Patterns
from agent_orchestrator.core.limits import SPEC_LIMIT_BYTES
from agent_orchestrator.git.command import hold_lock
from agent_orchestrator.git.repository import common_dir, own_dir, top_level

BEGIN = "# agent-orchestrator: files of runs in "
"""Followed by the working tree: `.`, or `worktrees/<name>` for a linked one."""
END = "# agent-orchestrator: end"

OLD_MARK = "# agent-orchestrator: state of runs, never committed"
OLD = (
    r"(?P<below>/?(?:.*/)?)(?:\.agents/|\.aiwg/|state/|coordination/|\.claude/(?:(?:agent-state|locks|checkpoint\*)\.json\*|"
    r"learnings\.jsonl|milestones/|archive/|\.\*\.orc-tmp))"
)
"""The lines of older versions below their mark."""


class ExcludeRules(msgspec.Struct, kw_only=True):
    """The lines of `.git/info/exclude`, which nobody changes in place: whoever asks again is given the same."""

    others: list[str]
    """Lines that are not ours, in their order."""
    blocks: dict[str, list[str]]
    """Ours, by the working tree that they are for."""
    old: bool = False
    """True if lines of an older version were among them."""


def exclude(home: Path, patterns: Iterable[str]) -> None:
    """Hide files below a folder from git; do nothing outside a repository."""
    _change(home, add=list(patterns))


def include_again(home: Path, patterns: Iterable[str]) -> None:
    """Take back what `exclude` did."""
    _change(home, drop=list(patterns))


def has_old_lines(home: Path) -> bool:
    """Return True if an older version hid whole folders of this repository."""
    top = top_level(home)
    return top is not None and read_rules(top, _below(home, top)).old


def read_rules(top: Path, below: str = "/") -> ExcludeRules:
    """Read the rules of a working tree; lines of an older version for the folder `below` are known wherever they stand."""
    file = _file_of(top)
    try:
        return _parse(read_bounded(file, SPEC_LIMIT_BYTES) if file is not None else b"", below)
    except FileNotFoundError:
        return _parse(b"", below)


@lru_cache(maxsize=8)
def _parse(content: bytes, below: str) -> ExcludeRules:
    """Read the rules in a file's content; kept, because a swarm has four lines a bead, and every agent's end asks for them."""
    lines = content.decode("utf-8", "surrogateescape").splitlines()
    rules, block, marked, close = ExcludeRules(others=[], blocks={}), None, False, False
    for line in lines:
        if line.startswith(BEGIN):
            block = rules.blocks.setdefault(line.removeprefix(BEGIN), [])
        elif block is not None and line.startswith("/"):
            block.append(line)
        elif block is not None and line == END:
            block = None
        elif line == OLD_MARK:
            block, marked, close, rules.old = None, True, True, True
        elif marked and (old := re.fullmatch(OLD, line)) is not None and (close or old["below"] in ("", "/", below)):
            # Below the mark anything of this shape is ours; further down, only what was written for this folder.
            rules.old = True
        else:
            block, close = None, False
            rules.others.append(line)
    return rules


def read_patterns(top: Path) -> Patterns:
    """Read the patterns of our files in a working tree."""
    return as_patterns(read_lines(top))


def read_lines(top: Path) -> tuple[str, ...]:
    """Read our lines for a working tree."""
    return our_lines(read_rules(top), top)


def our_lines(rules: ExcludeRules, top: Path) -> tuple[str, ...]:
    """Return those of the rules that name our files in a working tree."""
    return tuple(rules.blocks.get(name_tree(top), ()))


@lru_cache(maxsize=8)
def as_patterns(lines: tuple[str, ...]) -> Patterns:
    """Return the patterns of lines, made once of the same ones, which remember the files that they were found to name."""
    return Patterns(re.sub(r"\\(.)", r"\1", line[1:]) for line in lines)


def name_tree(top: Path) -> str:
    """Return the name of a working tree in its block: the same after the repository was moved."""
    common, own = common_dir(top), own_dir(top)
    return str(own.relative_to(common)) if common is not None and own is not None and own.is_relative_to(common) else "."


def _change(home: Path, *, add: list[str] | None = None, drop: list[str] | None = None) -> None:
    top = top_level(home)
    file = _file_of(top) if top is not None else None
    if top is None or file is None:
        return
    below, place = _below(home, top), name_tree(top)
    with hold_lock(home, "excluding"):
        rules = read_rules(top, below)
        mine = rules.blocks.get(place, [])
        gone = {f"{below}{pattern}" for pattern in drop or ()}
        wanted = list(dict.fromkeys([*mine, *(f"{below}{pattern}" for pattern in add or ())]))
        wanted = [line for line in wanted if line not in gone]
        if wanted == mine and not rules.old:
            return
        _write(file, ExcludeRules(others=rules.others, blocks={**rules.blocks, place: wanted}))


def _write(file: Path, rules: ExcludeRules) -> None:
    lines = list(rules.others)
    for place, block in rules.blocks.items():
        if block:
            lines += [f"{BEGIN}{place}", *block, END]
    file = file.resolve()  # Somebody may keep it elsewhere and link to it.
    file.parent.mkdir(parents=True, exist_ok=True)
    draft = file.with_name(f".{file.name}.{os.getpid()}{DRAFT}")
    try:
        draft.write_bytes("".join(f"{line}\n" for line in lines).encode("utf-8", "surrogateescape"))
        with contextlib.suppress(FileNotFoundError):
            draft.chmod(file.stat().st_mode & 0o777)
        draft.replace(file)
    finally:
        draft.unlink(missing_ok=True)


def _file_of(top: Path) -> Path | None:
    common = common_dir(top)
    return common / "info" / "exclude" if common is not None else None


def _below(home: Path, top: Path) -> str:
    return "/" + "".join(f"{_literal(part)}/" for part in home.relative_to(top).parts)


def _literal(name: str) -> str:
    return re.sub(r"([*?\[\\])", r"\\\1", name)
