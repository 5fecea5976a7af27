"""Runs by the clock: of each due time one, on whichever worker lives, whoever is killed on the way."""

from __future__ import annotations

import signal
import uuid
from pathlib import Path

import psycopg
import pytest

from agent_orchestrator.cluster.cron import find_latest_us, name_due
from agent_orchestrator.engine.clock import SystemClock
from agent_orchestrator.store.postgres.cluster import Cluster
from agent_orchestrator.store.postgres.leases import Worker
from agent_orchestrator.store.postgres.schedules import Begun, Firing
from tests.acceptance.rig import wait_until
from tests.cluster.rig import PATIENCE_S, Farm, kill_ours
from tests.cluster.test_workers import WHOLE, result_of
from tests.unit.git.test_repository import git

CRON = "0 3 1 1 *"
"""Once a year: no test waits for it, or meets it."""

HELD_SKIPS = """
CREATE FUNCTION orc.hold() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_advisory_xact_lock_shared(7, 7);
    RETURN NEW;
END $$;
CREATE TRIGGER held BEFORE UPDATE ON orc.schedules FOR EACH ROW WHEN (NEW.failure <> '') EXECUTE FUNCTION orc.hold();
"""
"""Hold whoever writes down that a due time is skipped, for as long as somebody else has the lock."""

FIND_SKIPPING = """
SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND classid = 7 AND objid = 7 AND NOT granted
    AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
"""


def add(farm: Farm, name: str = "nightly", *more: str) -> None:
    words = ("run", "--workflow", "workflow.yaml", "--agent-command", f"sh {farm.side}/agent.sh", "--pass-env", "SIDE")
    done = farm.orc("schedule", "add", name, CRON, *more, "--", *words)
    assert done.code == 0, done


def make_due(farm: Farm) -> str:
    """Let a due time have passed, as while there was no worker; returns the id of the run that it gets."""
    tell(farm, "UPDATE orc.schedules SET next_us = 1")
    return name_due("nightly", find_latest_us(CRON, "UTC", SystemClock().now_us()))


def tell(farm: Farm, what: str) -> None:
    with psycopg.connect(farm.url) as made:
        made.execute(what.encode())


def runs_of(farm: Farm) -> list[str]:
    return [one["run_id"] for one in farm.ask_store("list", "--json").json["runs"]]


def result_once_made(farm: Farm, run: str) -> str:
    """Return what the run of a due time made."""
    wait_until(lambda: listed(farm)["last_run"] == run, PATIENCE_S)
    return result_of(farm, run)


def listed(farm: Farm) -> dict[str, object]:
    (one,) = farm.ask_store("schedule", "list", "--json").json["schedules"]
    return dict(one)


def hold_pushes(farm: Farm) -> tuple[Path, Path]:
    """Let the remote hold every push, until something is written to the gate; the first file is there when one is held."""
    hook, here, gate = farm.bare / "hooks" / "pre-receive", farm.side / "here", farm.side / "gate"
    hook.write_text(f"#!/bin/sh\ntouch {here}\nwhile [ -e {here} ] && [ ! -e {gate} ]; do sleep 0.05; done\n")
    hook.chmod(0o755)
    return here, gate


def list_makers(farm: Farm) -> list[int]:
    """Return the processes that make the run of a due time."""
    found = []
    for one in Path("/proc").iterdir():
        if one.name.isdigit():
            try:
                words = (one / "cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            if b"--firing" in words and str(farm.side).encode() in b" ".join(words):
                found.append(int(one.name))
    return found


def test_a_due_time_gets_one_run_that_begins_at_the_head_of_the_branch_as_it_is_then(farm: Farm) -> None:
    add(farm)
    (farm.repo / "later.txt").write_text("pushed after the schedule was added\n")
    git(farm.repo, "add", "--all")
    git(farm.repo, "commit", "--quiet", "--message", "Later")
    git(farm.repo, "push", "--quiet", "origin", "main")
    run = make_due(farm)
    ada, bob = farm.host("ada"), farm.host("bob")
    assert result_once_made(farm, run) in ("first by ada\nsecond by ada", "first by bob\nsecond by bob")
    assert git(farm.repo, "show", f"origin/orc/{run}:later.txt") == "pushed after the schedule was added"
    assert f"schedule nightly: run {run} is queued" in ada.said() + bob.said()
    assert runs_of(farm) == [run]
    assert [line[:3] for line in farm.log()] == WHOLE
    stands = listed(farm)
    assert (stands["last_run"], stands["failure"], stands["paused"]) == (run, None, False)
    assert str(stands["next"]).endswith("-01-01T03:00:00Z")
    assert not list((farm.folder / "hosts").glob("*/homes/.due*")), "its clone is deleted"


def test_a_worker_that_is_killed_on_the_way_leaves_one_run_all_the_same(farm: Farm) -> None:
    """Worker and command are killed when the run is made and its start is being pushed; another worker makes it anew."""
    add(farm)
    here, gate = hold_pushes(farm)
    run = make_due(farm)
    ada = farm.host("ada")
    wait_until(here.exists, PATIENCE_S)
    assert runs_of(farm) == [run], "it is made, and not queued"
    assert farm.ask_store("workers", "--json").json["queues"] == []
    ada.kill(signal.SIGKILL)
    for maker in list_makers(farm):
        kill_ours(maker, str(farm.folder))
    wait_until(lambda: not list_makers(farm))
    gate.touch()
    farm.host("bob")
    assert result_once_made(farm, run) == "first by bob\nsecond by bob"
    assert runs_of(farm) == [run]
    assert [line[:3] for line in farm.log()] == WHOLE
    assert listed(farm)["last_run"] == run


def test_a_command_that_outlives_its_worker_and_another_one_queue_one_run(farm: Farm) -> None:
    add(farm)
    here, gate = hold_pushes(farm)
    run = make_due(farm)
    ada = farm.host("ada")
    wait_until(here.exists, PATIENCE_S)
    ada.kill(signal.SIGKILL)
    bob = farm.host("bob")
    bob.wait_until_it_says("schedule nightly: ")  # It has tried, and found somebody at it.
    gate.touch()
    assert result_once_made(farm, run) == "first by bob\nsecond by bob"
    wait_until(lambda: not list_makers(farm), PATIENCE_S)
    assert runs_of(farm) == [run]
    assert [line[:3] for line in farm.log()] == WHOLE


def test_what_can_never_be_queued_is_said_and_the_next_due_time_stands(farm: Farm) -> None:
    add(farm)
    git(farm.repo, "rm", "--quiet", "workflow.yaml")
    git(farm.repo, "commit", "--quiet", "--message", "No workflow")
    git(farm.repo, "push", "--quiet", "origin", "main")
    make_due(farm)
    ada = farm.host("ada")
    ada.wait_until_it_says("schedule nightly: ")
    wait_until(lambda: listed(farm)["failure"] is not None, PATIENCE_S)
    stands = listed(farm)
    assert "workflow.yaml" in str(stands["failure"])
    assert stands["last_run"] is None
    assert str(stands["next"]).endswith("-01-01T03:00:00Z")
    assert runs_of(farm) == []


def test_a_remote_that_is_away_is_tried_again(farm: Farm) -> None:
    add(farm)
    run = make_due(farm)
    farm.bare.rename(farm.folder / "away.git")
    ada = farm.host("ada")
    ada.wait_until_it_says("schedule nightly: ")
    (farm.folder / "away.git").rename(farm.bare)
    assert result_once_made(farm, run) == "first by ada\nsecond by ada"
    assert runs_of(farm) == [run]


NEXT_CRON = "0 3 2 1 *"
"""A day later, so that its run has another id."""


def make_next_due(farm: Farm) -> str:
    """Let the due time after that of `make_due` have passed as well; returns the id of the run that it would get."""
    tell(farm, f"UPDATE orc.schedules SET cron = '{NEXT_CRON}', next_us = 1")
    return name_due("nightly", find_latest_us(NEXT_CRON, "UTC", SystemClock().now_us()))


def begin_first(farm: Farm, name: str) -> str:
    """Start a worker, and return the run of a first due time, which it drives and which does not end."""
    farm.hold("first")
    run = make_due(farm)
    farm.host(name)
    farm.wait_for("first")
    return run


def test_a_due_time_gets_no_run_while_one_of_the_schedule_has_not_ended(farm: Farm) -> None:
    add(farm)
    first = begin_first(farm, "ada")
    make_next_due(farm)
    farm.hosts[0].wait_until_it_says(f"because {first} has not ended")
    wait_until(lambda: listed(farm)["failure"] is not None, PATIENCE_S)
    stands = listed(farm)
    assert (stands["overlap"], stands["last_run"]) == ("skip", None)
    assert f"-01-02 03:00, because {first} has not ended." in str(stands["failure"])
    assert str(stands["next"]).endswith("-01-02T03:00:00Z"), "it moved on"
    assert "overlap skip" in farm.ask_store("schedule", "list").out
    assert runs_of(farm) == [first]
    farm.let_go("first")
    farm.wait_for_status(first, "completed")
    wait_until(lambda: farm.ask_store("workers", "--json").json["queues"] == [], PATIENCE_S)
    second = make_next_due(farm)
    assert result_once_made(farm, second) == "first by ada\nsecond by ada"
    assert sorted(runs_of(farm)) == [first, second]


def test_a_schedule_that_is_added_anew_knows_its_runs(farm: Farm) -> None:
    add(farm)
    first = begin_first(farm, "ada")
    assert farm.ask_store("schedule", "remove", "nightly").code == 0
    add(farm)
    make_next_due(farm)
    farm.hosts[0].wait_until_it_says(f"because {first} has not ended")
    assert runs_of(farm) == [first]


def test_a_due_time_gets_a_run_beside_another_where_that_is_allowed(farm: Farm) -> None:
    add(farm, "nightly", "--overlap", "allow")
    first = begin_first(farm, "ada")
    second = make_next_due(farm)
    farm.host("bob")
    farm.wait_for("first", times=2)
    assert sorted(runs_of(farm)) == [first, second]
    assert (listed(farm)["last_run"], listed(farm)["failure"]) == (second, None)
    farm.let_go("first")
    for run in (first, second):
        farm.wait_for_status(run, "completed")


@pytest.mark.parametrize("written", [True, False], ids=["as it was written", "before it was written"])
def test_a_worker_that_is_killed_as_it_skips_a_due_time_leaves_one_run(farm: Farm, written: bool) -> None:
    """It is killed in the call that writes down that the due time is skipped, which the server carries out or not."""
    add(farm)
    begin_first(farm, "ada")
    tell(farm, HELD_SKIPS)
    with psycopg.connect(farm.url) as held:
        held.execute("SELECT pg_advisory_xact_lock(7, 7)")
        make_next_due(farm)
        wait_until(lambda: bool(held.execute(FIND_SKIPPING).fetchall()), PATIENCE_S)
        farm.hosts[0].kill(signal.SIGKILL)
        if not written:
            held.execute(f"SELECT pg_terminate_backend(pid, 10000) FROM ({FIND_SKIPPING}) AS found")
        assert listed(farm)["failure"] is None
    bob = farm.host("bob")
    wait_until(lambda: listed(farm)["failure"] is not None, PATIENCE_S)
    (first,) = runs_of(farm)
    assert f"because {first} has not ended" in str(listed(farm)["failure"])
    assert ("has not ended" in bob.said()) is not written, "it is decided by who writes it down, once"
    farm.wait_for("first", times=2)  # Taken over from the one that was killed.
    farm.let_go("first")
    assert result_of(farm, first) == "first by bob\nsecond by bob"
    assert runs_of(farm) == [first]
    tell(farm, "DROP TRIGGER held ON orc.schedules")
    second = make_next_due(farm)
    assert result_once_made(farm, second) == "first by bob\nsecond by bob"


def test_a_schedule_is_listed_paused_resumed_and_removed(farm: Farm) -> None:
    assert "has no schedules" in farm.ask_store("schedule", "list").out
    add(farm, "nightly", "--zone", "Europe/Berlin", "--branch", "main")
    shown = farm.ask_store("schedule", "list").out
    assert f"nightly: {CRON} (Europe/Berlin), overlap skip, next " in shown
    assert "-01-01 03:00" in shown
    assert "  orc run --workflow workflow.yaml --agent-command" in shown
    assert "nightly: 0 3 1 1 * (Europe/Berlin), overlap skip, paused" in farm.ask_store("schedule", "pause", "nightly").out
    tell(farm, "UPDATE orc.schedules SET next_us = 1")
    assert "next " in farm.ask_store("schedule", "resume", "nightly").out
    assert str(listed(farm)["next"]).endswith("-01-01T02:00:00Z"), "what was due meanwhile gets no run"
    assert "is removed" in farm.ask_store("schedule", "remove", "nightly").out
    assert farm.ask_store("schedule", "list", "--json").json == {"schedules": []}


def test_what_cannot_be_a_schedule_is_one_sentence(farm: Farm) -> None:
    def refuse(*words: str) -> str:
        done = farm.orc("schedule", *words)
        assert done.code == 2, done
        assert done.err.count("\n") == 1, done.err
        return done.err

    add(farm)
    run = ("--", "run", "do it", "--agent-command", "true")
    assert "has a schedule nightly; remove it first" in refuse("add", "nightly", CRON, *run)
    assert "minute, hour, day, month and weekday" in refuse("add", "a", "daily", *run)
    assert "a time zone that this machine knows" in refuse("add", "a", CRON, "--zone", "Berlin", *run)
    assert "has no branch nowhere, which runs would begin at" in refuse("add", "a", CRON, "--branch", "nowhere", *run)
    git(farm.bare, "symbolic-ref", "HEAD", "refs/heads/unpushed")
    assert "has no branch of its own, which runs would begin at" in refuse("add", "a", CRON, *run)
    git(farm.bare, "symbolic-ref", "HEAD", "refs/heads/main")
    assert "`orc status` queues no run" in refuse("add", "a", CRON, "--", "status")
    assert "queues no run" in refuse("add", "a", CRON, "--", "resume", "--queue")
    assert "--run-id is not for the command of a schedule" in refuse("add", "a", CRON, *run, "--run-id", "x")
    assert "--detach is not for the command of a schedule" in refuse("add", "a", CRON, *run, "--detach")
    assert "'wait' is not one of 'skip', 'allow'" in refuse("add", "a", CRON, "--overlap", "wait", *run)
    assert "No such option" in refuse("add", "a", CRON, "--", "run", "do it", "--bogus")
    assert "has no schedule other" in refuse("remove", "other")
    own = farm.ask("schedule", "list", "--store", "sqlite")
    assert (own.code, own.err.count("\n")) == (2, 1)
    assert "give --store postgresql://HOST/DATABASE" in own.err


def test_every_command_that_queues_a_new_run_can_be_given_by_the_clock(farm: Farm) -> None:
    agent = ("--agent-command", f"sh {farm.side}/agent.sh", "--pass-env", "SIDE")
    for name, words in (
        ("a-loop", ("loop", "run", "tidy up", "--until", "true", *agent)),
        ("a-plan", ("phases", "run", "plan.md", *agent, "--pool", "gpu")),
        ("a-team", ("team", "run", "make it", *agent, "--pool", "gpu")),
    ):
        done = farm.orc("schedule", "add", name, CRON, "--", *words)
        assert done.code == 0, done
    shown = {one["name"]: one for one in farm.ask_store("schedule", "list", "--json").json["schedules"]}
    assert shown["a-loop"]["command"][:3] == ["loop", "run", "tidy up"]
    assert {name: one["pool"] for name, one in shown.items()} == {"a-loop": "default", "a-plan": "gpu", "a-team": "gpu"}
    tell(farm, "UPDATE orc.schedules SET next_us = 1")
    farm.host("ada")
    wait_until(lambda: farm.workers() and any("a-loop" in run for run in runs_of(farm)), PATIENCE_S)
    (loop,) = runs_of(farm)
    farm.wait_for_status(loop, "completed")
    assert runs_of(farm) == [loop], "nobody serves the pool of the others"


def test_an_id_of_a_queued_run_is_not_used_again(farm: Farm) -> None:
    farm.submit("--run-id", "mine")
    words = ("run", "--workflow", "workflow.yaml", "--agent-command", "true", "--queue", "--run-id", "mine")
    again = farm.orc(*words)
    assert again.code == 2, again
    assert "Run mine exists already" in again.err
    assert runs_of(farm) == ["mine"]
    assert "--firing is for workers" in farm.orc(*words, "--firing", "nonsense").err


def test_the_store_lets_one_right_queue_one_run(farm: Farm) -> None:
    add(farm)
    run, other = farm.submit("--run-id", "one", "--pool", "gpu"), farm.submit("--run-id", "two", "--pool", "gpu")
    tell(farm, "UPDATE orc.runs SET pool = '', state = 'resting', ready_us = NULL")
    tell(farm, "UPDATE orc.schedules SET next_us = 1")
    first, second = Cluster(farm.url), Cluster(farm.url)
    for number, cluster in enumerate((first, second)):
        cluster.leases.join(Worker(name=f"w{number}", host="h", boot="b", pid=1, pool="default"), 600)
    claim, repository = uuid.uuid4(), farm.ask_store("store", "check", "--json").json["repository"]
    taken = first.schedules.take_due(claim, "default")
    assert taken is not None
    assert taken == first.schedules.take_due(claim, "default"), "its answer may have been lost"
    assert second.schedules.take_due(uuid.uuid4(), "default") is None, "its worker lives"
    firing = Firing(schedule=taken.key, claim=claim, next_us=2**50)
    stale = Firing(schedule=taken.key, claim=uuid.uuid4(), next_us=2**50)
    assert first.schedules.fire(firing, run, repository, "default", 0) is False, "it has not begun"
    assert not first.schedules.begin(stale, 5)
    assert first.schedules.begin(firing, 5) == Begun(overlap=None)
    assert first.schedules.fire(stale, other, repository, "default", 0) is False
    assert first.schedules.fire(firing, run, repository, "default", 0) is True
    assert first.schedules.fire(firing, run, repository, "default", 0) is True, "its answer may have been lost"
    assert first.schedules.fire(firing, other, repository, "default", 0) is False
    assert [one.run for one in first.leases.claim("default", 9)] == [run]
    assert first.schedules.remove(repository, "nightly")
    assert first.schedules.fire(firing, other, repository, "default", 0) is None
    for cluster in (first, second):
        cluster.close()
