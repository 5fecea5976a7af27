"""Trees under refs: made without touching the user's index, the same when repeated, brought back without losing anything."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from agent_orchestrator.core.effects import Checkpoint
from agent_orchestrator.core.ids import EffectId
from agent_orchestrator.errors import GitFailed
from agent_orchestrator.git.checkpoint import take_checkpoint
from agent_orchestrator.git.diffs import count_changes, list_changes
from agent_orchestrator.git.exclude import exclude
from agent_orchestrator.git.snapshots import (
    Backup,
    commit_on_branch,
    delete_refs,
    find_head,
    is_clean,
    restore_snapshot,
    save_snapshot,
)

AT_US = 1_750_000_000_000_000
REF = "refs/orc/x/1"


def git(repo: Path, *arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=repo, check=True, capture_output=True, text=True).stdout.strip()


def test_a_snapshot_has_untracked_files_and_leaves_index_branch_and_files_alone(repo: Path, tmp_path: Path) -> None:
    (repo / "README.md").write_text("staged\n")
    git(repo, "add", "README.md")
    (repo / "README.md").write_text("edited\n")
    (repo / "new.txt").write_text("new\n")
    (repo / ".gitignore").write_text("secret\n")
    (repo / "secret").write_text("s\n")
    exclude(repo, (".agents/runs/x/", ".aiwg/ralph/registry.json"))
    for ours in (".agents/runs/x/run_state.json", ".aiwg/ralph/registry.json"):
        (repo / ours).parent.mkdir(parents=True)
        (repo / ours).write_text("{}")
    before = git(repo, "status", "--porcelain"), git(repo, "rev-parse", "HEAD"), git(repo, "diff", "--cached")
    saved = save_snapshot(repo, tmp_path / "scratch", REF, "m", AT_US)
    assert git(repo, "ls-tree", "-r", "--name-only", saved.commit).split() == [".gitignore", "README.md", "new.txt"]
    assert git(repo, "show", f"{REF}:README.md") == "edited"
    assert (git(repo, "status", "--porcelain"), git(repo, "rev-parse", "HEAD"), git(repo, "diff", "--cached")) == before


def test_repeated_it_is_the_same_commit(repo: Path, tmp_path: Path) -> None:
    (repo / "a").write_text("a")
    first = save_snapshot(repo, tmp_path / "scratch", REF, "m", AT_US)
    git(repo, "update-ref", "-d", REF)
    assert save_snapshot(repo, tmp_path / "scratch", REF, "m", AT_US) == first
    (repo / "a").write_text("later")
    assert save_snapshot(repo, tmp_path / "scratch", REF, "m", AT_US) == first, "what was saved under this message stays"


def test_a_checkpoint_counts_from_the_last_and_lists_from_the_start(repo: Path, tmp_path: Path) -> None:
    (repo / "before").write_text("uncommitted when it began\n")
    start = save_snapshot(repo, tmp_path / "scratch", "refs/orc/x/0", "start", AT_US)
    (repo / "one").write_text("1\n")
    one = save_snapshot(repo, tmp_path / "scratch", REF, "one", AT_US)
    (repo / "two").write_text("2\n2\n")
    (repo / "README.md").unlink()
    effect = Checkpoint(
        id=EffectId("x/loop/i2.a1.l1.save"),
        unit="loop",
        ref="refs/orc/x/2",
        message="two",
        at_us=AT_US,
        since=one.commit,
        start=start.commit,
    )
    ended = take_checkpoint(repo, tmp_path / "scratch", effect)
    assert (ended.files_changed, ended.lines_added, ended.lines_removed) == (2, 2, 1)
    assert [(change.status, change.path) for change in ended.changed] == [("D", "README.md"), ("A", "one"), ("A", "two")]
    assert "+2" in ended.diff


def test_without_git_a_checkpoint_says_so(tmp_path: Path) -> None:
    effect = Checkpoint(id=EffectId("x/loop/i1.a1.l1.save"), unit="loop", ref=REF, message="m", at_us=AT_US)
    assert "not in a git repository" in take_checkpoint(tmp_path, tmp_path / "scratch", effect).unavailable


def test_a_repository_without_a_commit_can_be_saved(tmp_path: Path) -> None:
    git(tmp_path, "init", "--quiet")
    (tmp_path / "a").write_text("a\n")
    effect = Checkpoint(id=EffectId("x/loop/i1.a1.l1.save"), unit="loop", ref=REF, message="m", at_us=AT_US)
    ended = take_checkpoint(tmp_path, tmp_path.parent / "scratch", effect)
    assert [change.path for change in ended.changed] == ["a"]
    assert ended.head is None


def test_a_commit_on_the_branch_is_made_once_and_only_when_something_changed(repo: Path, tmp_path: Path) -> None:
    saved = save_snapshot(repo, tmp_path / "scratch", REF, "m", AT_US)
    assert commit_on_branch(repo, tmp_path / "scratch", saved.tree, "nothing", AT_US) is None
    (repo / "a").write_text("a\n")
    saved = save_snapshot(repo, tmp_path / "scratch", "refs/orc/x/2", "m2", AT_US)
    made = commit_on_branch(repo, tmp_path / "scratch", saved.tree, "Write a\n\nLoop-Iteration: 1\n", AT_US)
    assert commit_on_branch(repo, tmp_path / "scratch", saved.tree, "Write a\n\nLoop-Iteration: 1\n", AT_US) == made
    assert git(repo, "log", "--format=%s") == "Write a\nFirst"
    assert is_clean(repo)


def test_a_commit_after_which_we_died_is_found_and_the_index_follows(repo: Path, tmp_path: Path) -> None:
    (repo / "a").write_text("a\n")
    saved = save_snapshot(repo, tmp_path / "scratch", REF, "m", AT_US)
    lock = repo / ".git" / "index.lock"
    lock.touch()
    with pytest.raises(GitFailed, match=r"index\.lock"):
        commit_on_branch(repo, tmp_path / "scratch", saved.tree, "Write a\n", AT_US)
    lock.unlink()
    assert commit_on_branch(repo, tmp_path / "scratch", saved.tree, "Write a\n", AT_US) == git(repo, "rev-parse", "HEAD")
    assert git(repo, "status", "--porcelain") == ""


def test_files_of_ours_that_somebody_tracks_stay_on_the_branch_as_they_were(repo: Path, tmp_path: Path) -> None:
    scratch, prompt, learned = (
        tmp_path / "scratch",
        repo / ".agents" / "prompts" / "code.md",
        repo / ".claude" / "learnings.jsonl",
    )
    for file in (prompt, learned):
        file.parent.mkdir(parents=True)
        file.write_text("tracked\n")
    git(repo, "add", "--force", ".")
    git(repo, "commit", "--quiet", "-m", "Track them")
    exclude(repo, (".claude/learnings.jsonl",))
    before = str(find_head(repo))
    saved = save_snapshot(repo, scratch, REF, "m", AT_US)
    assert commit_on_branch(repo, scratch, saved.tree, "nothing", AT_US) is None
    assert (list_changes(repo, before, saved.commit), count_changes(repo, before, saved.commit).files) == ((), 0)
    learned.write_text("tracked\nand written to\n")
    (repo / "a").write_text("a\n")
    saved = save_snapshot(repo, scratch, "refs/orc/x/2", "m2", AT_US)
    assert commit_on_branch(repo, scratch, saved.tree, "Write a", AT_US) is not None
    assert git(repo, "diff", "--name-only", before, "HEAD") == "a"
    prompt.write_text("changed\n")
    restore_snapshot(repo, scratch, before, Backup("refs/orc/x/kept", "kept", AT_US))
    assert learned.read_text() == "tracked\nand written to\n", "ours is no work to take back"
    assert prompt.read_text() == "tracked\n", "what only lies beside ours is"
    assert not (repo / "a").exists()


def test_a_print_out_that_is_rewritten_all_the_time_is_in_nobodys_way(repo: Path, tmp_path: Path) -> None:
    state = repo / ".claude" / "agent-state.json"
    state.parent.mkdir()
    state.write_text("tracked\n")
    git(repo, "add", "--all")
    git(repo, "commit", "--quiet", "-m", "Track it")
    exclude(repo, (".claude/agent-state.json",))
    state.write_text("staged by an agent\n")
    git(repo, "add", "--all")
    state.write_text("printed since\n")  # Neither what is staged nor what is committed: `git rm --cached` refuses this.
    saved = save_snapshot(repo, tmp_path / "scratch", REF, "m", AT_US)
    assert git(repo, "show", f"{saved.commit}:.claude/agent-state.json") == "tracked"
    assert commit_on_branch(repo, tmp_path / "scratch", saved.tree, "nothing", AT_US) is None
    assert state.read_text() == "printed since\n"


def test_going_back_to_a_snapshot_of_an_older_version_deletes_nothing_that_it_left_out(repo: Path, tmp_path: Path) -> None:
    prompt = repo / ".agents" / "prompts" / "code.md"
    prompt.parent.mkdir(parents=True)
    prompt.write_text("tracked\n")
    git(repo, "add", "--all")
    git(repo, "commit", "--quiet", "-m", "Track it")
    tree = git(repo, "rev-parse", "HEAD^:")
    old = git(repo, "-c", "user.name=x", "-c", "user.email=x@x", "commit-tree", tree, "-p", "HEAD", "-m", "without it")
    (repo / "new").write_text("new\n")
    restore_snapshot(repo, tmp_path / "scratch", old, Backup("refs/orc/x/kept", "kept", AT_US))
    assert prompt.read_text() == "tracked\n"
    assert not (repo / "new").exists()


def test_restoring_brings_back_every_file_and_keeps_what_was_there(repo: Path, tmp_path: Path) -> None:
    (repo / "mine").write_text("uncommitted\n")
    start = save_snapshot(repo, tmp_path / "scratch", "refs/orc/x/0", "start", AT_US)
    (repo / "mine").unlink()
    (repo / "README.md").write_text("changed\n")
    (repo / "folder").mkdir()
    (repo / "folder" / "new").write_text("new\n")
    kept = restore_snapshot(repo, tmp_path / "scratch", start.commit, Backup("refs/orc/x/reverted", "kept", AT_US))
    assert (repo / "mine").read_text() == "uncommitted\n"
    assert (repo / "README.md").read_text() == "A repository to work on.\n"
    assert not (repo / "folder").exists()
    assert git(repo, "show", f"{kept}:folder/new") == "new"
    assert list_changes(repo, start.commit, kept) != ()


def test_reverting_again_keeps_the_new_work_too(repo: Path, tmp_path: Path) -> None:
    start = save_snapshot(repo, tmp_path / "scratch", "refs/orc/x/0", "start", AT_US)
    kept = []
    for text in ("one", "two"):
        (repo / "work").write_text(text)
        kept.append(restore_snapshot(repo, tmp_path / "scratch", start.commit, Backup("refs/orc/x/reverted", "kept", AT_US)))
    assert [git(repo, "show", f"{ref}:work") for ref in kept] == ["one", "two"]


def test_refs_of_a_loop_are_forgotten_together(repo: Path, tmp_path: Path) -> None:
    save_snapshot(repo, tmp_path / "scratch", "refs/orc/x/1", "m", AT_US)
    save_snapshot(repo, tmp_path / "scratch", "refs/orc/xy/1", "m", AT_US)
    delete_refs(repo, "refs/orc/x/")
    assert git(repo, "for-each-ref", "--format=%(refname)", "refs/orc/") == "refs/orc/xy/1"
