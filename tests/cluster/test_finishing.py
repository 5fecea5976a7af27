"""Queued runs are looked at, merged, published and discarded in any clone of the repository, as runs of the clone are."""

from __future__ import annotations

import shutil
import signal
from pathlib import Path

import pytest

from agent_orchestrator.config.store_address import name_repository
from tests.acceptance.finish_rig import Finished
from tests.acceptance.github import GitHub
from tests.acceptance.rig import wait_until
from tests.cluster.rig import PATIENCE_S, Clone, Farm
from tests.unit.git.test_repository import git


@pytest.fixture
def clone(farm: Farm) -> Clone:
    return Clone(farm, "clone")


def complete(farm: Farm, *arguments: str) -> str:
    """Let a worker drive a run; return it when all of it is at the remote."""
    if not farm.hosts:
        farm.host("ada")
    run = farm.submit(*arguments)
    farm.wait_for_status(run, "completed")
    return run


def test_the_work_of_a_queued_run_is_shown_and_merged_in_another_clone(farm: Farm, clone: Clone) -> None:
    run = complete(farm)
    shown = clone.orc("diff", run)
    assert (shown.code, "+second by ada" in shown.out) == (0, True), shown
    assert clone.orc("diff", run, "--name-only").out.split() == ["work.txt"]
    assert f"work: at its remote; next: orc diff {run}   orc merge {run}" in clone.orc("show", run).out
    assert f"orc merge {run}" in clone.orc("report").out
    assert clone.branches() == ["main"], "looking makes no branch"
    (clone.repo / "mine.txt").write_text("by hand")
    git(clone.repo, "add", "--all")
    git(clone.repo, "commit", "--quiet", "--message", "Mine")
    red = clone.orc("merge", run, "--check", "test ! -e work.txt")
    assert (red.code, "not merged red" in red.out) == (1, True), red
    assert not (clone.repo / "work.txt").exists()
    merged = clone.orc("merge", run, "--check", "test -e mine.txt && test -e work.txt")
    assert (merged.code, f"merged orc/{run} into main" in merged.out) == (0, True), merged
    assert (clone.repo / "work.txt").read_text() == "first by ada\nsecond by ada\n"
    assert clone.branches() == ["main"], "what is merged is removed"
    assert git(clone.repo, "status", "--porcelain") == ""
    assert not (clone.repo / ".agents" / "runs").exists(), "its files are not the clone's"
    assert run not in (clone.repo / ".git" / "info" / "exclude").read_text()
    again = clone.orc("merge", run)
    assert (again.code, "already merged" in again.out) == (0, True), again
    assert "+second by ada" in clone.orc("diff", run).out
    assert f"orc/{run}" in clone.orc("history", run).out
    assert farm.ask_store("workers", "--json").json["queues"] == [], "nobody has to take it up again"
    other = Clone(farm, "other")
    elsewhere = other.orc("merge", run, "--no-check")
    assert (elsewhere.code, (other.repo / "work.txt").exists()) == (0, True), elsewhere


def test_a_tree_of_a_queued_run_is_opened_changed_and_merged_with_the_change(farm: Farm, clone: Clone) -> None:
    run = complete(farm)
    opened = clone.orc("open", run, "--command", "cat work.txt && echo by hand >more.txt")
    assert (opened.code, opened.out) == (0, "first by ada\nsecond by ada\n"), opened
    assert "more.txt" in clone.orc("diff", run, "--name-only").out
    merged = clone.orc("merge", run, "--no-check")
    assert merged.code == 0, merged
    assert (clone.repo / "more.txt").read_text() == "by hand\n"
    assert clone.branches() == ["main"]


def test_what_is_discarded_in_one_clone_is_kept_for_all_of_them(farm: Farm, clone: Clone) -> None:
    run = complete(farm)
    assert clone.orc("open", run, "--path").code == 0
    gone = clone.orc("discard", run)
    assert gone.code == 0, gone
    assert clone.branches() == ["main"]
    assert not list((clone.repo / ".agents" / "worktrees").glob("*"))
    assert git(farm.bare, "branch", "--list", "orc/*") == ""
    twice = clone.orc("discard", run)
    assert (twice.code, "was discarded already" in twice.err) == (2, True), twice
    other = Clone(farm, "other")
    refused = other.orc("merge", run)
    assert (refused.code, "was discarded; bring it back first: git branch" in refused.err) == (2, True), refused
    way = refused.err.partition("bring it back first: ")[2].split()
    assert "+second by ada" in other.orc("diff", run).out
    git(other.repo, *way[1:])
    assert other.orc("merge", run, "--no-check").code == 0
    assert (other.repo / "work.txt").exists()


def test_a_run_at_work_can_be_looked_at_and_nothing_else(farm: Farm, clone: Clone) -> None:
    farm.host("ada")
    farm.hold("second")
    run = farm.submit()
    farm.wait_for("second")
    wait_until(lambda: "+first by ada" in clone.orc("diff", run).out, PATIENCE_S)
    for verb in ("merge", "discard", "open", "pr"):
        refused = clone.orc(verb, run)
        assert refused.code == 2, refused
        assert f"Run {run} has not ended (running, driven by process" in refused.err, refused
        assert " on ada); `orc diff" in refused.err
    assert clone.branches() == ["main"]
    farm.let_go("second")
    farm.wait_for_status(run, "completed")
    assert "+second by ada" in clone.orc("diff", run).out


def test_a_clone_without_the_remote_of_the_workers_says_where_the_work_is(farm: Farm, clone: Clone) -> None:
    run = complete(farm)
    git(farm.folder, "init", "--quiet", "--bare", "empty.git")
    named = {"ORC_STORE_REPOSITORY": name_repository(farm.repo)}
    git(clone.repo, "remote", "set-url", "origin", str(farm.folder / "empty.git"))
    refused = clone.orc("diff", run, env=named)
    assert refused.code == 2, refused
    assert f"it was pushed to {farm.bare}: add that with `git remote add NAME {farm.bare}`" in refused.err
    git(clone.repo, "remote", "add", "theirs", str(farm.bare))
    assert "+second by ada" in clone.orc("diff", run, env=named).out


@pytest.mark.skipif(
    shutil.which("gh") is None or shutil.which("openssl") is None, reason="gh and openssl are needed; `make test` installs them"
)
def test_the_pull_request_of_a_queued_run_is_opened_from_any_clone(farm: Farm, clone: Clone, tmp_path: Path) -> None:
    run, github = complete(farm), GitHub(tmp_path / "server")
    named = {**github.environment(tmp_path / "home"), "ORC_STORE_REPOSITORY": name_repository(farm.repo)}
    git(clone.repo, "remote", "rename", "origin", "workers")
    git(clone.repo, "remote", "add", "origin", f"https://{github.host}/ada/thing.git")
    git(clone.repo, "config", "remote.origin.pushurl", str(farm.bare))
    try:
        opened = clone.orc("pr", run, env=named)
        assert opened.out == f"opened: https://localhost/ada/thing/pull/1 (orc/{run} into main)\n", opened
        assert "- `work.txt` (A)" in github.pulls[0]["body"]
        assert "is open already" in clone.orc("pr", run, env=named).out
    finally:
        github.close()
    assert len(github.pulls) == 1
    assert "pull request https://localhost/ada/thing/pull/1" in farm.ask_store("history", run).out
    assert farm.ask_store("workers", "--json").json["queues"] == [], "nobody has to take it up for that"


def test_a_merge_that_is_killed_is_finished_by_the_next_one_in_any_clone(farm: Farm, clone: Clone) -> None:
    run, other = complete(farm), Clone(farm, "other")
    check = f"touch {farm.side}/checking; while [ ! -e {farm.side}/go ]; do sleep 0.05; done"
    first = clone.start("merge", run, "--check", check)
    wait_until(lambda: (farm.side / "checking").exists(), PATIENCE_S)
    busy = other.orc("merge", run, "--no-check")
    assert (busy.code, "still has it" in busy.err) == (2, True), busy
    first.signal(signal.SIGKILL)
    first.end()
    (farm.side / "go").touch()
    merged = other.orc("merge", run, "--no-check")
    assert merged.code == 0, merged
    assert git(other.repo, "log", "--merges", "--format=%s").count("Merge orc/") == 1
    again = clone.orc("merge", run, "--check", "test -e work.txt")
    assert (again.code, (clone.repo / "work.txt").exists()) == (0, True), again
    assert git(clone.repo, "log", "--merges", "--format=%s").count("Merge orc/") == 1
    assert [one.branches() for one in (clone, other)] == [["main"], ["main"]]


def test_a_clone_that_is_killed_at_any_moment_of_a_merge_goes_on_with_it(farm: Farm) -> None:
    run, at, killed = complete(farm), 0, True
    while killed:
        at += 1
        clone = Clone(farm, f"clone-{at}")
        finished = Finished(clone, run, "work.txt")
        killed = finished.killed(at, "merge", run, "--no-check")
        merged = clone.orc("merge", run, "--no-check")
        assert merged.code == 0, (at, merged)
        assert git(clone.repo, "log", "--merges", "--format=%s").count("Merge orc/") == 1
        assert (clone.repo / "work.txt").read_text() == "first by ada\nsecond by ada\n"
        assert (clone.branches(), git(clone.repo, "status", "--porcelain")) == (["main"], "")
    assert at > 3


def test_a_clone_that_is_killed_at_any_moment_of_a_discard_goes_on_with_it(farm: Farm, clone: Clone) -> None:
    run, at = complete(farm), 1
    while Finished(clone, run, "work.txt").killed(at, "discard", run):
        at += 1
    assert at > 3
    assert (clone.branches(), git(farm.bare, "branch", "--list", "orc/*")) == (["main"], "")
    assert "_discarded" in git(farm.bare, "for-each-ref", f"refs/orc/runs/{run}/kept")


def test_pruning_a_queued_run_leaves_nothing_of_it_in_the_clone(farm: Farm, clone: Clone) -> None:
    run = complete(farm)
    assert clone.orc("merge", run, "--no-check").code == 0
    assert git(clone.repo, "for-each-ref", f"refs/orc/{run}") != ""
    pruned = clone.orc("prune", "--older-than", "0", "--yes", "--json")
    assert pruned.json["deleted"] == [run], pruned
    assert git(clone.repo, "for-each-ref", "refs/orc") == ""
