"""Trees that are kept as a run goes, and brought back: cheap where nothing changed, and nothing lost on the way."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent_orchestrator.core.effects import KeptTree, TreeReturn
from agent_orchestrator.core.ids import RunId
from agent_orchestrator.errors import GitFailed, Refused
from agent_orchestrator.git.kept_trees import TreeKeeper
from agent_orchestrator.git.snapshots import Backup, find_head
from agent_orchestrator.git.tree_returns import (
    bring_back,
    drop_branch,
    list_backups,
    make_copy,
    move_branch,
    refuse_in_the_way,
    refuse_moved_on,
    refuse_unready,
)
from tests.counting import count_calls, until_settled
from tests.unit.git.test_repository import git

RUN = RunId("r")
PREFIX = "refs/orc/r/@before-1/"
BACKUP = Backup(f"{PREFIX}tree", "before", 1_700_000_000_000_000)


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    """A repository with a commit on main."""
    repo = tmp_path / "repo"
    repo.mkdir()
    git(repo, "init", "--quiet", "--initial-branch", "main")
    git(repo, "config", "user.name", "ada")
    git(repo, "config", "user.email", "ada@localhost")
    (repo / "own").write_text("own")
    git(repo, "add", "--all")
    git(repo, "commit", "--quiet", "--message", "own")
    return repo


def keep(keeper: TreeKeeper, repo: Path) -> KeptTree:
    """The tree as it is now, which must be new."""
    kept = keeper.keep(repo, repo.parent / "scratch", RUN, None)
    assert kept is not None
    return kept


def test_a_clean_tree_is_its_own_commit_and_one_that_did_not_change_is_not_kept_again(repo: Path) -> None:
    keeper = TreeKeeper()
    kept = keep(keeper, repo)
    assert (kept.commit, kept.head, kept.branch) == (find_head(repo), find_head(repo), "main")
    assert keeper.keep(repo, repo.parent / "scratch", RUN, None) is None


def test_uncommitted_and_untracked_work_is_kept_under_a_ref_and_the_same_work_is_the_same_commit(repo: Path) -> None:
    (repo / "own").write_text("changed")
    (repo / "new ü").write_text("new")
    kept = keep(TreeKeeper(), repo)
    assert git(repo, "show", f"{kept.commit}:new ü") == "new"
    assert git(repo, "rev-parse", f"refs/orc/r/@trees/{kept.commit[:20]}") == kept.commit
    assert keep(TreeKeeper(), repo) == kept, "another process keeps the same"
    assert git(repo, "status", "--porcelain", "-z").split("\0")[:2] == ["M own", "?? new ü"], "nothing of the person's moved"


def test_a_file_that_keeps_its_name_and_size_is_seen_to_have_changed(repo: Path) -> None:
    keeper = TreeKeeper()
    (repo / "new").write_text("one")
    first = keep(keeper, repo)
    (repo / "new").write_text("two")
    assert keep(keeper, repo).commit != first.commit


def test_a_look_asks_git_twice_and_keeping_a_tree_six_times(repo: Path) -> None:
    keeper = TreeKeeper()
    until_settled(repo)
    keep(keeper, repo)
    looking = count_calls(lambda: keeper.keep(repo, repo.parent / "scratch", RUN, None))
    (repo / "own").write_text("changed")
    (repo / "new").write_text("new")
    keeping = count_calls(lambda: keep(keeper, repo))
    assert (looking["fork_exec"], keeping["fork_exec"]) == (2, 6)


def test_a_kept_tree_is_by_us_and_not_signed_however_the_person_commits(repo: Path) -> None:
    git(repo, "config", "commit.gpgSign", "true")
    git(repo, "config", "gpg.program", "false")
    (repo / "new").write_text("new")
    kept = keep(TreeKeeper(), repo)
    assert git(repo, "log", "-1", "--format=%an %cn", kept.commit) == "agent-orchestrator agent-orchestrator"


def test_a_folder_without_git_is_not_kept(tmp_path: Path) -> None:
    assert TreeKeeper().keep(tmp_path, tmp_path / "scratch", RUN, None) is None


def test_files_and_branch_go_back_and_all_that_was_there_is_kept(repo: Path) -> None:
    keeper = TreeKeeper()
    (repo / "first").write_text("first")
    then = keep(keeper, repo)
    (repo / "second").write_text("second")
    git(repo, "add", "second")
    git(repo, "commit", "--quiet", "--message", "second")
    newest = keep(keeper, repo)
    (repo / "mine").write_text("mine")
    (repo / "own").write_text("staged")
    git(repo, "add", "own")
    (repo / "own").write_text("edited after it was staged")
    tree = TreeReturn(repo=str(repo), folder=str(repo), kept=then, newest=newest.commit)
    bring_back(tree, repo.parent / "scratch", BACKUP)
    refs = list_backups(repo, PREFIX)
    assert find_head(repo) == then.head
    assert sorted(path.name for path in repo.iterdir()) == [".git", "first", "mine", "own"]
    assert (repo / "own").read_text() == "own"
    assert [git(repo, "show", f"{refs[0]}:{name}") for name in ("second", "mine", "own")] == [
        "second",
        "mine",
        "edited after it was staged",
    ]
    assert git(repo, "show", f"{refs[1]}:own") == "staged"
    assert git(repo, "log", "-1", "--format=%s", f"{refs[0]}^") == "second", "the branch as it was is kept, too"
    bring_back(tree, repo.parent / "scratch", BACKUP)
    assert (repo / "mine").read_text() == "mine", "repeated after a crash, it is the same"
    assert list_backups(repo, PREFIX) == refs


def test_a_file_that_was_found_between_two_looks_stays_also_when_the_run_saw_it_later(repo: Path) -> None:
    keeper = TreeKeeper()
    then = keep(keeper, repo)
    (repo / "agents").write_text("made by an agent")
    left = keep(keeper, repo)
    (repo / "mine").write_text("mine")
    found = keep(keeper, repo)
    tree = TreeReturn(repo=str(repo), folder=str(repo), kept=then, newest=found.commit, found=((left.commit, found.commit),))
    bring_back(tree, repo.parent / "scratch", BACKUP)
    assert (repo / "mine").exists()
    assert not (repo / "agents").exists()


def test_a_copy_has_the_uncommitted_work_of_then_uncommitted(repo: Path) -> None:
    (repo / "own").write_text("changed")
    (repo / "new").write_text("new")
    kept = keep(TreeKeeper(), repo)
    folder = repo / ".agents" / "worktrees" / "f"
    for _ in range(2):  # A process that died in between does it again.
        make_copy(repo, folder, "orc/f", kept)
        assert git(folder, "status", "--porcelain") == "M own\n?? new"
        assert git(folder, "rev-parse", "HEAD") == kept.head
    assert (folder / "own").read_text() == "changed"


def test_a_branch_goes_back_with_its_checkout_unless_others_added_to_it(repo: Path) -> None:
    start = find_head(repo)
    assert start is not None
    (repo / "merged").write_text("merged")
    git(repo, "add", "--all")
    git(repo, "commit", "--quiet", "--message", "merged")
    merged = find_head(repo) or ""
    refuse_moved_on(repo, "main", merged, start)
    (repo / "mine").write_text("mine")
    move_branch(repo, "main", start, BACKUP)
    assert git(repo, "rev-parse", BACKUP.ref) == merged
    assert find_head(repo) == start
    assert sorted(path.name for path in repo.iterdir()) == [".git", "mine", "own"]
    git(repo, "commit", "--quiet", "--allow-empty", "--message", "theirs")
    with pytest.raises(Refused, match="orc fork"):
        refuse_moved_on(repo, "main", merged, start)


def test_a_branch_that_did_not_exist_then_goes_with_its_worktree_and_is_kept(repo: Path) -> None:
    folder = repo / ".agents" / "worktrees" / "r~b"
    git(repo, "worktree", "add", "--quiet", "-b", "b", str(folder))
    (folder / "half").write_text("half done")
    tip = git(repo, "rev-parse", "b")
    for _ in range(2):
        drop_branch(repo, folder, "b", repo.parent / "scratch", BACKUP)
        assert not folder.exists()
        assert git(repo, "branch", "--list", "b") == ""
        assert list_backups(repo, PREFIX) == [BACKUP.ref]
        assert git(repo, "show", f"{BACKUP.ref}:half") == "half done"
        git(repo, "branch", "b", tip)  # As if it was killed between the worktree and the branch.


def test_a_worktree_that_is_half_made_is_finished_and_one_that_is_whole_is_left_alone(repo: Path) -> None:
    (repo / "new").write_text("new")
    kept = keep(TreeKeeper(), repo)
    folder = repo / ".agents" / "worktrees" / "f"
    make_copy(repo, folder, "orc/f", kept)
    (repo / ".git" / "worktrees" / "f" / "index").unlink()
    (folder / "new").write_text("n")
    make_copy(repo, folder, "orc/f", kept)
    assert (folder / "new").read_text() == "new"
    (folder / "new").write_text("mine since")
    make_copy(repo, folder, "orc/f", kept)
    assert (folder / "new").read_text() == "mine since"


def test_a_checkout_with_an_edit_in_a_file_that_would_go_back_is_left_as_it_is(repo: Path) -> None:
    start = find_head(repo) or ""
    (repo / "own").write_text("merged")
    git(repo, "commit", "--quiet", "--all", "--message", "merged")
    merged = find_head(repo)
    (repo / "own").write_text("edited since")
    with pytest.raises(
        Refused, match=r"Nothing was touched: .* has changes of its own in own: commit or stash them, then rewind"
    ):
        refuse_in_the_way(repo, "main", start)
    with pytest.raises(GitFailed, match="has changes of its own in own"):
        move_branch(repo, "main", start, BACKUP)
    assert find_head(repo) == merged
    assert (repo / "own").read_text() == "edited since"


def test_a_tree_on_another_branch_or_in_the_middle_of_a_merge_is_refused(repo: Path) -> None:
    kept = keep(TreeKeeper(), repo)
    git(repo, "switch", "--quiet", "--create", "else")
    with pytest.raises(Refused, match="is on else now, and the run was on main"):
        refuse_unready(repo, kept)
    git(repo, "switch", "--quiet", "main")
    (repo / ".git" / "MERGE_HEAD").write_text(f"{kept.head}\n")
    with pytest.raises(Refused, match="A merge is not finished"):
        refuse_unready(repo, kept)
    with pytest.raises(Refused, match="could not be kept at that point: no disk"):
        refuse_unready(repo, KeptTree(problem="no disk"))
