"""Worktrees of runs: made, found again, and never deleted with work in them."""

from __future__ import annotations

import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from agent_orchestrator.core.effects import Tree
from agent_orchestrator.errors import GitFailed, UsageError
from agent_orchestrator.git.worktree import add_worktree, branch_of, folder_of, open_tree
from tests.unit.git.test_repository import git


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


def test_a_folder_whose_git_somebody_deleted_is_left_alone_and_said_so(repo: Path) -> None:
    tree = Tree(branch="feature/a")
    open_tree(repo, "v4", tree)
    folder = folder_of(repo, "v4", tree)
    (folder / "work.txt").write_text("work\n")
    (folder / ".git").unlink()
    with pytest.raises(GitFailed, match="move the folder away, the branch feature/a is kept"):
        open_tree(repo, "v4", tree)
    folder.rename(folder.with_name("aside"))
    open_tree(repo, "v4", tree)
    assert git(folder, "branch", "--show-current") == "feature/a"


def test_without_a_repository_or_a_commit_it_is_refused_with_what_to_do(tmp_path: Path) -> None:
    fresh = tmp_path / "fresh"
    fresh.mkdir()
    with pytest.raises(UsageError, match="git init"):
        add_worktree(fresh, "f8c1")
    git(fresh, "init", "--quiet")
    with pytest.raises(UsageError, match="commit first"):
        add_worktree(fresh, "f8c1")


def test_a_tree_on_a_branch_begins_where_it_is_asked_to_and_is_found_again(repo: Path) -> None:
    commit(repo, "second.txt")
    tree = Tree(branch="feature/a", start="HEAD~1")
    open_tree(repo, "f8c1", tree)
    folder = folder_of(repo, "f8c1", tree)
    assert not (folder / "second.txt").exists()
    commit(folder)
    open_tree(repo, "f8c1", tree)
    assert (folder / "work.txt").exists()
    assert git(folder, "branch", "--show-current").strip() == "feature/a"
    assert git(repo, "status", "--porcelain") == ""


def test_a_lock_that_a_killed_git_left_is_removed_once_nobody_stands_in_the_tree(repo: Path) -> None:
    tree = Tree(branch="orc/a")
    open_tree(repo, "a", tree)
    folder = folder_of(repo, "a", tree)
    (folder / "inner").mkdir()
    lock = Path(git(folder, "rev-parse", "--path-format=absolute", "--git-path", "index.lock"))
    lock.touch()
    with subprocess.Popen(["sleep", "60"], cwd=folder / "inner") as living:
        open_tree(repo, "a", tree)
        assert lock.exists()
        living.kill()
    open_tree(repo, "a", tree)
    assert not lock.exists()


def test_two_branches_never_share_a_folder(repo: Path) -> None:
    folders = {folder_of(repo, "f8c1", Tree(branch=branch)) for branch in ("a/b", "a-b", "a_b", "a")}
    assert len(folders) == 4


def test_a_tree_without_a_branch_is_the_repositorys_own_checkout(repo: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    assert folder_of(repo, "f8c1", Tree(repo=str(other))) == other
    open_tree(repo, "f8c1", Tree(repo=str(other)))
    assert not other.exists()


def test_a_branch_that_is_checked_out_elsewhere_is_refused_with_gits_words(repo: Path) -> None:
    with pytest.raises(GitFailed, match="main"):
        open_tree(repo, "f8c1", Tree(branch="main"))


def test_many_trees_can_be_asked_for_at_once(repo: Path) -> None:
    trees = [Tree(branch=f"phases/task--1.{number}") for number in range(6)]
    with ThreadPoolExecutor(len(trees)) as threads:
        list(threads.map(lambda tree: open_tree(repo, "f8c1", tree), trees))
    assert all((folder_of(repo, "f8c1", tree) / "README.md").exists() for tree in trees)


def test_a_branch_that_is_named_like_the_folder_of_ours_is_named_with_what_to_do(repo: Path) -> None:
    git(repo, "branch", "orc")
    with pytest.raises(GitFailed, match="a branch named orc, and git cannot make orc/f8c1 beside it: git branch -m orc NAME"):
        add_worktree(repo, "f8c1")
