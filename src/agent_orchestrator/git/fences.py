"""Pushes that only the present driver of a run can make: each moves the run's fence, and names the fence that it found.

The fence is a ref, `refs/orc/fence/<run>`, at a commit without files whose message says under which epoch it was pushed. A
push is atomic and expects the fence where this process left it, so that the remote itself refuses one that comes too late,
also one that was frozen on its way.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path

import msgspec

from agent_orchestrator.core.ids import checked_id
from agent_orchestrator.errors import Fenced, Shortage, Unavailable
from agent_orchestrator.git.command import git, run_program
from agent_orchestrator.git.large_files import push_large_files
from agent_orchestrator.git.remotes import hide_credentials
from agent_orchestrator.git.snapshots import commit_trees

REFS_AT_ONCE = 500

_MESSAGE = re.compile(r"epoch (?P<epoch>\d+), push (?P<number>\d+)(?:\n\nbranch (?P<branch>\S+))?\s*\Z")


class RunRemote(msgspec.Struct, frozen=True, kw_only=True):
    """The remote of a run: its address, and the repository by whose configuration it is reached."""

    where: Path
    url: str
    environ: Mapping[str, str]

    @property
    def shown(self) -> str:
        """The address for people."""
        return hide_credentials(self.url)


class Fence(msgspec.Struct, frozen=True, kw_only=True):
    """A run's fence at its remote."""

    commit: str = ""
    """Empty where there is none yet."""
    epoch: int = 0
    number: int = 0
    """The pushes so far; each moves the fence."""
    branch: str = ""
    """The branch that the run was submitted on; empty for none."""


def fence_ref(run: str) -> str:
    """Return the ref of a run's fence."""
    return f"refs/orc/fence/{checked_id(run, 'The run id')}"


def run_refs(run: str) -> str:
    """Return what the refs of a run begin with at its remote."""
    return f"refs/orc/runs/{checked_id(run, 'The run id')}/"


def list_refs(remote: RunRemote, *patterns: str) -> dict[str, str]:
    """Return the refs of a remote that match, with their commits; raises Unavailable with what git said."""
    said = run_program(remote.where, ("git", "ls-remote", "--quiet", remote.url, *patterns), remote.environ)
    pairs = (line.split("\t", 1) for line in said.splitlines() if "\t" in line)
    return {name: commit for commit, name in pairs}


def find_head_branch(remote: RunRemote) -> str:
    """Return the branch that a remote has as its own, empty where it says none; raises Unavailable with what git said."""
    said = run_program(remote.where, ("git", "ls-remote", "--quiet", "--symref", remote.url, "HEAD"), remote.environ)
    named = re.match(r"ref: refs/heads/(\S+)\tHEAD$", said, re.MULTILINE)
    return named[1] if named is not None else ""


def read_fence(remote: RunRemote, run: str) -> Fence:
    """Return the fence of a run as the remote has it now; raises Unavailable."""
    ref = fence_ref(run)
    if ref not in list_refs(remote, ref):
        return Fence()
    run_program(remote.where, ("git", "fetch", "--quiet", "--no-tags", remote.url, f"+{ref}:{ref}"), remote.environ)
    commit = git(remote.where, "rev-parse", f"{ref}^{{commit}}")
    said = _MESSAGE.match(git(remote.where, "log", "-1", "--format=%B", commit))
    if said is None:
        raise Unavailable(detail=f"{ref} of {remote.shown} is none of ours; delete it there if nobody drives run {run}.")
    return Fence(commit=commit, epoch=int(said["epoch"]), number=int(said["number"]), branch=said["branch"] or "")


def raise_fence(remote: RunRemote, run: str, epoch: int) -> Fence:
    """Move the fence of a run to a new epoch; raises Fenced where the remote has a later one, and Unavailable."""
    found = read_fence(remote, run)
    if found.epoch > epoch:
        raise Fenced(run=run, expected=epoch, found=found.epoch)
    return push_fenced(remote, run, msgspec.structs.replace(found, epoch=epoch), {})


def push_fenced(
    remote: RunRemote, run: str, fence: Fence, changes: Mapping[str, str | None], objects: Path | None = None
) -> Fence:
    """Put refs of a remote at these commits, or delete them, with the run's fence; returns the fence as it is from now on.

    `objects` is an object store besides the repository's own. Raises Fenced when somebody moved the fence meanwhile, and
    Shortage when the remote does not answer: it may be tried again.
    """
    new = _next_fence(remote.where, fence)
    ref = fence_ref(run)
    lease = f"--force-with-lease={ref}:{fence.commit}"
    moves = [f"+{commit}:{name}" if commit is not None else f":{name}" for name, commit in changes.items()]
    environ = dict(remote.environ)
    if objects is not None:
        environ["GIT_ALTERNATE_OBJECT_DIRECTORIES"] = str(objects)
    how = ("git", "push", "--quiet", "--porcelain", "--atomic", "--no-verify", lease, remote.url)
    try:
        if commits := [commit for commit in changes.values() if commit is not None]:
            # LFS takes a bare path for the name of a remote.
            url = Path(remote.url).as_uri() if remote.url.startswith("/") else remote.url
            push_large_files(remote.where, url, commits, environ, objects.parent if objects is not None else None)
        run_program(remote.where, (*how, f"{new.commit}:{ref}", *moves), environ)
    except Unavailable as error:
        _judge(remote, run, fence, new, error)
    return new


def forget_run(remote: RunRemote, run: str) -> None:
    """Delete the refs of a run, the fence last; its branch stays. Raises Unavailable with what git said; may be repeated."""
    names = [*list_refs(remote, f"{run_refs(run)}*"), *list_refs(remote, fence_ref(run))]
    for start in range(0, len(names), REFS_AT_ONCE):
        gone = [f":{name}" for name in names[start : start + REFS_AT_ONCE]]
        run_program(remote.where, ("git", "push", "--quiet", "--no-verify", remote.url, *gone), remote.environ)


def _judge(remote: RunRemote, run: str, fence: Fence, new: Fence, error: Unavailable) -> None:
    """Tell what a push that failed means, by the fence: it went through and only the answer was lost, or it came too late."""
    try:
        found = read_fence(remote, run)
    except Unavailable:
        raise Shortage(detail=f"The remote of run {run} cannot be reached: {error}") from None
    if found.commit == new.commit:
        return
    if found.commit != fence.commit:
        raise Fenced(run=run, expected=fence.epoch, found=found.epoch)
    raise Shortage(detail=f"The remote of run {run} refused a push: {error}")


def _next_fence(where: Path, fence: Fence) -> Fence:
    number = fence.number + 1
    branch = f"\n\nbranch {fence.branch}" if fence.branch else ""
    tree = git(where, "hash-object", "-w", "-t", "tree", os.devnull)
    commit = commit_trees(where, tree, (), f"epoch {fence.epoch}, push {number}{branch}\n", 0, internal=True)
    return msgspec.structs.replace(fence, commit=commit, number=number)
