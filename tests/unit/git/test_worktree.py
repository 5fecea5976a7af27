"""Worktrees of runs: made, found again, and never deleted with work in them."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from agent_orchestrator.errors import UsageError
from agent_orchestrator.git.worktree import add_worktree, branch_of, remove_worktree
from tests.unit.git.test_locate import git


def branches(repo: Path) -> list[str]:
    return git(repo, "branch", "--format=%(refname:short)").splitlines()


def commit(folder: Path, name: str = "work.txt") -> None:
    (folder / name).write_text("work\n")
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--message", "Work")


def test_a_run_gets_a_branch_and_a_folder_of_its_own(repo: Path) -> None:
    folder = add_worktree(repo, "f8c1")
    assert folder == repo / ".agents" / "worktrees" / "f8c1"
    assert (folder / "README.md").exists()
    assert git(folder, "branch", "--show-current") == branch_of("f8c1") == "orc/f8c1"
    assert git(repo, "branch", "--show-current") == "main"


def test_it_is_found_again_with_its_work(repo: Path) -> None:
    folder = add_worktree(repo, "f8c1")
    commit(folder)
    assert add_worktree(repo, "f8c1") == folder
    assert (folder / "work.txt").exists()


def test_a_folder_that_somebody_deleted_is_made_again_on_the_same_branch(repo: Path) -> None:
    folder = add_worktree(repo, "f8c1")
    commit(folder)
    shutil.rmtree(repo / ".agents")
    assert (add_worktree(repo, "f8c1") / "work.txt").exists()


def test_without_a_repository_or_a_commit_it_is_refused_with_what_to_do(tmp_path: Path) -> None:
    fresh = tmp_path / "fresh"
    fresh.mkdir()
    with pytest.raises(UsageError, match="git init"):
        add_worktree(fresh, "f8c1")
    git(fresh, "init", "--quiet")
    with pytest.raises(UsageError, match="commit first"):
        add_worktree(fresh, "f8c1")


def test_a_merged_one_is_removed_with_its_branch(repo: Path) -> None:
    folder = add_worktree(repo, "f8c1")
    commit(folder)
    git(repo, "merge", "--quiet", branch_of("f8c1"))
    assert remove_worktree(repo, "f8c1") is None
    assert not folder.exists()
    assert branches(repo) == ["main"]


def test_uncommitted_changes_are_never_deleted(repo: Path) -> None:
    folder = add_worktree(repo, "f8c1")
    (folder / "draft.txt").write_text("unfinished")
    kept = remove_worktree(repo, "f8c1")
    assert kept is not None
    assert "uncommitted changes" in kept
    assert (folder / "draft.txt").exists()


def test_a_branch_with_commits_that_nobody_merged_is_kept(repo: Path) -> None:
    commit(add_worktree(repo, "f8c1"))
    kept = remove_worktree(repo, "f8c1")
    assert kept is not None
    assert "not merged" in kept
    assert branch_of("f8c1") in branches(repo)


def test_a_branch_whose_folder_somebody_deleted_can_be_removed(repo: Path) -> None:
    add_worktree(repo, "f8c1")
    shutil.rmtree(repo / ".agents")
    assert remove_worktree(repo, "f8c1") is None
    assert branches(repo) == ["main"]


def test_removing_what_never_was_is_fine(repo: Path) -> None:
    assert remove_worktree(repo, "f8c1") is None
