"""Branches of runs in the user's checkout: made, never overwritten, moved back with everything kept."""

from __future__ import annotations

from pathlib import Path

from agent_orchestrator.core.effects import Checkpoint, Tree
from agent_orchestrator.git.branches import find_branch, switch_to_new
from agent_orchestrator.git.checkpoint import take_checkpoint
from agent_orchestrator.git.exclude import exclude
from agent_orchestrator.git.ownership import list_uncommitted
from agent_orchestrator.git.snapshots import find_head
from tests.unit.git.test_repository import git

AT_US = 1_700_000_000_000_000


def checkpoint(effect: str, **more: object) -> Checkpoint:
    given = {"ref": f"refs/orc/r/{effect}", "message": f"{effect}\n", "branch_message": f"{effect}\n", **more}
    return Checkpoint(id=f"r/u/{effect}", unit="u", at_us=AT_US, **given)  # type: ignore[arg-type]


def test_a_branch_that_exists_is_left_alone_and_the_new_one_numbered(repo: Path) -> None:
    assert switch_to_new(repo, "phases/task") == "phases/task"
    assert switch_to_new(repo, "phases/task") == "phases/task-2"
    assert find_branch(repo) == "phases/task-2"


def test_uncommitted_files_are_listed_but_ours_are_not(repo: Path) -> None:
    (repo / "new file").write_text("x")
    (repo / "README.md").write_text("changed")
    (repo / ".agents" / "runs" / "x").mkdir(parents=True)
    (repo / ".agents" / "runs" / "x" / "state").write_text("ours")
    (repo / ".agents" / "notes").write_text("theirs")
    exclude(repo, (".agents/runs/x/",))
    assert list_uncommitted(repo) == [".agents/notes", "README.md", "new file"]


def test_an_empty_checkpoint_is_a_commit_and_the_same_one_when_it_is_repeated(repo: Path, tmp_path: Path) -> None:
    effect = checkpoint("one", empty=True)
    first = take_checkpoint(repo, tmp_path, effect)
    assert first.branch_commit is not None
    assert take_checkpoint(repo, tmp_path, effect).branch_commit == first.branch_commit == find_head(repo)
    assert take_checkpoint(repo, tmp_path, checkpoint("two")).branch_commit is None


def test_an_earlier_snapshot_can_be_committed_before_what_came_after_it(repo: Path, tmp_path: Path) -> None:
    (repo / "work").write_text("work")
    kept = take_checkpoint(repo, tmp_path, checkpoint("work", branch_message=None))
    (repo / "fix").write_text("fix")
    take_checkpoint(repo, tmp_path, checkpoint("kept", of=kept.commit))
    assert git(repo, "show", "--format=", "--name-only", "HEAD").split() == ["work"]
    take_checkpoint(repo, tmp_path, checkpoint("fix"))
    assert git(repo, "show", "--format=", "--name-only", "HEAD").split() == ["fix"]
    assert git(repo, "status", "--porcelain") == ""


def test_nothing_is_committed_on_a_branch_that_is_not_the_runs(repo: Path, tmp_path: Path) -> None:
    before = find_head(repo)
    ended = take_checkpoint(repo, tmp_path, checkpoint("one", branch="phases/task", empty=True))
    assert "instead of phases/task" in ended.unavailable
    assert find_head(repo) == before


def test_work_is_saved_also_when_somebody_deleted_what_it_began_at(repo: Path, tmp_path: Path) -> None:
    git(repo, "switch", "--quiet", "--create", "feature/b")
    (repo / "b.py").write_text("b\n")
    assert take_checkpoint(repo, tmp_path, checkpoint("b", tree=Tree(branch="feature/b"), start="gone")).branch_commit is not None


def test_a_merge_that_the_agent_left_to_be_committed_is_not_its_work(repo: Path, tmp_path: Path) -> None:
    git(repo, "switch", "--quiet", "--create", "feature/b")
    (repo / "b.py").write_text("b\n")
    git(repo, "add", "--all")
    git(repo, "commit", "--quiet", "--message", "b")
    git(repo, "switch", "--quiet", "main")
    (repo / "a.py").write_text("somebody else's\n")
    git(repo, "add", "--all")
    git(repo, "commit", "--quiet", "--message", "a")
    git(repo, "switch", "--quiet", "feature/b")
    git(repo, "merge", "--quiet", "--no-commit", "main")
    saved = take_checkpoint(repo, tmp_path, checkpoint("merged", tree=Tree(branch="feature/b"), start="main"))
    assert [change.path for change in saved.changed] == ["b.py"]
    assert "somebody else's" not in saved.diff
