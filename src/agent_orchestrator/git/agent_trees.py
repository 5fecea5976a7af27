"""Trees of agents at work, kept under refs of the run as they are now and then, by the branch that is checked out in each.

They are nobody's fact: an agent that is started again begins with the tree that the journal names. They are for people, who find
in them what an agent that was lost with its host had written.
"""

from __future__ import annotations

from pathlib import Path

from agent_orchestrator.errors import GitFailed
from agent_orchestrator.git.command import git
from agent_orchestrator.git.kept_trees import tree_ref
from agent_orchestrator.git.repository import WORKTREES
from agent_orchestrator.git.snapshots import commit_trees, find_commit, find_head, write_tree

WORKING, LOST = "@working/", "@lost/"
DETACHED = "detached"


def keep_working(home: Path, run: str, scratch: Path, at_us: int) -> None:
    """Keep every working tree of a run's home that has work in it which is not committed, or commits that are new.

    A tree that cannot be written now, because its agent is writing, is left to the next time.
    """
    for folder, branch in _list_trees(home, run):
        try:
            _keep(folder, f"{_place(run)}{branch or DETACHED}", run, scratch, at_us)
        except GitFailed:
            continue


def _list_trees(home: Path, run: str) -> list[tuple[Path, str]]:
    """Return the working trees of agents in a home, with the branch of each; those in which merges are checked are left out."""
    found: list[tuple[Path, str]] = []
    for line in git(home, "worktree", "list", "--porcelain").splitlines():
        key, _, value = line.partition(" ")
        if key == "worktree":
            found.append((Path(value), ""))
        elif key == "branch":
            found[-1] = (found[-1][0], value.removeprefix("refs/heads/"))
    places = home / WORKTREES
    return [
        (folder, branch)
        for folder, branch in found
        if (folder / ".git").exists()
        and (folder == home or (folder.is_relative_to(places) and not folder.name.startswith(f"{run}~~")))
    ]


def _keep(folder: Path, ref: str, run: str, scratch: Path, at_us: int) -> None:
    head, known = find_head(folder), find_commit(folder, ref)
    if head is None:
        return
    tree, commit = write_tree(folder, scratch), head
    if tree != _tree_of(folder, head):
        if known is not None and tree == _tree_of(folder, known) and find_commit(folder, f"{known}^1") == head:
            return
        message = f"{run}: the tree of an agent at work\n\nOrc-Run: {run}\n"
        commit = commit_trees(folder, tree, (head,), message, at_us, internal=True)
    elif find_commit(folder, tree_ref(run, head)) is not None:
        return  # The journal knows it, and the remote has it.
    git(folder, "update-ref", ref, commit)


def _tree_of(folder: Path, commit: str) -> str:
    return git(folder, "rev-parse", f"{commit}^{{tree}}")


def drop_working(home: Path, run: str, branch: str | None = None) -> None:
    """Forget the tree of an agent at work that has ended, by its branch; without one, all: what was left is kept otherwise."""
    for name in _list(home, _place(run)) if branch is None else [f"{_place(run)}{branch or DETACHED}"]:
        git(home, "update-ref", "-d", name)


def keep_lost(home: Path, run: str, epoch: int) -> tuple[str, ...]:
    """Keep the trees of agents that were lost with another host under a name that stays; returns the refs."""
    moved = []
    for name in _list(home, _place(run)):
        lost = f"refs/orc/{run}/{LOST}{epoch}/{name.removeprefix(_place(run))}"
        git(home, "update-ref", lost, name)
        git(home, "update-ref", "-d", name)
        moved.append(lost)
    return tuple(moved)


def _place(run: str) -> str:
    return f"refs/orc/{run}/{WORKING}"


def _list(home: Path, prefix: str) -> list[str]:
    return git(home, "for-each-ref", "--format=%(refname)", prefix).split()
