"""Merges of branches without a checkout: planned with `merge-tree`, landed with `update-ref`, the same when repeated.

A checkout of the target is brought along fast-forward, like a pull, where nothing of its owner's would be lost; else nothing
lands. Nothing is ever forced, stashed or deleted.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import msgspec

from agent_orchestrator.core.effects import Merge
from agent_orchestrator.core.inputs import MergeEnded, MergeVerdict
from agent_orchestrator.core.limits import CONFLICT_CHARS, CONFLICTS_MAX
from agent_orchestrator.errors import GitFailed
from agent_orchestrator.git.command import ask_git, git, hold_lock
from agent_orchestrator.git.moves import move_checkout, settle_landing
from agent_orchestrator.git.repository import common_dir, top_level
from agent_orchestrator.git.snapshots import commit_trees, find_commit, list_unmerged
from agent_orchestrator.git.worktree import checkout_detached

GIT_NEEDED = (2, 38)
"""The first git whose `merge-tree` writes trees."""

PATHS_SHOWN = 5

_REGION = re.compile(r"^<<<<<<< .*?^>>>>>>> [^\n]*\n?", re.M | re.S)


class PlannedMerge(msgspec.Struct, frozen=True, kw_only=True):
    """A merge that can be made: its commit, and where the target stood."""

    commit: str
    base: str


class Conflicts(msgspec.Struct, frozen=True, kw_only=True):
    """The paths that two commits both changed."""

    paths: tuple[str, ...]
    text: str = ""


def plan_merge(repo: Path, effect: Merge) -> PlannedMerge | MergeEnded:
    """Build the merge commit, or say why there is none; nothing but objects is written, and a killed landing is finished first.

    Raises GitFailed.
    """
    if top_level(repo) is None:
        return _ended(effect, MergeVerdict.UNAVAILABLE, f"{repo} is not in a git repository")
    settle_landing(repo)
    base, tip = (find_commit(repo, f"refs/heads/{name}") for name in (effect.into, effect.branch))
    for name, found in ((effect.into, base), (effect.branch, tip)):
        if found is None:
            return _ended(effect, MergeVerdict.UNAVAILABLE, f"there is no branch {name} in {repo}")
    assert base is not None
    assert tip is not None
    if is_ancestor(repo, tip, base):
        return MergeEnded(effect=effect.id, verdict=MergeVerdict.LANDED, commit=base)
    tree = merge_trees(repo, base, tip)
    if isinstance(tree, Conflicts):
        why = f"{effect.branch} and {effect.into} both changed {_shown(tree.paths)}"
        ended = _ended(effect, MergeVerdict.CONFLICT, why)
        return msgspec.structs.replace(ended, conflicts=tree.paths, conflict_text=tree.text)
    plan = PlannedMerge(commit=commit_trees(repo, tree, (base, tip), effect.message, effect.at_us), base=base)
    return _why_not(repo, effect, plan) or plan


def land_merge(repo: Path, effect: Merge, planned: PlannedMerge) -> MergeEnded:
    """Move the target from where the plan found it to the merge, with the checkout that is on it. Raises GitFailed."""
    settle_landing(repo)
    landed = MergeEnded(effect=effect.id, verdict=MergeVerdict.LANDED, commit=planned.commit)
    ref = f"refs/heads/{effect.into}"
    now = find_commit(repo, ref)
    if now is not None and is_ancestor(repo, planned.commit, now):
        return landed
    if now != planned.base:
        return _moved(effect)
    why_not = _why_not(repo, effect, planned)
    if why_not is not None:
        return why_not
    try:
        _move(repo, effect.into, planned)
    except GitFailed:
        if find_commit(repo, ref) != planned.base:
            return _moved(effect)
        why_not = _why_not(repo, effect, planned)
        if why_not is None:
            raise
        return why_not
    return landed


def _why_not(repo: Path, effect: Merge, planned: PlannedMerge) -> MergeEnded | None:
    """Say why a merge cannot land now; None when it can.

    Another merge into the same branch moves the branch first, then the files, and what is seen between the two is nobody's
    edit. One that moved the branch before the plan read it is waited for; after one that moved it since, all is done again.
    """
    settle_landing(repo)
    held = find_obstacle(repo, effect.into, planned.commit)
    if held is None:
        return None
    still = find_commit(repo, f"refs/heads/{effect.into}") == planned.base
    return _ended(effect, MergeVerdict.HELD, held) if still else _moved(effect)


def _move(repo: Path, into: str, planned: PlannedMerge) -> None:
    checkout, message = checkout_of(repo, into), f"merge {planned.commit[:12]}"
    if checkout is not None:
        move_checkout(checkout, into, planned.base, planned.commit, message)
        return
    with hold_lock(repo, "branches"):
        git(repo, "update-ref", "-m", message, f"refs/heads/{into}", planned.commit, planned.base)


def find_obstacle(repo: Path, branch: str, commit: str, what: str = "the merge") -> str | None:
    """Say why the checkout of a branch cannot be moved to a commit without losing something; None when it can."""
    checkout = checkout_of(repo, branch)
    if checkout is None:
        return f"{branch} is being rebased: finish or abort that" if _is_rebased(repo, branch) else None
    if (unfinished := _unfinished_in(checkout)) is not None:
        return f"{checkout} is on {branch} and in the middle of something: {unfinished}"
    edited, untracked = _changed_in(checkout, commit)
    if edited:
        return f"{checkout} is on {branch} and has changes of its own in {_shown(edited)}: commit or stash them"
    if untracked:
        lost = f"would overwrite {_shown(untracked)} there, which git does not track: move it away"
        return f"{checkout} is on {branch}, and {what} {lost}"
    return None


def _is_rebased(repo: Path, branch: str) -> bool:
    """Return True if somebody is rebasing the branch: no checkout is on it then, and the end of the rebase moves it."""
    top = top_level(repo)
    common = common_dir(top) if top is not None else None
    if common is None:
        return False
    marks = [folder / kind for folder in (common, *common.glob("worktrees/*")) for kind in ("rebase-merge", "rebase-apply")]
    named = (mark / "head-name" for mark in marks)
    return any(file.is_file() and file.read_text("utf-8", "replace").strip() == f"refs/heads/{branch}" for file in named)


def _unfinished_in(checkout: Path) -> str | None:
    """Return the work in progress that git itself would not fast-forward over."""
    unmerged = list_unmerged(checkout)
    if unmerged:
        return f"{_shown(unmerged)} has conflicts; resolve them"
    begun = [what for what, head in (("merge", "MERGE_HEAD"), ("cherry-pick", "CHERRY_PICK_HEAD")) if find_commit(checkout, head)]
    return f"a {begun[0]} is not concluded; commit or abort it" if begun else None


def _shown(paths: Sequence[str]) -> str:
    return ", ".join(paths[:PATHS_SHOWN]) + (" and more" if len(paths) > PATHS_SHOWN else "")


def _changed_in(checkout: Path, commit: str) -> tuple[list[str], list[str]]:
    """Return the files of the commit that are changed there already: staged or edited ones, untracked or ignored ones.

    A tracked file that is as the commit has it is not in the way: a power cut may have come between files and branch.
    """
    touched = set(_names(checkout, "diff-tree", "-r", "HEAD", commit))
    if not touched:
        return [], []
    others = _names(checkout, "ls-files", "--others")
    with hold_lock(checkout, "comparing"):  # Git brings the index up to date meanwhile, and locks it for that.
        edited = touched.intersection(_names(checkout, "diff", "HEAD")).intersection(_names(checkout, "diff", commit))
    return sorted(edited), sorted(touched.intersection(others))


def _names(checkout: Path, command: str, *arguments: str) -> list[str]:
    only = () if command == "ls-files" else ("--name-only", "--no-renames")
    return [name for name in git(checkout, command, *only, "-z", *arguments).split("\0") if name]


def checkout_of(repo: Path, branch: str) -> Path | None:
    """Return the working tree that is on a branch, or None."""
    folder: Path | None = None
    for line in git(repo, "worktree", "list", "--porcelain").splitlines():
        key, _, value = line.partition(" ")
        if key == "worktree":
            folder = Path(value)
        elif key == "branch" and value == f"refs/heads/{branch}" and folder is not None and folder.is_dir():
            return folder
    return None


def merge_trees(repo: Path, ours: str, theirs: str) -> str | Conflicts:
    """Merge two commits; return the tree, or their conflicts. Needs git 2.38."""
    try:
        code, out = ask_git(repo, "merge-tree", "--write-tree", "-z", "--name-only", ours, theirs, answers=(0, 1))
    except GitFailed:
        if (why := explain_too_old(git(repo, "version"))) is not None:
            raise GitFailed(command="merge-tree", where=repo, detail=why) from None
        raise
    tree, *rest = out.split("\0")
    if code == 0:
        return tree.strip()
    paths = tuple(rest[: rest.index("")] if "" in rest else rest)[:CONFLICTS_MAX]
    return Conflicts(paths=paths, text=_conflict_text(repo, tree.strip(), paths))


def forecast_conflicts(repo: Path, branch: str, others: tuple[str, ...]) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Return the other branches that would conflict with this one, with the paths; a missing branch conflicts with none."""
    mine = find_commit(repo, f"refs/heads/{branch}")
    found = []
    for other in others:
        theirs = find_commit(repo, f"refs/heads/{other}")
        if mine is None or theirs is None or other == branch:
            continue
        merged = merge_trees(repo, theirs, mine)
        if isinstance(merged, Conflicts):
            found.append((other, merged.paths))
    return tuple(found)


def is_ancestor(repo: Path, older: str, newer: str) -> bool:
    """Return True if one commit is in the history of another."""
    return ask_git(repo, "merge-base", "--is-ancestor", older, newer, answers=(0, 1))[0] == 0


def _conflict_text(repo: Path, tree: str, paths: tuple[str, ...]) -> str:
    """Return the regions with conflict markers; a file that only one side still has is named without."""
    parts: list[str] = []
    room = CONFLICT_CHARS
    for path in paths:
        try:
            regions = _REGION.findall(git(repo, "cat-file", "blob", f"{tree}:{path}"))
        except GitFailed:
            regions = []
        text = f"{path}:\n{''.join(regions)}" if regions else f"{path}: changed on one side, removed or replaced on the other\n"
        if len(text) > room:
            parts.append(text[:room] + "\n… (cut)\n")
            break
        parts.append(text)
        room -= len(text)
    return "".join(parts)


def explain_too_old(said: str) -> str | None:
    """Say why a git of this version cannot merge branches; None when it can."""
    numbers = re.search(r"(\d+)\.(\d+)", said)
    if numbers is None or (int(numbers[1]), int(numbers[2])) >= GIT_NEEDED:
        return None
    return f"{said} is too old to merge branches; install git {'.'.join(map(str, GIT_NEEDED))} or newer"


def _moved(effect: Merge) -> MergeEnded:
    return _ended(effect, MergeVerdict.MOVED, f"{effect.into} moved while the merge was being checked")


def _ended(effect: Merge, verdict: MergeVerdict, detail: str) -> MergeEnded:
    return MergeEnded(effect=effect.id, verdict=verdict, detail=detail)


class GitMerges:
    """The merges of real repositories; the engine knows them through `engine.perform.merging.Merges`."""

    plan = staticmethod(plan_merge)
    checkout = staticmethod(checkout_detached)
    land = staticmethod(land_merge)
