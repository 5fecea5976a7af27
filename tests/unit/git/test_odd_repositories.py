"""Repositories as people have them: sparse checkouts, and repositories inside a worktree. Nothing of them is lost or made up."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from agent_orchestrator.core.effects import KeptTree
from agent_orchestrator.git.ownership import list_uncommitted
from agent_orchestrator.git.snapshots import commit_on_branch, is_clean, save_snapshot, write_tree
from agent_orchestrator.git.tree_returns import make_copy
from agent_orchestrator.git.worktree import add_worktree
from tests.unit.git.test_repository import git

AT_US = 1_750_000_000_000_000


@pytest.fixture
def sparse(repo: Path) -> Path:
    """A repository of which only the folder `near` is checked out."""
    for name in ("near", "far"):
        (repo / name).mkdir()
        (repo / name / "file").write_text(f"{name}\n")
    git(repo, "add", "--all")
    git(repo, "commit", "--quiet", "--message", "Folders")
    git(repo, "sparse-checkout", "set", "near")
    assert not (repo / "far").exists()
    return repo


def names_in(repo: Path, tree: str) -> list[str]:
    return git(repo, "ls-tree", "-r", "--name-only", tree).splitlines()


def test_files_outside_a_sparse_checkout_are_not_taken_for_deleted(sparse: Path, tmp_path: Path) -> None:
    folder = add_worktree(sparse, "f8c1")
    (folder / "near" / "new").write_text("work\n")
    for message in ("First", "Second"):
        tree = write_tree(folder, tmp_path / "scratch")
        assert names_in(sparse, tree) == ["README.md", "far/file", "near/file", "near/new"]
        commit_on_branch(folder, tmp_path / "scratch", tree, message, AT_US, empty=True)
        assert is_clean(folder)
    assert not (folder / "far").exists()


def test_a_copy_of_a_sparse_tree_is_sparse_and_has_its_uncommitted_work(sparse: Path, tmp_path: Path) -> None:
    (sparse / "near" / "new").write_text("work\n")
    head = git(sparse, "rev-parse", "HEAD")
    saved = save_snapshot(sparse, tmp_path / "scratch", "refs/orc/x/1", "m", AT_US)
    kept = KeptTree(commit=saved.commit, head=head, branch="main")
    folder = sparse / ".agents" / "worktrees" / "copy"
    make_copy(sparse, folder, "orc/copy", kept)
    assert (folder / "near" / "new").read_text() == "work\n"
    assert not (folder / "far").exists()
    assert git(folder, "status", "--porcelain") == "?? near/new"
    make_copy(sparse, folder, "orc/copy", kept)


def test_a_person_s_own_marks_in_the_index_survive_a_commit_of_ours(repo: Path, tmp_path: Path) -> None:
    git(repo, "update-index", "--skip-worktree", "README.md")
    (repo / "new").write_text("work\n")
    commit_on_branch(repo, tmp_path / "scratch", write_tree(repo, tmp_path / "scratch"), "Work", AT_US)
    assert git(repo, "ls-files", "-t", "README.md").startswith("S ")


def make_inner(folder: Path, *, committed: bool) -> None:
    """Make a repository as a project generator does, with a folder that it ignores itself."""
    for name in (".gitignore", "src/deep/main.py", "dist/left/pad.js"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("dist\n")
    subprocess.run(["git", "init", "--quiet"], cwd=folder, check=True)
    if committed:
        git(folder, "add", "--all")
        git(folder, "commit", "--quiet", "--message", "Generated")


@pytest.mark.parametrize("committed", [True, False])
def test_the_files_of_a_repository_that_an_agent_made_are_work(repo: Path, tmp_path: Path, committed: bool) -> None:
    folder = add_worktree(repo, "f8c1")
    make_inner(folder / "app", committed=committed)
    tree = write_tree(folder, tmp_path / "scratch")
    assert names_in(repo, tree) == ["README.md", "app/.gitignore", "app/src/deep/main.py"]


def test_what_tools_make_for_themselves_is_no_work(repo: Path, tmp_path: Path) -> None:
    folder = add_worktree(repo, "f8c1")
    work = ["new.py", "src/__pycache__.py", "src/my_node_modules/work.js"]
    made = [".DS_Store", ".venv/bin/python", "__pycache__/new.pyc", "app/node_modules/left/pad.js", "src/deep/__pycache__/x.pyc"]
    for name in (*work, *made):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("text\n")
    make_inner(folder / "inner", committed=True)
    (folder / "inner/node_modules").mkdir()
    (folder / "inner/node_modules/pad.js").write_text("text\n")
    tree = write_tree(folder, tmp_path / "scratch")
    assert names_in(repo, tree) == sorted(["README.md", "inner/.gitignore", "inner/src/deep/main.py", *work])
    assert list_uncommitted(folder) == sorted(["inner/", *work])


def test_what_tools_make_is_work_where_git_tracks_some_of_the_kind(repo: Path, tmp_path: Path) -> None:
    for name in ("node_modules/left/pad.js", "node_modules/new.js", "__pycache__/x.pyc"):
        (repo / name).parent.mkdir(parents=True, exist_ok=True)
        (repo / name).write_text("text\n")
    git(repo, "add", "node_modules/left")
    git(repo, "commit", "--quiet", "--message", "Vendored")
    tree = write_tree(repo, tmp_path / "scratch")
    assert names_in(repo, tree) == ["README.md", "node_modules/left/pad.js", "node_modules/new.js"]


def test_of_a_clone_where_a_person_works_only_its_commit_is_recorded(repo: Path, tmp_path: Path) -> None:
    make_inner(repo / "clone", committed=True)
    tree = write_tree(repo, tmp_path / "scratch")
    assert git(repo, "ls-tree", tree, "clone").startswith("160000 commit")


def test_a_worktree_inside_a_worktree_is_none_of_its_work(repo: Path, tmp_path: Path) -> None:
    folder = add_worktree(repo, "f8c1")
    git(folder, "worktree", "add", "--quiet", ".claude/aside", "-b", "aside")
    tree = write_tree(folder, tmp_path / "scratch")
    assert names_in(repo, tree) == ["README.md"]
