"""A worktree whose `.git` was replaced is not followed: git is not run there, and that is said."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from agent_orchestrator.errors import GitFailed
from agent_orchestrator.git.command import git
from agent_orchestrator.git.ownership import list_uncommitted
from agent_orchestrator.git.snapshots import commit_on_branch, save_snapshot
from agent_orchestrator.git.worktree import add_worktree

REFUSED = "does not belong to this repository any more, and is not followed"


def other(where: Path) -> Path:
    """Another repository, whose configuration would run a program."""
    where.mkdir()
    subprocess.run(["git", "init", "--quiet"], cwd=where, check=True)
    subprocess.run(["git", "commit", "--quiet", "--allow-empty", "--message", "theirs"], cwd=where, check=True)
    return where


@pytest.mark.parametrize("trick", ["another repository", "a pointer elsewhere", "a link", "nothing", "another worktree's"])
def test_a_worktree_whose_git_was_replaced_is_refused(repo: Path, tmp_path: Path, trick: str) -> None:
    folder = add_worktree(repo, "x")
    dot = folder / ".git"
    kept = dot.read_text()
    dot.unlink()
    elsewhere = other(tmp_path / "elsewhere") / ".git"
    if trick == "another repository":
        shutil.copytree(elsewhere, dot)
    elif trick == "a pointer elsewhere":
        dot.write_text(f"gitdir: {elsewhere}\n")
    elif trick == "a link":
        (tmp_path / "kept").write_text(kept)
        dot.symlink_to(tmp_path / "kept")
    elif trick == "another worktree's":
        dot.write_text((add_worktree(repo, "y") / ".git").read_text())
    before = git(repo, "rev-parse", "main")
    with pytest.raises(GitFailed, match=REFUSED):
        save_snapshot(folder, tmp_path / "scratch", "refs/orc/x", "x", 0)
    with pytest.raises(GitFailed, match=REFUSED):
        list_uncommitted(folder)
    with pytest.raises(GitFailed, match=REFUSED):
        commit_on_branch(folder, tmp_path / "scratch", f"{before}^{{tree}}", "m", 0, empty=True)
    assert git(repo, "rev-parse", "main") == before, "never the repository around it"


def test_a_worktree_whose_folder_in_the_git_directory_was_turned_elsewhere_is_refused(repo: Path, tmp_path: Path) -> None:
    folder = add_worktree(repo, "x")
    (repo / ".git" / "worktrees" / "x" / "commondir").write_text(str(other(tmp_path / "elsewhere") / ".git"))
    with pytest.raises(GitFailed, match=REFUSED):
        list_uncommitted(folder)


def test_a_checkout_whose_git_directory_was_replaced_while_we_work_is_refused(repo: Path, tmp_path: Path) -> None:
    assert list_uncommitted(repo) == []
    (repo / ".git").rename(tmp_path / "moved")
    shutil.copytree(tmp_path / "moved", repo / ".git")
    with pytest.raises(GitFailed, match="is not the one it was when orc began to work there"):
        list_uncommitted(repo)


def test_a_clone_that_somebody_keeps_in_such_a_folder_is_a_checkout_like_any_other(tmp_path: Path) -> None:
    (tmp_path / ".agents" / "worktrees").mkdir(parents=True)
    assert list_uncommitted(other(tmp_path / ".agents" / "worktrees" / "theirs")) == []
