"""A working tree's identity: everything that is not ignored and not ours, and nothing of the repository is touched."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent_orchestrator.errors import GitFailed
from agent_orchestrator.git.run import git as run_git
from agent_orchestrator.git.tree import tree_of
from tests.unit.git.test_locate import git


@pytest.fixture
def scratch(tmp_path: Path) -> Path:
    folder = tmp_path / "scratch"
    folder.mkdir()
    return folder


def test_a_clean_tree_is_the_commits_tree(repo: Path, scratch: Path) -> None:
    assert tree_of(repo, scratch) == git(repo, "rev-parse", "HEAD^{tree}")


def test_every_change_that_counts_changes_it(repo: Path, scratch: Path) -> None:
    seen = [tree_of(repo, scratch)]
    (repo / "README.md").write_text("Changed.\n")
    seen.append(tree_of(repo, scratch))
    (repo / "new.txt").write_text("untracked\n")
    seen.append(tree_of(repo, scratch))
    (repo / "new.txt").chmod(0o755)
    seen.append(tree_of(repo, scratch))
    (repo / "README.md").unlink()
    seen.append(tree_of(repo, scratch))
    assert None not in seen
    assert len(set(seen)) == 5


def test_what_is_ignored_or_ours_does_not_count_even_if_it_is_tracked(repo: Path, scratch: Path) -> None:
    (repo / ".gitignore").write_text("*.log\n")
    for folder in (".agents", "state/runs", "state/results/attempts"):
        (repo / folder).mkdir(parents=True)
        (repo / folder / "old.json").write_text("{}")
    git(repo, "add", "--all", "--force")
    git(repo, "commit", "--quiet", "--message", "Ours is tracked")
    before = tree_of(repo, scratch)
    (repo / "run.log").write_text("noise")
    for folder in (".agents", "state/runs", "state/results/attempts"):
        (repo / folder / "old.json").write_text('{"changed": true}')
        (repo / folder / "new.json").write_text("{}")
    assert before is not None
    assert tree_of(repo, scratch) == before
    (repo / "state" / "machine.py").write_text("a project's own")
    assert tree_of(repo, scratch) != before


def test_neither_the_index_nor_the_objects_are_touched(repo: Path, scratch: Path) -> None:
    (repo / "new.txt").write_text("untracked\n")
    index = (repo / ".git" / "index").read_bytes()
    objects = sorted((repo / ".git" / "objects").rglob("*"))
    assert tree_of(repo, scratch) is not None
    assert (repo / ".git" / "index").read_bytes() == index
    assert sorted((repo / ".git" / "objects").rglob("*")) == objects
    assert list(scratch.iterdir()) == [], "and nothing is left in the scratch folder"


def test_somebody_elses_index_lock_does_not_disturb(repo: Path, scratch: Path) -> None:
    (repo / ".git" / "index.lock").touch()
    assert tree_of(repo, scratch) == git(repo, "rev-parse", "HEAD^{tree}")


def test_a_worktree_has_its_own(repo: Path, tmp_path: Path, scratch: Path) -> None:
    git(repo, "worktree", "add", "--quiet", str(tmp_path / "tree"))
    (tmp_path / "tree" / "README.md").write_text("Elsewhere.\n")
    assert tree_of(tmp_path / "tree", scratch) != tree_of(repo, scratch)


def test_a_repository_without_a_commit_has_one_and_no_repository_has_none(tmp_path: Path, scratch: Path) -> None:
    fresh = tmp_path / "fresh"
    fresh.mkdir()
    assert tree_of(fresh, scratch) is None
    git(fresh, "init", "--quiet")
    (fresh / "a").write_text("a")
    assert tree_of(fresh, scratch) is not None


def test_a_failure_of_git_is_a_sentence(repo: Path) -> None:
    with pytest.raises(GitFailed, match=r"`git rev-parse` failed in .*/repo: fatal: "):
        run_git(repo, "rev-parse", "--verify", "nowhere")
