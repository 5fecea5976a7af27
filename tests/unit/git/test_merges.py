"""Merging without a checkout: the same commit when repeated, nothing of the user's lost, a conflict told in full."""

from __future__ import annotations

import subprocess
from pathlib import Path

import msgspec
import pytest

from agent_orchestrator.core.effects import Merge
from agent_orchestrator.core.ids import EffectId
from agent_orchestrator.core.inputs import MergeEnded, MergeVerdict
from agent_orchestrator.core.limits import CONFLICT_CHARS
from agent_orchestrator.git.merges import (
    Conflicts,
    PlannedMerge,
    checkout_of,
    explain_too_old,
    forecast_conflicts,
    land_merge,
    merge_trees,
    plan_merge,
)
from agent_orchestrator.git.worktree import checkout_detached

AT_US = 1_750_000_000_000_000


def git(repo: Path, *arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=repo, check=True, capture_output=True, text=True).stdout.strip()


def branch(repo: Path, name: str, files: dict[str, str], start: str = "main") -> str:
    """A branch with one commit, made in a worktree of its own."""
    folder = repo.parent / f"wt-{name.replace('/', '-')}"
    if not folder.exists():
        git(repo, "worktree", "add", "--quiet", "-b", name, str(folder), start)
    for path, text in files.items():
        (folder / path).write_text(text)
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--message", f"Work on {name}")
    return git(folder, "rev-parse", "HEAD")


def merge(name: str, into: str = "main") -> Merge:
    effect = f"x/merge/i1.a1.l1.{name}"
    return Merge(
        id=EffectId(effect), unit="merge", branch=name, into=into, message=f"Merge {name}\n\nOrc-Effect: {effect}\n", at_us=AT_US
    )


def planned(repo: Path, effect: Merge) -> PlannedMerge:
    plan = plan_merge(repo, effect)
    assert isinstance(plan, PlannedMerge), plan
    return plan


def landed(repo: Path, effect: Merge) -> str:
    ended = land_merge(repo, effect, planned(repo, effect))
    assert ended.verdict is MergeVerdict.LANDED, ended
    assert ended.commit is not None
    return ended.commit


def test_a_clean_checkout_on_the_target_is_brought_along(repo: Path) -> None:
    branch(repo, "feature/a", {"a.py": "a\n"})
    (repo / "mine.txt").write_text("untracked, and not in the way\n")
    commit = landed(repo, merge("feature/a"))
    assert git(repo, "rev-parse", "main") == commit == git(repo, "rev-parse", "HEAD")
    assert (repo / "a.py").read_text() == "a\n"
    assert git(repo, "status", "--porcelain") == "?? mine.txt"
    assert git(repo, "log", "-1", "--format=%(trailers:key=Orc-Effect,valueonly)") == merge("feature/a").id


def test_a_target_that_nobody_has_checked_out_is_only_moved(repo: Path) -> None:
    git(repo, "branch", "trunk")
    branch(repo, "feature/a", {"a.py": "a\n"})
    commit = landed(repo, merge("feature/a", "trunk"))
    assert git(repo, "rev-parse", "trunk") == commit
    assert not (repo / "a.py").exists()
    assert git(repo, "status", "--porcelain") == ""


def test_repeated_it_is_the_same_commit_and_once_landed_it_is_found(repo: Path) -> None:
    branch(repo, "feature/a", {"a.py": "a\n"})
    effect = merge("feature/a")
    first = planned(repo, effect)
    assert planned(repo, effect) == first
    commit = landed(repo, effect)
    assert commit == first.commit
    assert land_merge(repo, effect, first).commit == commit, "a crash came between landing and its fact"
    again = plan_merge(repo, effect)
    assert isinstance(again, MergeEnded)
    assert (again.verdict, again.commit) == (MergeVerdict.LANDED, commit)


@pytest.mark.parametrize("how", ["edited", "staged", "untracked", "ignored"])
def test_changes_of_the_user_in_the_way_hold_the_merge_up(repo: Path, how: str) -> None:
    branch(repo, "feature/a", {"README.md": "theirs\n", "new.txt": "theirs\n"})
    name = "README.md" if how in ("edited", "staged") else "new.txt"
    (repo / name).write_text("mine\n")
    if how == "staged":
        git(repo, "add", name)
    if how == "ignored":
        (repo / ".git" / "info" / "exclude").write_text("new.txt\n")
    before = git(repo, "rev-parse", "main"), git(repo, "status", "--porcelain")
    ended = plan_merge(repo, merge("feature/a"))
    assert isinstance(ended, MergeEnded)
    assert ended.verdict is MergeVerdict.HELD
    assert name in ended.detail
    way = "commit or stash them" if how in ("edited", "staged") else "which git does not track: move it away"
    assert ended.detail.endswith(way)
    assert (git(repo, "rev-parse", "main"), git(repo, "status", "--porcelain")) == before
    assert (repo / name).read_text() == "mine\n"


def test_changes_that_come_while_the_check_runs_hold_it_up_too(repo: Path) -> None:
    branch(repo, "feature/a", {"README.md": "theirs\n"})
    effect = merge("feature/a")
    plan = planned(repo, effect)
    (repo / "README.md").write_text("mine\n")
    assert land_merge(repo, effect, plan).verdict is MergeVerdict.HELD
    assert (repo / "README.md").read_text() == "mine\n"


@pytest.mark.parametrize("resolved", [False, True])
def test_a_merge_of_the_users_own_that_is_not_concluded_holds_it_up(repo: Path, resolved: bool) -> None:
    branch(repo, "theirs", {"README.md": "theirs\n"})
    branch(repo, "feature/a", {"a.py": "a\n"})
    (repo / "README.md").write_text("mine\n")
    git(repo, "commit", "--quiet", "--all", "--message", "Mine")
    subprocess.run(["git", "merge", "--quiet", "theirs"], cwd=repo, check=False, capture_output=True)
    if resolved:
        git(repo, "add", "README.md")
    ended = plan_merge(repo, merge("feature/a"))
    assert isinstance(ended, MergeEnded)
    assert ended.verdict is MergeVerdict.HELD
    assert ended.detail.endswith("a merge is not concluded; commit or abort it" if resolved else "has conflicts; resolve them")


def test_a_target_that_somebody_rebases_is_left_alone(repo: Path) -> None:
    branch(repo, "theirs", {"README.md": "theirs\n"})
    branch(repo, "feature/a", {"a.py": "a\n"})
    (repo / "README.md").write_text("mine\n")
    git(repo, "commit", "--quiet", "--all", "--message", "Mine")
    subprocess.run(["git", "rebase", "--quiet", "theirs"], cwd=repo, check=False, capture_output=True)
    ended = plan_merge(repo, merge("feature/a"))
    assert isinstance(ended, MergeEnded)
    assert (ended.verdict, ended.detail) == (MergeVerdict.HELD, "main is being rebased: finish or abort that")
    git(repo, "rebase", "--abort")
    landed(repo, merge("feature/a"))


def test_changes_of_the_user_elsewhere_stay_as_they_are(repo: Path) -> None:
    (repo / "other.txt").write_text("one\n")
    git(repo, "add", "--all")
    git(repo, "commit", "--quiet", "--message", "Other")
    branch(repo, "feature/a", {"a.py": "a\n"})
    (repo / "other.txt").write_text("two\n")
    landed(repo, merge("feature/a"))
    assert (repo / "other.txt").read_text() == "two\n"
    assert git(repo, "status", "--porcelain") == "M other.txt"


def test_files_that_are_already_as_the_merge_has_them_are_not_in_the_way(repo: Path) -> None:
    branch(repo, "feature/a", {"README.md": "theirs\n"})
    effect = merge("feature/a")
    plan = planned(repo, effect)
    git(repo, "read-tree", "-m", "-u", "HEAD", plan.commit)  # a power cut before the branch was moved
    assert landed(repo, effect) == plan.commit
    assert git(repo, "status", "--porcelain") == ""


def test_a_target_that_moved_meanwhile_is_not_moved_again(repo: Path) -> None:
    branch(repo, "feature/a", {"a.py": "a\n"})
    effect = merge("feature/a")
    plan = planned(repo, effect)
    (repo / "b.py").write_text("b\n")
    git(repo, "add", "--all")
    git(repo, "commit", "--quiet", "--message", "Meanwhile")
    tip = git(repo, "rev-parse", "main")
    ended = land_merge(repo, effect, plan)
    assert (ended.verdict, ended.again) == (MergeVerdict.MOVED, True)
    assert git(repo, "rev-parse", "main") == tip
    assert landed(repo, effect) != plan.commit


def test_a_conflict_names_the_paths_and_shows_the_places(repo: Path) -> None:
    branch(repo, "feature/a", {"README.md": "from a\n"})
    branch(repo, "feature/b", {"README.md": "from b\n"})
    landed(repo, merge("feature/a"))
    tip = git(repo, "rev-parse", "main")
    ended = plan_merge(repo, merge("feature/b"))
    assert isinstance(ended, MergeEnded)
    assert (ended.verdict, ended.conflicts) == (MergeVerdict.CONFLICT, ("README.md",))
    for line in ("<<<<<<< ", "from a", "=======", "from b", ">>>>>>> "):
        assert line in ended.conflict_text
    assert git(repo, "rev-parse", "main") == tip


def test_a_file_that_one_side_removed_is_a_conflict_in_words(repo: Path) -> None:
    branch(repo, "feature/a", {"README.md": "from a\n"})
    folder = repo.parent / "wt-b"
    git(repo, "worktree", "add", "--quiet", "-b", "b", str(folder))
    git(folder, "rm", "--quiet", "README.md")
    git(folder, "commit", "--quiet", "--message", "Remove it")
    landed(repo, merge("feature/a"))
    ended = plan_merge(repo, merge("b"))
    assert isinstance(ended, MergeEnded)
    assert ended.conflicts == ("README.md",)
    assert "README.md" in ended.conflict_text


def test_the_text_of_a_conflict_is_bounded(repo: Path) -> None:
    branch(repo, "a", {"README.md": "a" * CONFLICT_CHARS + "\n"})
    branch(repo, "b", {"README.md": "b" * CONFLICT_CHARS + "\n"})
    found = merge_trees(repo, "a", "b")
    assert isinstance(found, Conflicts)
    assert len(found.text) < CONFLICT_CHARS + 20
    assert "(cut)" in found.text


def test_branches_that_are_not_there_are_named(repo: Path, tmp_path: Path) -> None:
    for effect, name in ((merge("nowhere"), "nowhere"), (merge("main", "gone"), "gone")):
        ended = plan_merge(repo, effect)
        assert isinstance(ended, MergeEnded)
        assert ended.verdict is MergeVerdict.UNAVAILABLE
        assert name in ended.detail
    nothing = plan_merge(tmp_path, merge("main"))
    assert isinstance(nothing, MergeEnded)
    assert "not in a git repository" in nothing.detail


def test_a_git_that_is_too_old_is_told_so() -> None:
    assert explain_too_old("git version 2.34.1") == "git version 2.34.1 is too old to merge branches; install git 2.38 or newer"
    for fine in ("git version 2.38.0", "git version 3.0", "git version 2.39.5 (Apple Git-154)", "odd"):
        assert explain_too_old(fine) is None


def test_a_collision_of_live_branches_is_foreseen(repo: Path) -> None:
    branch(repo, "a", {"README.md": "a\n"})
    branch(repo, "b", {"README.md": "b\n"})
    branch(repo, "c", {"c.py": "c\n"})
    assert forecast_conflicts(repo, "a", ("a", "b", "c", "gone")) == (("b", ("README.md",)),)
    assert forecast_conflicts(repo, "c", ("a", "b")) == ()


def test_a_merge_is_checked_in_a_worktree_that_carries_nothing_over(repo: Path) -> None:
    branch(repo, "a", {"a.py": "a\n"})
    folder = repo / ".agents" / "worktrees" / "x~~main"
    checkout_detached(repo, folder, "main")
    (folder / "left.txt").write_text("by an earlier check\n")
    (folder / "README.md").write_text("changed by it\n")
    commit = planned(repo, merge("a")).commit
    checkout_detached(repo, folder, commit)
    assert sorted(path.name for path in folder.iterdir()) == [".git", "README.md", "a.py"]
    assert (folder / "README.md").read_text() == "A repository to work on.\n"
    assert checkout_of(repo, "main") == repo


def test_a_plan_survives_being_stored() -> None:
    plan = PlannedMerge(commit="c" * 40, base="b" * 40)
    assert msgspec.json.decode(msgspec.json.encode(plan), type=PlannedMerge) == plan
