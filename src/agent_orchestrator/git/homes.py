"""Homes of runs: a repository per run, sharing the objects of a mirror of the remote, and made in one step.

A mirror is never collected: its objects are those of every home made from it.
"""

from __future__ import annotations

import secrets
import shutil
from collections.abc import Mapping
from pathlib import Path

from agent_orchestrator.git.checkouts import forget_checkouts
from agent_orchestrator.git.command import ask_git, git, hold_lock, run_program
from agent_orchestrator.git.fences import RunRemote, run_refs
from agent_orchestrator.git.ownership import index_commit
from agent_orchestrator.git.repository import common_dir, top_level
from agent_orchestrator.git.snapshots import find_commit

DRAFT, GONE = ".making~", ".gone~"
START, HEADS, KEPT, RESULT = "start", "heads/", "kept/", "result"
"""The parts of a run's refs at its remote: the commit it began at, its branches, the trees that it kept, and what it made."""


def open_mirror(mirror: Path, remote_url: str, environ: Mapping[str, str]) -> RunRemote:
    """Return the remote as it is reached through a mirror, made where it is missing."""
    if not (mirror / ".git").exists():
        draft = _draft(mirror.with_name(f"{mirror.name}~{secrets.token_hex(4)}"))
        git(draft.parent, "init", "--quiet", "--initial-branch=main", str(draft))
        try:
            draft.rename(mirror)
        except OSError:  # Another run of the same remote was quicker.
            shutil.rmtree(draft, ignore_errors=True)
        forget_checkouts(draft)
    return RunRemote(where=mirror, url=remote_url, environ=environ)


def fetch_mirror(remote: RunRemote, run: str) -> None:
    """Bring a mirror up to its remote, with the refs of a run; raises Unavailable with what git said."""
    wanted = ("+refs/heads/*:refs/heads/*", "+refs/tags/*:refs/tags/*", f"+{run_refs(run)}*:{run_refs(run)}*")
    how = ("git", "fetch", "--quiet", "--no-tags", "--prune", "--update-head-ok", "--no-write-fetch-head", remote.url)
    with hold_lock(remote.where, "fetch"):
        run_program(remote.where, (*how, *wanted), remote.environ)


def clone_shared(source: Path, home: Path, remote_url: str) -> None:
    """Make a home, still without files, that shares the objects of a repository; what lies there before is deleted."""
    draft = _draft(home)
    how = ("clone", "--quiet", "--shared", "--no-checkout", "--no-tags", "--origin", "origin")
    git(draft.parent, *how, str(source), str(draft))
    git(draft, "remote", "set-url", "origin", remote_url)
    remove_home(home)
    draft.rename(home)


def remove_home(home: Path) -> None:
    """Delete a home with all that is in it, moved aside first: of a folder that is deleted file by file a kill leaves a ruin."""
    gone = home.with_name(f"{GONE}{home.name}")
    shutil.rmtree(gone, ignore_errors=True)
    if home.exists():
        home.rename(gone)
        shutil.rmtree(gone, ignore_errors=True)
    forget_checkouts(home)


def check_out(home: Path, branch: str, commit: str) -> None:
    """Put the files of a commit into a home, on a branch, or on none."""
    how = ("-B", branch) if branch else ("--detach",)
    git(home, "checkout", "--quiet", "--force", "--no-track", *how, commit)


def bring_files(home: Path, commit: str, head: str) -> None:
    """Put the files of a kept tree into a home that has just been made; what was not committed then is not committed now."""
    git(home, "read-tree", "--reset", "-u", commit)
    index_commit(home, head)


def take_refs(mirror: Path, home: Path, run: str) -> None:
    """Take the branches and kept trees of a run from a mirror into a home that has just been made."""
    prefix = run_refs(run)
    wanted = (f"+{prefix}{HEADS}*:refs/heads/*", f"+{prefix}{KEPT}*:refs/orc/{run}/*")
    git(home, "fetch", "--quiet", "--no-tags", "--update-head-ok", "--no-write-fetch-head", str(mirror), *wanted)


def list_own_refs(home: Path, run: str) -> dict[str, str]:
    """Return the branches and kept trees of a run's home, by their names at the remote."""
    prefix, found = run_refs(run), {}
    for line in git(home, "for-each-ref", "--format=%(objectname) %(refname)", "refs/heads/", f"refs/orc/{run}/").splitlines():
        commit, name = line.split(" ", 1)
        part = HEADS + name[len("refs/heads/") :] if name.startswith("refs/heads/") else KEPT + name[len(f"refs/orc/{run}/") :]
        found[prefix + part] = commit
    return found


def find_result(home: Path, run: str, branch: str, start: str) -> str | None:
    """Return the commit with the result of a run: its own branch, else the branch it was submitted on, else the tree it left."""
    own, base = find_commit(home, f"refs/heads/orc/{run}"), find_commit(home, f"refs/heads/{branch}") if branch else None
    if own is not None or (base is not None and base != start):
        return own or base
    left = find_commit(home, f"refs/orc/{run}/_end")
    changed = left is not None and ask_git(home, "diff-tree", "--quiet", start, left, answers=(0, 1))[0] == 1
    return left if changed else None


def objects_of(home: Path) -> Path:
    """Return the object store of a repository."""
    common = common_dir(top_level(home) or home)
    assert common is not None, "a home is a repository"
    return common / "objects"


def _draft(folder: Path) -> Path:
    """Return the place in which a folder is made before it gets its name, empty."""
    draft = folder.with_name(f"{DRAFT}{folder.name}")
    draft.parent.mkdir(parents=True, exist_ok=True)
    shutil.rmtree(draft, ignore_errors=True)
    forget_checkouts(draft)
    return draft
