"""Removing a run's worktrees and branches: planned, whole or not at all, and never with work in them."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from agent_orchestrator.core.effects import Tree
from agent_orchestrator.errors import GitFailed
from agent_orchestrator.git.exclude import exclude
from agent_orchestrator.git.removal import Removal, plan_removal, remove_trees
from agent_orchestrator.git.worktree import add_worktree, branch_of, folder_of, open_tree
from tests.unit.git.test_repository import git
from tests.unit.git.test_worktree import branches, commit


def clear(repo: Path, run: str) -> None:
    plan = plan_removal(repo, run)
    assert plan.kept == ()
    remove_trees(repo, plan)


def test_a_merged_one_is_removed_with_its_branch(repo: Path) -> None:
    folder = add_worktree(repo, "f8c1")
    commit(folder)
    git(repo, "merge", "--quiet", branch_of("f8c1"))
    clear(repo, "f8c1")
    assert not folder.exists()
    assert branches(repo) == ["main"]


def test_merged_into_a_branch_that_is_not_checked_out_is_merged(repo: Path) -> None:
    commit(add_worktree(repo, "f8c1"))
    git(repo, "branch", "kept", branch_of("f8c1"))
    clear(repo, "f8c1")
    assert branches(repo) == ["kept", "main"]


def test_uncommitted_changes_are_never_deleted(repo: Path) -> None:
    folder = add_worktree(repo, "f8c1")
    (folder / "draft.txt").write_text("unfinished")
    (kept,) = plan_removal(repo, "f8c1").kept
    assert kept == f"{folder} has uncommitted changes (draft.txt): commit or delete them there, then prune again"


def test_a_new_file_that_only_our_own_lines_hide_is_never_deleted(repo: Path) -> None:
    exclude(repo, ("state/SCHEMA.md",))
    folder = add_worktree(repo, "f8c1")
    (folder / "state").mkdir()
    (folder / "state" / "SCHEMA.md").write_text("an agent's")
    (kept,) = plan_removal(repo, "f8c1").kept
    assert "(state/SCHEMA.md)" in kept


def test_changes_made_since_the_plan_are_not_deleted_either(repo: Path) -> None:
    folder = add_worktree(repo, "f8c1")
    plan = plan_removal(repo, "f8c1")
    (folder / "draft.txt").write_text("unfinished")
    with pytest.raises(GitFailed, match=r"uncommitted changes \(draft\.txt\)"):
        remove_trees(repo, plan)
    assert (folder / "draft.txt").exists()


def test_a_branch_with_commits_that_nobody_merged_is_kept(repo: Path) -> None:
    commit(add_worktree(repo, "f8c1"))
    assert plan_removal(repo, "f8c1").kept == ("branch orc/f8c1 has commits that are not merged",)


def test_a_branch_of_two_runs_is_kept_by_the_one_that_goes_last(repo: Path) -> None:
    commit(add_worktree(repo, "f8c1"))
    git(repo, "branch", "orc/f8c2", "orc/f8c1")
    assert plan_removal(repo, "f8c1").kept == ()
    assert plan_removal(repo, "f8c2", gone=("orc/f8c1",)).kept == ("branch orc/f8c2 has commits that are not merged",)


def test_a_branch_that_a_person_works_on_is_kept(repo: Path) -> None:
    folder = add_worktree(repo, "f8c1")
    git(repo, "worktree", "remove", str(folder))
    git(repo, "switch", "--quiet", "orc/f8c1")
    assert plan_removal(repo, "f8c1").kept == (f"branch orc/f8c1 is checked out in {repo}",)


def test_a_folder_whose_git_somebody_deleted_is_kept_with_its_files(repo: Path) -> None:
    folder = add_worktree(repo, "f8c1")
    (folder / ".git").unlink()
    (kept,) = plan_removal(repo, "f8c1").kept
    assert "its .git is gone, and there are files in it: move the folder away" in kept


def test_a_branch_whose_folder_somebody_deleted_can_be_removed(repo: Path) -> None:
    add_worktree(repo, "f8c1")
    shutil.rmtree(repo / ".agents")
    clear(repo, "f8c1")
    assert branches(repo) == ["main"]


def test_removing_what_never_was_is_fine(repo: Path, tmp_path: Path) -> None:
    clear(repo, "f8c1")
    (tmp_path / "plain").mkdir()
    assert plan_removal(tmp_path / "plain", "f8c1") == Removal()


def test_the_trees_of_a_run_go_all_or_none(repo: Path) -> None:
    for branch in ("done", "open"):
        open_tree(repo, "f8c1", Tree(branch=branch))
    open_tree(repo, "f8c12", Tree(branch="anothers"))
    commit(folder_of(repo, "f8c1", Tree(branch="open")))
    assert plan_removal(repo, "f8c1").kept == ("branch open has commits that are not merged",)
    git(repo, "merge", "--quiet", "open")
    clear(repo, "f8c1")
    assert branches(repo) == ["anothers", "main"]
