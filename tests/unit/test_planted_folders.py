"""Links that somebody plants on the way to folders of ours: nothing is started, written, read, moved or deleted behind one."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import tempfile
from pathlib import Path

import msgspec
import pytest

from agent_orchestrator.beneath import LinkInTheWay
from agent_orchestrator.core.sandbox import Sandbox, Wall
from agent_orchestrator.engine.launches import CannotStart
from agent_orchestrator.engine.process.folder import read_marks, take_lock
from agent_orchestrator.engine.process.shim import spawn
from agent_orchestrator.engine.walls.enclosure import enclose
from agent_orchestrator.engine.walls.places import Surroundings
from agent_orchestrator.errors import GitFailed, InvalidDocument, Refused
from agent_orchestrator.git.command import hold_lock
from agent_orchestrator.git.moves import LOCK, CheckoutMove, settle_landing
from agent_orchestrator.git.snapshots import identify_tree, write_tree
from agent_orchestrator.runs.inputs import read_object
from agent_orchestrator.runs.loop.files import read_state
from agent_orchestrator.runs.orchestrator import Orchestrator
from agent_orchestrator.runs.swarm.companions import find_owner
from agent_orchestrator.runs.swarm.records import Unreadable, check_record, outcomes_of_files
from agent_orchestrator.runs.team.hooks import read_files
from agent_orchestrator.runs.team.place import claim_folder, owner_of
from tests.unit.process.rig import ENV, make_launches, order


def git(repo: Path, *words: str) -> str:
    return subprocess.run(["git", *words], cwd=repo, check=True, capture_output=True, text=True).stdout.strip()


def replace_by_link(folder: Path) -> Path:
    """Move a folder, or a file, away and put a link to it in its place."""
    moved = folder.with_name(f"{folder.name}.moved")
    folder.rename(moved)
    folder.symlink_to(moved)
    return moved


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A worktree's folder below a repository."""
    made = tmp_path / "repo" / ".agents" / "worktrees" / "one"
    made.mkdir(parents=True)
    return made


@pytest.fixture
def launch(tmp_path: Path) -> Path:
    """The folder of a launch."""
    made = tmp_path / "store" / "launches" / "one" / "code~i0.a1.l1.agent"
    made.mkdir(parents=True)
    return made


LEVELS = pytest.mark.parametrize("level", [".", "..", "../.."], ids=["the tree", "worktrees", ".agents"])


@LEVELS
def test_nothing_is_started_in_a_tree_behind_a_link(tmp_path: Path, tree: Path, level: str) -> None:
    replace_by_link(Path(os.path.normpath(tree / level)))
    with pytest.raises(CannotStart, match="through a link"):
        make_launches(tmp_path).start(order(tree, "touch", "made"))
    assert not list(tmp_path.rglob("made"))


@LEVELS
def test_a_link_that_is_planted_after_the_look_is_seen_by_the_shim(tmp_path: Path, tree: Path, level: str) -> None:
    folder = tmp_path / "launches" / "run" / "launch"
    folder.mkdir(parents=True)
    lock = take_lock(folder, create=True)
    assert lock is not None
    replace_by_link(Path(os.path.normpath(tree / level)))
    pid = spawn(folder, lock, "nonce", argv=("touch", "made"), env=ENV, cwd=tree, stdin=None)
    assert pid is not None
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 126
    os.close(lock)
    assert read_marks(folder).exit_codes == (126,)
    assert f"is not {tree}" in (folder / "err").read_text()
    assert not list(tmp_path.rglob("made"))


@pytest.mark.parametrize("which", ["launch", "scratch", "cache", "tree"])
def test_no_wall_opens_what_lies_behind_a_link(tmp_path: Path, tree: Path, launch: Path, which: str) -> None:
    for name in ("tmp", "../cache"):
        (launch / name).mkdir()
    planted = {"launch": launch, "scratch": launch / "tmp", "cache": launch.parent / "cache", "tree": tree.parent}[which]
    replace_by_link(planted)
    around = Surroundings(repo=tmp_path / "repo", store=tmp_path / "store", tree=tree, launch=launch, env=ENV)
    with pytest.raises(LinkInTheWay):
        enclose(order(tree, "true"), Sandbox(wall=Wall.COMMAND, command=("env",)), around, online=True)


@pytest.mark.parametrize("level", [".", "..", "../.."], ids=["scratch folder", "run", "launches"])
def test_git_leaves_and_deletes_nothing_in_a_scratch_folder_behind_a_link(repo: Path, launch: Path, level: str) -> None:
    (launch / "objects").mkdir()
    (launch / "objects" / "precious").touch()
    (launch / "index").write_text("precious")
    moved = replace_by_link(Path(os.path.normpath(launch / level)))
    before = sorted(moved.rglob("*"))
    for work in (identify_tree, write_tree):
        with pytest.raises(GitFailed, match="through a link"):
            work(repo, launch)
    assert sorted(moved.rglob("*")) == before


def move_of(repo: Path) -> CheckoutMove:
    """Make a commit that deletes a file in a folder and adds one; the checkout stands before it, and its branch after it."""
    (repo / "lib").mkdir()
    (repo / "lib" / "old.py").write_text("old\n")
    git(repo, "add", "--all")
    git(repo, "commit", "--quiet", "--message", "Old")
    old = git(repo, "rev-parse", "HEAD")
    git(repo, "rm", "--quiet", "lib/old.py")
    (repo / "lib").mkdir(exist_ok=True)
    (repo / "lib" / "new.py").write_text("new\n")
    git(repo, "add", "--all")
    git(repo, "commit", "--quiet", "--message", "New")
    new, branch = git(repo, "rev-parse", "HEAD"), git(repo, "symbolic-ref", "--short", "HEAD")
    git(repo, "reset", "--quiet", "--hard", old)
    git(repo, "update-ref", f"refs/heads/{branch}", new)
    return CheckoutMove(checkout=str(repo), branch=branch, old=old, new=new)


def test_a_landing_that_was_killed_deletes_and_writes_nothing_behind_a_link(repo: Path) -> None:
    move = move_of(repo)
    with contextlib.suppress(InterruptedError), hold_lock(repo, LOCK) as held:
        held.intend(msgspec.json.encode(move))
        raise InterruptedError("as if it were killed here")
    moved = replace_by_link(repo / "lib")
    settle_landing(repo)
    assert [file.name for file in moved.iterdir()] == ["old.py"]
    assert (repo / "lib").is_symlink()
    assert git(repo, "rev-parse", "HEAD") == move.old, "somebody put the link there: the move is undone"


BEAD = {"bead": "b1", "status": "done", "attempt": 1, "agent": "claude"}


@pytest.fixture
def swarm(tmp_path: Path) -> Path:
    """A workspace with records."""
    for folder in ("runs", "results"):
        (tmp_path / "state" / folder).mkdir(parents=True)
        (tmp_path / "state" / folder / "b1.json").write_text(json.dumps(BEAD))
    return tmp_path


@pytest.mark.parametrize("planted", ["state", "state/runs", "state/runs/b1.json"])
def test_records_behind_a_link_are_not_read_and_it_is_said(swarm: Path, planted: str) -> None:
    assert len(list(outcomes_of_files(swarm, {}, []))) == 1
    (swarm / "state" / "results" / "b1.json").unlink()
    replace_by_link(swarm / planted)
    faults: list[Unreadable] = []
    assert not list(outcomes_of_files(swarm, {}, faults))
    assert all("link" in one.why or "symbolic" in one.why for one in faults)
    assert faults


def test_a_record_that_is_a_link_is_neither_mended_nor_anybodys_companion(swarm: Path) -> None:
    companion = swarm / "state" / "results" / "b1-verify.json"
    companion.write_text(json.dumps({"bead": "b1"}))
    (swarm / "state" / "runs" / "b1.json").unlink()
    (swarm / "state" / "results" / "b1.json").unlink()
    assert find_owner(companion) == "b1"
    record = swarm / "state" / "runs" / "b2.json"
    record.write_text(json.dumps(BEAD))
    for file in (companion, record):
        replace_by_link(file)
    assert find_owner(companion) is None
    checked = check_record("run", record, fix=True)
    assert "through a link" in checked.faults[0]
    assert record.is_symlink()


@pytest.mark.parametrize("read", [read_object, read_state])
def test_a_state_file_that_is_a_link_is_not_taken_over(tmp_path: Path, read: object) -> None:
    file = tmp_path / "state.json"
    file.write_text("{}")
    replace_by_link(file)
    with pytest.raises(InvalidDocument, match="through a link"):
        read(file)  # type: ignore[operator]


@pytest.fixture
def team(repo: Path) -> Path:
    """A repository with the files of a team that ended."""
    (repo / "coordination" / "messages").mkdir(parents=True)
    (repo / "coordination" / "orchestrator_state.json").write_text('{"session_id": "earlier"}')
    (repo / "coordination" / "pm_state.json").write_text("{}")
    return repo


def test_the_files_of_a_team_behind_a_link_are_nobodys_and_stay_where_they_are(team: Path) -> None:
    folder = team / "coordination"
    assert owner_of(team, folder) == "earlier"
    moved = replace_by_link(folder)
    assert owner_of(team, folder) == "foreign"
    with Orchestrator(team) as orchestrator, pytest.raises(Refused, match="is a link; remove it"):
        claim_folder(orchestrator, "next")
    assert sorted(file.name for file in moved.iterdir()) == ["messages", "orchestrator_state.json", "pm_state.json"]


def test_the_files_of_an_ended_team_are_not_archived_through_a_link(team: Path) -> None:
    with tempfile.TemporaryDirectory() as elsewhere:
        (team / "coordination" / "archive").symlink_to(elsewhere)
        with Orchestrator(team) as orchestrator, pytest.raises(Refused, match="is a link; remove it"):
            claim_folder(orchestrator, "next")
        assert not list(Path(elsewhere).iterdir())


def test_of_a_team_that_is_taken_over_no_file_is_read_through_a_link(team: Path) -> None:
    folder = team / "coordination"
    replace_by_link(folder / "orchestrator_state.json")
    names = ("pm_state.json", "orchestrator_state.json")
    files, notes = read_files({f"coordination/{name}": folder / name for name in names})
    assert (list(files), len(notes)) == (["coordination/pm_state.json"], 1)
    assert "through a link" in notes[0]
