"""A working tree's identity: everything that is not ignored and not ours, and nothing of the repository is touched."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from agent_orchestrator.errors import GitFailed
from agent_orchestrator.git.command import git as run_git
from agent_orchestrator.git.exclude import exclude
from agent_orchestrator.git.ownership import list_uncommitted
from agent_orchestrator.git.snapshots import identify_tree
from tests.counting import count_calls, until_settled
from tests.unit.git.test_repository import git


@pytest.fixture
def scratch(tmp_path: Path) -> Path:
    folder = tmp_path / "scratch"
    folder.mkdir()
    return folder


def test_a_clean_tree_is_the_commits_tree(repo: Path, scratch: Path) -> None:
    assert identify_tree(repo, scratch) == git(repo, "rev-parse", "HEAD^{tree}")


def test_to_identify_a_tree_git_is_asked_four_times_at_most(repo: Path, scratch: Path) -> None:
    until_settled(repo)
    identify_tree(repo, scratch)  # Its settings are listed once.
    clean = count_calls(lambda: identify_tree(repo, scratch))
    (repo / "README.md").write_text("Changed.\n")
    (repo / "new.txt").write_text("untracked\n")
    changed = count_calls(lambda: identify_tree(repo, scratch))
    assert (clean["fork_exec"], changed["fork_exec"]) == (3, 4)


def test_every_change_that_counts_changes_it(repo: Path, scratch: Path) -> None:
    seen = [identify_tree(repo, scratch)]
    (repo / "README.md").write_text("Changed.\n")
    seen.append(identify_tree(repo, scratch))
    (repo / "new.txt").write_text("untracked\n")
    seen.append(identify_tree(repo, scratch))
    (repo / "new.txt").chmod(0o755)
    seen.append(identify_tree(repo, scratch))
    (repo / "README.md").unlink()
    seen.append(identify_tree(repo, scratch))
    assert None not in seen
    assert len(set(seen)) == 5


def test_what_is_ignored_or_ours_does_not_count_even_if_it_is_tracked(repo: Path, scratch: Path) -> None:
    (repo / ".gitignore").write_text("*.log\n!state/runs/ours.json\n")
    (repo / "state" / "runs").mkdir(parents=True)
    (repo / "state" / "runs" / "tracked.json").write_text("{}")
    git(repo, "add", "--all")
    git(repo, "commit", "--quiet", "--message", "One of ours is tracked")
    exclude(repo, ("state/runs/tracked.json", "state/runs/ours.json"))
    before = identify_tree(repo, scratch)
    assert before == git(repo, "rev-parse", "HEAD^{tree}"), "what is tracked counts as it was committed"
    (repo / "run.log").write_text("noise")
    for name in ("tracked", "ours"):
        (repo / "state" / "runs" / f"{name}.json").write_text('{"changed": true}')
    assert identify_tree(repo, scratch) == before
    git(repo, "add", "state/runs/tracked.json")
    assert identify_tree(repo, scratch) == before, "nor does it count once an agent staged it"
    (repo / "state" / "runs" / "theirs.json").write_text("a project's own")
    assert identify_tree(repo, scratch) != before


def test_in_a_worktree_a_path_of_ours_is_work_like_any_other(repo: Path, tmp_path: Path, scratch: Path) -> None:
    exclude(repo, ("state/SCHEMA.md",))
    git(repo, "worktree", "add", "--quiet", str(tmp_path / "tree"))
    before = identify_tree(tmp_path / "tree", scratch)
    (tmp_path / "tree" / "state").mkdir()
    (tmp_path / "tree" / "state" / "SCHEMA.md").write_text("an agent's")
    assert git(tmp_path / "tree", "status", "--porcelain") == "", "git itself has one list for all trees"
    assert list_uncommitted(tmp_path / "tree") == ["state/SCHEMA.md"]
    assert identify_tree(tmp_path / "tree", scratch) != before


def test_names_of_any_kind_count(repo: Path, scratch: Path) -> None:
    names = [b"a[b]*.txt", b":(top)x", b"with\nnewline", b"with space ", b"\xff\xfe.bin", b"-n", b"\xc3\xbc"]
    for name in names:
        (repo / os.fsdecode(name)).write_text("new")
    before = identify_tree(repo, scratch)
    git(repo, "add", "--all")
    assert before == git(repo, "write-tree")


def test_a_repository_inside_counts_by_its_commit_and_does_not_stop_anything_without_one(repo: Path, scratch: Path) -> None:
    before = identify_tree(repo, scratch)
    git(repo, "init", "--quiet", "inner")
    (repo / "inner" / "a").write_text("a")
    assert identify_tree(repo, scratch) == before
    assert list_uncommitted(repo) == ["inner/"]
    git(repo / "inner", "add", "a")
    git(repo / "inner", "-c", "user.name=x", "-c", "user.email=x@x", "commit", "--quiet", "--message", "Inner")
    assert identify_tree(repo, scratch) != before


def test_neither_the_index_nor_the_objects_are_touched(repo: Path, scratch: Path) -> None:
    (repo / "new.txt").write_text("untracked\n")
    index = (repo / ".git" / "index").read_bytes()
    objects = sorted((repo / ".git" / "objects").rglob("*"))
    assert identify_tree(repo, scratch) is not None
    assert (repo / ".git" / "index").read_bytes() == index
    assert sorted((repo / ".git" / "objects").rglob("*")) == objects
    assert list(scratch.iterdir()) == [], "and nothing is left in the scratch folder"


def test_somebody_elses_index_lock_does_not_disturb(repo: Path, scratch: Path) -> None:
    (repo / ".git" / "index.lock").touch()
    assert identify_tree(repo, scratch) == git(repo, "rev-parse", "HEAD^{tree}")


def test_a_worktree_has_its_own(repo: Path, tmp_path: Path, scratch: Path) -> None:
    git(repo, "worktree", "add", "--quiet", str(tmp_path / "tree"))
    (tmp_path / "tree" / "README.md").write_text("Elsewhere.\n")
    assert identify_tree(tmp_path / "tree", scratch) != identify_tree(repo, scratch)


def test_a_repository_without_a_commit_has_one_and_no_repository_has_none(tmp_path: Path, scratch: Path) -> None:
    fresh = tmp_path / "fresh"
    fresh.mkdir()
    assert identify_tree(fresh, scratch) is None
    git(fresh, "init", "--quiet")
    (fresh / "a").write_text("a")
    assert identify_tree(fresh, scratch) is not None


def test_a_failure_of_git_is_a_sentence(repo: Path) -> None:
    with pytest.raises(GitFailed, match=r"`git rev-parse` failed in .*/repo: fatal: "):
        run_git(repo, "rev-parse", "--verify", "nowhere")
