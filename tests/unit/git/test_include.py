"""`.worktreeinclude`: untracked files that agents need are copied, never overwritten, never committed for them."""

from __future__ import annotations

import subprocess
from pathlib import Path

from agent_orchestrator.core.effects import Checkpoint, Tree
from agent_orchestrator.core.ids import EffectId
from agent_orchestrator.git.checkpoint import take_checkpoint
from agent_orchestrator.git.removal import plan_removal, remove_trees
from agent_orchestrator.git.worktree import folder_of, open_tree

AT_US = 1_750_000_000_000_000
TREE = Tree(branch="feature/a", start="main")


def git(repo: Path, *arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=repo, check=True, capture_output=True, text=True).stdout.strip()


def prepared(repo: Path) -> Path:
    (repo / ".gitignore").write_text(".env\nbuild/\n")
    (repo / ".worktreeinclude").write_text("# what agents need\n.env\n/config/*.local\nbuild/cache\n")
    git(repo, "add", "--all")
    git(repo, "commit", "--quiet", "--message", "Settings")
    for path in (".env", "config/a.local", "config/b.shared", "build/cache/x", "build/out"):
        (repo / path).parent.mkdir(parents=True, exist_ok=True)
        (repo / path).write_text(path)
    return folder_of(repo, "x", TREE)


def checkpoint(repo: Path, tmp_path: Path, message: str = "Work\n\nOrc-Run: x\n") -> object:
    effect = Checkpoint(
        id=EffectId("x/A/i1.a1.l1.save"), unit="A", ref="refs/orc/x/A-1", message="saved", tree=TREE, at_us=AT_US,
        start="main", branch_message=message,
    )  # fmt: skip
    return take_checkpoint(folder_of(repo, "x", TREE), tmp_path / "scratch", effect)


def test_what_the_patterns_name_is_copied_and_nothing_else(repo: Path) -> None:
    folder = prepared(repo)
    open_tree(repo, "x", TREE)
    assert (folder / ".env").read_text() == ".env"
    assert (folder / "config" / "a.local").read_text() == "config/a.local"
    assert (folder / "build" / "cache" / "x").exists()
    assert not (folder / "config" / "b.shared").exists()
    assert not (folder / "build" / "out").exists()
    assert not (folder / ".agents").exists()


def test_what_the_agent_changed_is_not_overwritten_and_what_is_missing_comes_back(repo: Path) -> None:
    folder = prepared(repo)
    open_tree(repo, "x", TREE)
    (folder / ".env").write_text("changed by the agent")
    (folder / "config" / "a.local").unlink()
    open_tree(repo, "x", TREE)
    assert (folder / ".env").read_text() == "changed by the agent"
    assert (folder / "config" / "a.local").exists()


def test_copied_files_are_left_out_of_what_is_committed_for_the_agent(repo: Path, tmp_path: Path) -> None:
    folder = prepared(repo)
    open_tree(repo, "x", TREE)
    (folder / "work.py").write_text("work\n")
    ended = checkpoint(repo, tmp_path)
    assert [change.path for change in ended.changed] == ["work.py"]  # type: ignore[attr-defined]
    assert git(folder, "show", "--name-only", "--format=%s", "feature/a").split() == ["Work", "work.py"]
    assert git(folder, "log", "-1", "--format=%(trailers:key=Orc-Run,valueonly)") == "x"
    assert [commit.subject for commit in ended.commits] == ["Work"]  # type: ignore[attr-defined]


def test_a_copied_file_that_the_agent_changed_or_made_is_work(repo: Path, tmp_path: Path) -> None:
    folder = prepared(repo)
    open_tree(repo, "x", TREE)
    (folder / "config" / "a.local").write_text("changed by the agent")
    (folder / "config" / "new.local").write_text("made by the agent")
    (folder / ".env").write_text("changed, and ignored by the person's rules")
    ended = checkpoint(repo, tmp_path)
    assert [change.path for change in ended.changed] == ["config/a.local", "config/new.local"]  # type: ignore[attr-defined]


def test_a_worktree_with_nothing_but_copied_files_goes(repo: Path) -> None:
    folder = prepared(repo)
    open_tree(repo, "x", TREE)
    remove_trees(repo, plan_removal(repo, "x"))
    assert not folder.exists()
    assert (repo / "config" / "a.local").exists()


def test_without_the_file_nothing_is_copied(repo: Path) -> None:
    (repo / "note").write_text("untracked")
    open_tree(repo, "x", TREE)
    assert not (folder_of(repo, "x", TREE) / "note").exists()


def test_an_agent_on_another_branch_is_told_so(repo: Path, tmp_path: Path) -> None:
    open_tree(repo, "x", TREE)
    folder = folder_of(repo, "x", TREE)
    git(folder, "checkout", "--quiet", "-b", "elsewhere")
    ended = checkpoint(repo, tmp_path)
    assert "left on branch elsewhere instead of feature/a" in ended.unavailable  # type: ignore[attr-defined]


def test_a_merge_that_the_agent_resolved_and_did_not_commit_is_committed_with_both_parents(repo: Path, tmp_path: Path) -> None:
    open_tree(repo, "x", TREE)
    folder = folder_of(repo, "x", TREE)
    (folder / "README.md").write_text("mine\n")
    git(folder, "commit", "--quiet", "--all", "--message", "Mine")
    (repo / "README.md").write_text("theirs\n")
    git(repo, "commit", "--quiet", "--all", "--message", "Theirs")
    subprocess.run(["git", "merge", "--quiet", "main"], cwd=folder, check=False, capture_output=True)
    assert "merge was left unfinished, with conflict markers in README.md" in checkpoint(repo, tmp_path).unavailable  # type: ignore[attr-defined]
    (folder / "README.md").write_text("mine and theirs\n")
    ended = checkpoint(repo, tmp_path)
    assert ended.unavailable == ""  # type: ignore[attr-defined]
    assert len(git(folder, "log", "-1", "--format=%P").split()) == 2
    assert git(folder, "status", "--porcelain") == ""
    assert [change.path for change in ended.changed] == ["README.md"]  # type: ignore[attr-defined]


def test_the_worktree_of_merges_goes_with_the_run_and_unmerged_work_stays(repo: Path, tmp_path: Path) -> None:
    from agent_orchestrator.git.worktree import checkout_detached, merge_folder

    open_tree(repo, "x", TREE)
    folder = folder_of(repo, "x", TREE)
    checkout_detached(repo, merge_folder(repo, "x", "main"), "main")
    (merge_folder(repo, "x", "main") / "left").write_text("by a check")
    (folder / "work.py").write_text("work\n")
    told = f"{folder} has uncommitted changes (work.py): commit or delete them there, then prune again"
    assert plan_removal(repo, "x").kept == (told,)
    checkpoint(repo, tmp_path)
    assert plan_removal(repo, "x").kept == ("branch feature/a has commits that are not merged",)
    git(repo, "merge", "--quiet", "feature/a")
    remove_trees(repo, plan_removal(repo, "x"))
    assert not merge_folder(repo, "x", "main").exists()
    assert (repo / "work.py").read_text() == "work\n"
