"""Homes of runs: made from a remote, pushed back behind a fence, and made again on another host."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from agent_orchestrator.cluster.homes import Homes, OpenHome, Submission
from agent_orchestrator.core.ids import RunId
from agent_orchestrator.core.system import Context
from agent_orchestrator.errors import Fenced, Refused, Shortage, Unavailable
from agent_orchestrator.git.fences import RunRemote, push_fenced, raise_fence, read_fence
from agent_orchestrator.git.homes import open_mirror
from tests.unit.git.test_repository import git

RUN = "f8c1"
START = f"refs/orc/runs/{RUN}/start"


@pytest.fixture
def bare(tmp_path: Path, repo: Path) -> Path:
    """The remote of the repository: a bare one on disk."""
    bare = tmp_path / "remote.git"
    git(tmp_path, "clone", "--quiet", "--bare", str(repo), str(bare))
    git(repo, "remote", "add", "origin", str(bare))
    return bare


def submit(repo: Path, bare: Path, homes: Homes) -> Context:
    remote = RunRemote(where=repo, url=str(bare), environ=dict(os.environ))
    start = git(repo, "rev-parse", "HEAD")
    submission = Submission(remote=remote, start=start, branch="main", home=homes.new_place())
    submission.make_home()
    submission.push(RUN)
    submission.push(RUN)  # whoever is killed in between says it again
    submission.remove()
    return Context(run=RunId(RUN), home=str(submission.home), workdir=str(submission.home), created_us=0, remote=str(bare))


def on_host(tmp_path: Path, name: str) -> Homes:
    """Return the homes of a host; hosts of a test have one disk, and so a root each."""
    return Homes(tmp_path / name, dict(os.environ))


def moved(context: Context, homes: Homes) -> Context:
    """Return the context as it reads on another host: there the root is a link in its place."""
    homes.root.mkdir(parents=True, exist_ok=True)
    return Context(
        run=context.run,
        home=str(homes.root / "homes" / Path(context.home).name),
        workdir=context.workdir,
        created_us=0,
        remote=context.remote,
    )


def commit(home: OpenHome, name: str) -> str:
    (home.folder / name).write_text(name)
    git(home.folder, "add", "--all")
    git(home.folder, "commit", "--quiet", "--message", name)
    return git(home.folder, "rev-parse", "HEAD")


def test_a_home_has_the_start_of_the_run_and_nothing_that_came_later(tmp_path: Path, repo: Path, bare: Path) -> None:
    homes = on_host(tmp_path, "a")
    context = submit(repo, bare, homes)
    (repo / "later").write_text("later")
    git(repo, "add", "--all")
    git(repo, "commit", "--quiet", "--message", "Later")
    git(repo, "push", "--quiet", "origin", "main")
    home = homes.open(context, 1)
    assert home.is_new
    assert sorted(one.name for one in home.folder.iterdir()) == [".git", "README.md"]
    assert git(home.folder, "branch", "--show-current") == "main"
    assert git(home.folder, "remote", "get-url", "origin") == str(bare)


def test_another_host_goes_on_with_everything_that_was_pushed(tmp_path: Path, repo: Path, bare: Path) -> None:
    first, second = on_host(tmp_path, "a"), on_host(tmp_path, "b")
    context = submit(repo, bare, first)
    home = first.open(context, 1)
    home.settle("the shop")
    work = commit(home, "work")
    git(home.folder, "branch", "beside", "HEAD~1")
    git(home.folder, "update-ref", f"refs/orc/{RUN}/@trees/x", work)
    home.push()
    git(home.folder, "branch", "--quiet", "--delete", "--force", "beside")
    home.push()
    there = second.open(moved(context, second), 2)
    assert git(there.folder, "rev-parse", "HEAD", f"refs/orc/{RUN}/@trees/x").split() == [work, work]
    assert git(there.folder, "branch", "--format=%(refname:short)") == "main"
    assert (there.folder / "work").read_text() == "work"


def test_the_host_that_had_the_run_last_finds_its_home_as_it_left_it(tmp_path: Path, repo: Path, bare: Path) -> None:
    homes = on_host(tmp_path, "a")
    context = submit(repo, bare, homes)
    homes.open(context, 1).settle("the shop")
    (Path(context.home) / "unsaved").write_text("an agent is at it")
    again = homes.open(context, 2)
    assert not again.is_new
    assert (again.folder / "unsaved").exists()
    again.settle("the shop")
    assert homes.open(context, 4).is_new, "epoch 3 was another host's: what is here is old"
    assert not (again.folder / "unsaved").exists()


def test_homes_that_nobody_goes_on_with_are_deleted_and_one_that_is_being_made_is_left(
    tmp_path: Path, repo: Path, bare: Path
) -> None:
    homes = on_host(tmp_path, "a")
    context = submit(repo, bare, homes)
    homes.open(context, 1).settle("the shop")
    making, ruin = homes.root / "homes" / ".making~x", homes.root / "homes" / ".gone~y"
    for folder in (making, ruin):
        folder.mkdir()
    os.utime(ruin, (0, 0))
    assert homes.sweep(lambda mark: (mark.repository, mark.run, mark.epoch) == ("the shop", RUN, 1)) == []
    assert sorted(one.name for one in (homes.root / "homes").iterdir()) == [".making~x", Path(context.home).name]
    assert homes.sweep(lambda mark: False) == [RUN]
    assert [one.name for one in (homes.root / "homes").iterdir()] == [".making~x"]


def test_a_driver_that_was_replaced_pushes_nothing(tmp_path: Path, repo: Path, bare: Path) -> None:
    first, second = on_host(tmp_path, "a"), on_host(tmp_path, "b")
    context = submit(repo, bare, first)
    stale = first.open(context, 1)
    second.open(moved(context, second), 2)
    before = git(bare, "for-each-ref")
    commit(stale, "late")
    with pytest.raises(Fenced, match="driven by another process now"):
        stale.push()
    with pytest.raises(Fenced):
        stale.push_result()
    with pytest.raises(Fenced, match="driven by another process now"):
        first.open(context, 1)
    assert git(bare, "for-each-ref") == before


def test_a_push_that_was_frozen_on_its_way_is_refused_by_the_remote(tmp_path: Path, repo: Path, bare: Path) -> None:
    """The remote holds the first push in a hook while another host takes the run over; then it lets it go on."""
    homes = on_host(tmp_path, "a")
    submit(repo, bare, homes)
    remote = RunRemote(where=repo, url=str(bare), environ=dict(os.environ))
    fence = raise_fence(remote, RUN, 1)
    hook = bare / "hooks" / "pre-receive"
    gate, here = tmp_path / "gate", tmp_path / "here"
    os.mkfifo(gate)
    os.mkfifo(here)
    hook.write_text(f"#!/bin/sh\necho here >{here}\ncat {gate} >/dev/null\n")
    hook.chmod(0o755)
    head = git(repo, "rev-parse", "HEAD")
    with ThreadPoolExecutor() as pool:
        late = pool.submit(push_fenced, remote, RUN, fence, {"refs/heads/late": head})
        assert here.read_text() == "here\n"
        hook.rename(bare / "hooks" / "away")
        raise_fence(remote, RUN, 2)
        gate.write_text("go")
        with pytest.raises(Fenced, match="driven by another process now"):
            late.result()
    assert "refs/heads/late" not in git(bare, "for-each-ref")


def test_a_push_whose_answer_was_lost_is_known_to_have_come_through(tmp_path: Path, repo: Path, bare: Path) -> None:
    submit(repo, bare, on_host(tmp_path, "a"))
    remote = RunRemote(where=repo, url=str(bare), environ=dict(os.environ))
    fence, head = read_fence(remote, RUN), git(repo, "rev-parse", "HEAD")
    first = push_fenced(remote, RUN, fence, {"refs/heads/new": head})
    assert push_fenced(remote, RUN, fence, {"refs/heads/new": head}) == first


def test_a_remote_that_is_away_is_a_shortage_that_passes(tmp_path: Path, repo: Path, bare: Path) -> None:
    homes = on_host(tmp_path, "a")
    home = homes.open(submit(repo, bare, homes), 1)
    commit(home, "work")
    bare.rename(tmp_path / "away")
    with pytest.raises(Shortage, match="cannot be reached"):
        home.push()
    (tmp_path / "away").rename(bare)
    home.push()
    assert git(bare, "rev-parse", f"refs/orc/runs/{RUN}/heads/main") == git(home.folder, "rev-parse", "HEAD")


def test_the_result_comes_back_as_a_branch(tmp_path: Path, repo: Path, bare: Path) -> None:
    homes = on_host(tmp_path, "a")
    home = homes.open(submit(repo, bare, homes), 1)
    assert home.push_result() is None, "nothing has changed"
    work = commit(home, "work")
    assert home.push_result() == f"orc/{RUN}"
    git(repo, "fetch", "--quiet", "origin")
    assert git(repo, "rev-parse", f"origin/orc/{RUN}") == work
    assert git(repo, "rev-parse", "main") == git(bare, "rev-parse", "main"), (
        "the branch it was submitted on is a person's to move"
    )


def test_a_home_elsewhere_and_a_run_without_a_start_are_one_sentence(tmp_path: Path, repo: Path, bare: Path) -> None:
    homes = on_host(tmp_path, "a")
    context = submit(repo, bare, homes)
    with pytest.raises(Refused, match="--root"):
        on_host(tmp_path, "b").open(context, 1)
    git(bare, "update-ref", "-d", START)
    with pytest.raises(Unavailable, match="has no start of run f8c1"):
        homes.open(context, 1)


def test_runs_of_one_remote_make_its_mirror_once_between_them(tmp_path: Path, repo: Path, bare: Path) -> None:
    mirror = tmp_path / "mirrors" / "one"
    with ThreadPoolExecutor() as pool:
        made = [*pool.map(lambda _: open_mirror(mirror, str(bare), dict(os.environ)), range(4))]
    assert {one.where for one in made} == {mirror}
    assert [one.name for one in mirror.parent.iterdir()] == ["one"]


def test_a_fence_of_somebody_else_is_not_taken_for_ours(tmp_path: Path, repo: Path, bare: Path) -> None:
    git(bare, "update-ref", f"refs/orc/fence/{RUN}", "main")
    with pytest.raises(Unavailable, match="none of ours"):
        read_fence(RunRemote(where=repo, url=str(bare), environ=dict(os.environ)), RUN)
