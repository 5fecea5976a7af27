"""The work of a run that workers drove, fetched from its remote into a clone; taken from the remote again when it is discarded.

At the remote, `refs/orc/runs/<run>/` has the start, the branches, the kept trees and the result of a run. In the clone the kept
trees are where a run of the clone has them, and the rest is below `refs/orc/<run>/@remote/`: branches of the clone are touched
only where nobody but us has moved them.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import msgspec

from agent_orchestrator.git.branches import make_branch
from agent_orchestrator.git.command import git, hold_lock, run_program
from agent_orchestrator.git.fences import RunRemote, list_refs, run_refs
from agent_orchestrator.git.homes import HEADS, KEPT, RESULT, START
from agent_orchestrator.git.merges import checkout_of, is_ancestor
from agent_orchestrator.git.remotes import fetch_url, is_place, list_push_urls, list_remotes, repository_of
from agent_orchestrator.git.snapshots import find_commit, is_clean
from agent_orchestrator.git.worktree import branch_of


class Brought(msgspec.Struct, frozen=True, kw_only=True):
    """The commits of a run, as a clone has them now."""

    start: str
    """Empty where the remote knows nothing of the run."""
    result: str
    """Empty where the run has changed nothing, or not ended yet."""


def find_remote(top: Path, url: str) -> str | None:
    """Return the name that a clone has for the remote at an address; None where none of its remotes is that repository.

    One that is fetched from there goes before one that is only pushed to there.
    """
    names = list_remotes(top)
    known = [(name, fetch_url(top, name)) for name in names]
    known += [(name, pushed) for name in names for pushed in list_push_urls(top, name)]
    for name, place in known:
        here = str((top / place).resolve()) if is_place(place) else place
        if here == url or (repository_of(place) and repository_of(place) == repository_of(url)):
            return name
    return None


def fetch_run(remote: RunRemote, run: str) -> Brought:
    """Fetch all that the remote has of a run, and let the clone's branch follow; raises Unavailable with what git said."""
    prefix, own = run_refs(run), f"refs/orc/{run}/"
    branch = f"refs/heads/{branch_of(run)}"
    there = list_refs(remote, f"{prefix}*", branch)
    if f"{prefix}{START}" not in there:
        return Brought(start="", result="")
    result = there.get(f"{prefix}{RESULT}") or there.get(branch, "")
    moves = [f"+{prefix}{START}:{own}@remote/{START}", f"+{prefix}{HEADS}*:{own}@remote/{HEADS}*", f"+{prefix}{KEPT}*:{own}*"]
    if result:
        source = f"{prefix}{RESULT}" if f"{prefix}{RESULT}" in there else branch
        moves.append(f"+{source}:{own}@remote/{RESULT}")
    with hold_lock(remote.where, f"bringing~{run}"):
        before = find_commit(remote.where, f"{own}@remote/{RESULT}")
        how = ("git", "fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--no-recurse-submodules", remote.url)
        run_program(remote.where, (*how, *moves), remote.environ)
        if result:
            _follow(remote.where, branch_of(run), before, result)
    return Brought(start=there[f"{prefix}{START}"], result=result)


def branch_tip(repo: Path, run: str, branch: str) -> str | None:
    """Return the commit of a branch of the run at its remote, as it was fetched."""
    return find_commit(repo, f"refs/orc/{run}/@remote/{HEADS}{branch}")


def _follow(repo: Path, branch: str, before: str | None, result: str) -> None:
    """Move the clone's branch to the result, where it has nothing that the result has not and that somebody else made."""
    tip = find_commit(repo, f"refs/heads/{branch}")
    if tip is None or tip == result or not (tip == before or is_ancestor(repo, tip, result)):
        return
    folder = checkout_of(repo, branch)
    if folder is None:
        make_branch(repo, branch, result)
    elif is_clean(folder):
        git(folder, "reset", "--quiet", "--keep", result)


def withdraw_result(remote: RunRemote, run: str, kept: Mapping[str, str]) -> str | None:
    """Delete the run's branch at its remote, which keeps these refs of the clone instead; returns why it stays, or None.

    May be repeated. A branch that is not what the run made is somebody's: it stays. Raises Unavailable.
    """
    prefix, own, name = run_refs(run), f"refs/orc/{run}/", branch_of(run)
    branch, there = f"refs/heads/{name}", list_refs(remote, f"{prefix}*", f"refs/heads/{name}")
    found = there.get(branch)
    moves = [f"+{commit}:{prefix}{KEPT}{ref.removeprefix(own)}" for ref, commit in kept.items() if ref.startswith(own)]
    theirs = found is not None and found != there.get(f"{prefix}{RESULT}", found)
    gone = [f":{branch}"] if found is not None and not theirs else []
    lease = (f"--force-with-lease={branch}:{found}",) if gone else ()
    if moves or gone:
        how = ("git", "push", "--quiet", "--porcelain", "--atomic", "--no-verify", *lease, remote.url)
        run_program(remote.where, (*how, *gone, *moves), remote.environ)
    return f"the branch {name} of {remote.shown} has other commits than the run's" if theirs else None
