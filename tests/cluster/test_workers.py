"""Workers on several hosts: runs are placed, driven, taken over and given back, and no attempt happens twice or side by side."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from pathlib import Path

from agent_orchestrator.cluster.warden import read_lease
from agent_orchestrator.git.fences import RunRemote, read_fence
from tests.acceptance.rig import WRAPPER, is_alive, wait_until
from tests.cluster.rig import PATIENCE_S, Farm, Host
from tests.postgres.server import shared_server
from tests.unit.git.test_repository import git

ASKS = """
name: asks
steps:
  - {id: first, agent: worker, prompt: first.md}
  - {id: second, agent: worker, prompt: second.md, needs: [first], human_in_the_loop: true}
"""
SIGNALS = 500
WHOLE = [["start", "first", "1"], ["end", "first", "1"], ["start", "second", "1"], ["end", "second", "1"]]


def result_of(farm: Farm, run: str) -> str:
    """Return what the run made, as a person gets it: from the remote, when it has all of it."""
    farm.wait_for_status(run, "completed")
    wait_until(lambda: f"orc/{run}" in git(farm.bare, "branch", "--list", "orc/*"), PATIENCE_S)
    git(farm.repo, "fetch", "--quiet", "origin")
    return git(farm.repo, "show", f"origin/orc/{run}:work.txt")


def epoch_of(farm: Farm, run: str) -> int:
    return read_fence(RunRemote(where=farm.repo, url=str(farm.bare), environ=dict(os.environ)), run).epoch


def test_a_queued_run_is_driven_by_a_worker_and_its_branch_comes_back(farm: Farm) -> None:
    ada = farm.host("ada")
    run = farm.submit()
    assert result_of(farm, run) == "first by ada\nsecond by ada"
    assert [line[:3] for line in farm.log()] == WHOLE
    ada.wait_until_it_says(f"its work is on orc/{run}")
    wait_until(lambda: not list((farm.folder / "hosts" / "ada" / "homes").iterdir()))
    ada.kill(signal.SIGTERM)
    assert ada.process.wait(60) == 0
    assert farm.workers() == []
    pruned = farm.ask_store("prune", "--older-than", "0", "--yes", "--json")
    assert pruned.json["deleted"] == [run], pruned
    assert git(farm.bare, "for-each-ref", "--format=%(refname)").split() == ["refs/heads/main", f"refs/heads/orc/{run}"]


def test_runs_of_a_worker_that_is_killed_are_taken_over_with_what_was_done(farm: Farm) -> None:
    ada = farm.host("ada")
    farm.hold("second")
    run = farm.submit()
    agent, before = farm.wait_for("second"), epoch_of(farm, run)
    ada.kill(signal.SIGKILL)
    farm.host("bob")
    farm.wait_for("second", 2)
    assert not is_alive(agent), "the warden has ended it before anybody else began"
    farm.let_go("second")
    assert result_of(farm, run) == "first by ada\nsecond by bob"
    assert len(farm.started("first")) == 1
    assert [line[0] for line in farm.log()[2:]] == ["start", "killed", "start", "end"]
    assert epoch_of(farm, run) == before + 1


def test_a_worker_that_comes_back_deletes_the_home_of_a_run_that_went_on_elsewhere(farm: Farm) -> None:
    ada = farm.host("ada")
    farm.hold("first")
    run = farm.submit()
    farm.wait_for("first")
    ada.kill(signal.SIGKILL)
    farm.host("bob")
    farm.wait_for("first", 2)
    farm.let_go("first")
    assert result_of(farm, run) == "first by bob\nsecond by bob"
    homes = farm.folder / "hosts" / "ada" / "homes"
    assert list(homes.iterdir())
    wait_until(lambda: farm.workers()[0]["runs"] == [])
    farm.host("ada").wait_until_it_says(f"run {run}: its home here was old, and is deleted")
    assert not list(homes.iterdir())


def test_a_worker_drives_as_many_runs_as_it_has_room_for_the_most_urgent_first(farm: Farm) -> None:
    farm.hold("first")
    slow, urgent = farm.submit("--run-id", "slow"), farm.submit("--run-id", "urgent", "--priority", "9")
    usual = farm.submit("--run-id", "usual")
    farm.host("ada", "--capacity", "2")
    farm.wait_for("first", 2)
    assert [one["run"] for one in farm.workers()[0]["runs"]] == [slow, urgent]
    farm.let_go("first")
    for run in (slow, urgent, usual):
        assert result_of(farm, run) == "first by ada\nsecond by ada"


def test_no_more_runs_of_a_repository_are_driven_at_once_than_its_limit(farm: Farm) -> None:
    assert "at most 1 run of" in farm.ask_store("workers", "limit", "1").out
    farm.hold("first")
    runs = [farm.submit("--run-id", f"run-{number}") for number in (1, 2, 3)]
    for name in ("ada", "bob"):
        farm.host(name, "--capacity", "2")
    farm.wait_for("first")
    assert sum(len(one["runs"]) for one in farm.workers()) == 1
    farm.let_go("first")
    for run in runs:
        result_of(farm, run)
    lines = farm.log()
    assert [line[0] for line in lines] == ["start", "end"] * 6, "one after the other"
    assert "as many" in farm.ask_store("workers", "limit", "none").out
    assert farm.ask_store("workers", "limit", "few").code == 2


def test_a_frozen_worker_starts_appends_and_pushes_nothing_any_more(farm: Farm) -> None:
    ada = farm.host("ada")
    farm.hold("first")
    run = farm.submit()
    agent, before = farm.wait_for("first"), epoch_of(farm, run)
    frozen = ada.kill(signal.SIGSTOP)
    farm.host("bob")
    farm.wait_for("first", 2)
    assert not is_alive(agent)
    farm.let_go("first")
    assert result_of(farm, run) == "first by bob\nsecond by bob"
    assert not is_alive(frozen), "its warden has killed it: there is nothing to thaw"
    assert epoch_of(farm, run) == before + 1


def test_a_host_that_thaws_whole_changes_nothing_that_went_on_elsewhere(farm: Farm) -> None:
    """Worker, warden and agent are frozen together, as with a machine that is suspended, and thaw when another host is done."""
    ada = farm.host("ada")
    farm.hold("first")
    run = farm.submit()
    agent, worker, warden = farm.wait_for("first"), ada.pid(), ada.warden()
    for pid in (agent, worker, warden):
        os.kill(pid, signal.SIGSTOP)
    farm.host("bob")
    farm.wait_for("first", 2)
    farm.let_go("first")
    assert result_of(farm, run) == "first by bob\nsecond by bob"
    wait_until(lambda: all(one["runs"] == [] for one in farm.workers()), PATIENCE_S)
    facts, refs = farm.ask_store("history", run).out, git(farm.bare, "for-each-ref")
    for pid in (worker, warden, agent):
        os.kill(pid, signal.SIGCONT)
    wait_until(lambda: not is_alive(agent), PATIENCE_S)
    wait_until(lambda: not is_alive(worker) or ada.said().count(f"run {run}: ") > 1, PATIENCE_S)  # killed, or it has left the run
    assert farm.ask_store("history", run).out == facts
    assert git(farm.bare, "for-each-ref") == refs
    assert len(farm.started("second")) == 1


def test_a_worker_that_is_killed_and_started_again_adopts_its_agents(farm: Farm) -> None:
    ada = farm.host("ada")
    farm.hold("first")
    run = farm.submit()
    farm.wait_for("first")
    ada.kill(signal.SIGKILL)
    ada.process.wait(60)
    again = farm.host("ada")
    again.wait_until_it_says("taken up again")
    farm.let_go("first")
    assert result_of(farm, run) == "first by ada\nsecond by ada"
    assert [line[:3] for line in farm.log()] == WHOLE, "no attempt is lost"


def test_a_home_that_is_made_anew_on_the_same_host_does_not_start_the_same_attempt_again(farm: Farm) -> None:
    """As after a worker that was killed twice, the second time before it came to open the home."""
    ada = farm.host("ada")
    farm.hold("first")
    run = farm.submit()
    agent = farm.wait_for("first")
    ada.kill(signal.SIGKILL)
    ada.process.wait(60)
    shared_server().execute(f"UPDATE orc.runs SET epoch = epoch + 1 WHERE id = '{run}'", farm.url.rpartition("/")[2])
    farm.host("ada").wait_until_it_says("taken up again")
    farm.wait_for("first", 2)
    assert not is_alive(agent), "it is ended before the home goes from under it"
    farm.let_go("first")
    farm.wait_for_status(run, "completed")
    assert [line[2] for line in farm.started("first")] == ["1", "2"]


def test_a_worker_that_is_killed_while_it_makes_the_tree_of_a_run_leaves_no_empty_one(farm: Farm) -> None:
    mark = farm.side / "mark"
    stops = [sys.executable, "-m", "tests.cluster.stops", "tree/after", "1", "alone", str(mark)]
    ada = Host(farm, "ada", program=stops)
    farm.hosts.append(ada)
    run = farm.submit()
    wait_until(mark.exists, PATIENCE_S)
    ada.kill(signal.SIGKILL)
    ada.process.wait(60)
    farm.host("ada").wait_until_it_says("taken up again")
    assert result_of(farm, run) == "first by ada\nsecond by ada"
    assert git(farm.bare, "diff", "--name-only", "main", f"orc/{run}") == "work.txt", "the files of the run's start are there"


def test_agents_go_on_and_are_adopted_when_the_remote_is_away_as_their_worker_comes_back(farm: Farm) -> None:
    ada = farm.host("ada")
    farm.hold("first")
    run = farm.submit()
    agent = farm.wait_for("first")
    ada.kill(signal.SIGKILL)
    ada.process.wait(60)
    farm.bare.rename(farm.folder / "away.git")
    again = farm.host("ada")
    again.wait_until_it_says(f"run {run}: git ls-remote failed")
    lease = read_lease(farm.folder / "hosts" / "ada" / "workers" / "ada")
    assert lease is not None
    assert [Path(one).name for one in lease.runs] == [run], "the warden knows its agents all the time"
    assert is_alive(agent)
    (farm.folder / "away.git").rename(farm.bare)
    farm.let_go("first")
    assert result_of(farm, run) == "first by ada\nsecond by ada"
    assert [line[:3] for line in farm.log()] == WHOLE


def test_a_worker_that_is_told_to_end_finishes_what_it_drives(farm: Farm) -> None:
    ada = farm.host("ada")
    farm.hold("first")
    run, later = farm.submit(), farm.submit()
    farm.wait_for("first")
    ada.kill(signal.SIGTERM)
    farm.let_go("first")
    assert ada.process.wait(120) == 0
    assert result_of(farm, run) == "first by ada\nsecond by ada"
    assert farm.status(later) == "running"
    assert [line[:3] for line in farm.log()] == WHOLE, "it takes nothing new"
    farm.host("bob")
    assert result_of(farm, later) == "first by bob\nsecond by bob"


def test_a_worker_that_is_told_twice_gives_its_runs_back(farm: Farm) -> None:
    ada = farm.host("ada")
    farm.hold("first")
    run = farm.submit()
    agent = farm.wait_for("first")
    ada.kill(signal.SIGTERM)
    ada.kill(signal.SIGTERM)
    assert ada.process.wait(120) == 0
    assert not is_alive(agent)
    farm.host("bob")
    farm.wait_for("first", 2)
    farm.let_go("first")
    assert result_of(farm, run) == "first by bob\nsecond by bob"


def test_a_worker_that_is_told_again_and_again_leaves(farm: Farm) -> None:
    ada = farm.host("ada")
    worker = ada.pid()
    with contextlib.suppress(ProcessLookupError):
        for _ in range(SIGNALS):
            os.kill(worker, signal.SIGTERM)
    assert ada.process.wait(120) == 0


def test_what_agents_write_can_be_read_from_any_host_also_while_they_write(farm: Farm) -> None:
    farm.host("ada")
    farm.hold("second")
    run = farm.submit()
    farm.wait_for("second")
    wait_until(lambda: "the second step is at work" in farm.ask_store("logs", run).out, PATIENCE_S)
    assert "process" in farm.ask_store("status", run).out, "it says who drives it"
    following = farm.start("logs", run, "-f", "--store", farm.url)
    following.wait_for("the second step is at work")
    farm.let_go("second")
    told = following.end()
    assert [line for line in told.out.splitlines() if "step is" in line] == [
        f"the {step} step is {what}" for step in ("first", "second") for what in ("at work", "done")
    ]
    assert "the first step complains" in farm.ask_store("logs", run, "first", "--err").out
    launches = farm.ask_store("logs", run, "second", "--json").json["launches"]
    assert [one["out"] for one in launches] == ["the second step is at work\nthe second step is done\n"]


def test_a_run_that_waits_for_a_person_rests_and_goes_on_when_it_is_answered(farm: Farm) -> None:
    (farm.repo / "workflow.yaml").write_text(ASKS)
    git(farm.repo, "commit", "--quiet", "--all", "--message", "It asks")
    (farm.side / "wrapper.py").write_text(WRAPPER)
    farm.play({})
    ada = farm.host("ada")
    words = ("run", "--workflow", "workflow.yaml", "--wrapper", str(farm.side / "wrapper.py"), "--queue")
    run = farm.orc(*words).run
    ada.wait_until_it_says(f"run {run}: waiting")
    wait_until(lambda: farm.workers()[0]["runs"] == [])
    approved = farm.ask_store("approve", run)
    assert "a worker goes on with it" in approved.out, approved
    ada.wait_until_it_says(f"run {run}: completed")
    assert farm.launches() == [f"{run} first 0 1", f"{run} second 0 1"]


def test_pausing_and_going_on_from_another_host(farm: Farm) -> None:
    ada = farm.host("ada")
    farm.hold("first")
    run = farm.submit()
    farm.wait_for("first")
    assert farm.ask_store("pause", run).code == 0
    farm.let_go("first")
    ada.wait_until_it_says(f"run {run}: paused")
    assert "belongs to" in farm.ask_store("resume", run).err
    assert farm.ask_store("resume", run, "--queue").code == 0
    assert result_of(farm, run) == "first by ada\nsecond by ada"
