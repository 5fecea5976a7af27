"""Runs that queues of DBOS place: whatever it says, doubles or forgets, each is driven once, and its tables show the same."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from agent_orchestrator.store.postgres import install
from tests.acceptance.rig import wait_until
from tests.cluster.rig import PATIENCE_S, Farm, cluster_of
from tests.cluster.test_workers import WHOLE, result_of
from tests.postgres.server import PostgresServer, shared_server


@pytest.fixture
def farm(repo: Path) -> Iterator[Farm]:
    """A repository with a remote and a store whose runs DBOS places, and no worker yet."""
    url = shared_server().make_database()
    install(url)
    with cluster_of(repo, url) as made:
        chosen = made.ask_store("store", "init", "--placing", "dbos")
        assert chosen.code == 0, chosen
        assert "placed by queues of DBOS" in chosen.out
        yield made


def ask_dbos(farm: Farm, what: str) -> list[tuple[str, ...]]:
    with psycopg.connect(farm.url) as made:
        return made.execute(what.encode()).fetchall()


def tell_dbos(farm: Farm, what: str) -> None:
    with psycopg.connect(farm.url) as made:
        made.execute(what.encode())


def list_waiting(farm: Farm) -> list[tuple[str, ...]]:
    """Return the claims that wait for a lock."""
    return ask_dbos(farm, "SELECT pid FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%claim_hinted%'")


def under_way(farm: Farm) -> set[tuple[str, str]]:
    """Return what DBOS believes: the id of a run and the worker that drives it, '' where it waits."""
    rows = ask_dbos(
        farm, "SELECT workflow_uuid, status, executor_id FROM dbos.workflow_status WHERE status IN ('ENQUEUED', 'PENDING')"
    )
    return {(name.split("/")[-2], by.partition(".")[0] if status == "PENDING" else "") for name, status, by in rows}


def driven(farm: Farm) -> set[tuple[str, str]]:
    return {(run["run"], one["name"]) for one in farm.workers() for run in one["runs"]}


def test_a_run_that_dbos_places_is_driven_once_and_its_tables_show_the_same_runs(farm: Farm) -> None:
    farm.hold("first")
    farm.host("ada")
    run = farm.submit()
    farm.wait_for("first")
    assert driven(farm) == {(run, "ada")} == under_way(farm)
    waits = farm.submit()
    wait_until(lambda: under_way(farm) == {(run, "ada"), (waits, "")}, PATIENCE_S)
    farm.let_go("first")
    for one in (run, waits):
        assert result_of(farm, one) == "first by ada\nsecond by ada"
    assert [line[:3] for line in farm.log()] == WHOLE * 2
    wait_until(lambda: under_way(farm) == set(), PATIENCE_S)
    (ada,) = farm.hosts
    ada.kill(signal.SIGTERM)
    assert ada.process.wait(60) == 0, ada.said()
    assert farm.workers() == []


def test_a_hint_that_is_lost_or_ends_early_costs_only_time(farm: Farm) -> None:
    """DBOS forgets everything while a run waits, and once more ends what it knew."""
    farm.hold("first")
    farm.host("ada")
    driven_first = farm.submit()
    farm.wait_for("first")
    waits = farm.submit()
    wait_until(lambda: (waits, "") in under_way(farm), PATIENCE_S)
    tell_dbos(farm, "DELETE FROM dbos.workflow_status WHERE status = 'ENQUEUED'")
    wait_until(lambda: (waits, "") in under_way(farm), PATIENCE_S)
    tell_dbos(farm, "UPDATE dbos.workflow_status SET status = 'ERROR' WHERE status = 'ENQUEUED'")
    farm.let_go("first")
    for run in (driven_first, waits):
        assert result_of(farm, run) == "first by ada\nsecond by ada"
    assert [line[:3] for line in farm.log()] == WHOLE * 2


def test_a_worker_that_is_killed_between_a_hint_and_its_claim_loses_nothing(farm: Farm) -> None:
    run = farm.submit()
    with psycopg.connect(farm.url) as lock:
        lock.execute("SELECT FROM orc.runs FOR UPDATE")  # The claim waits for it.
        ada = farm.host("ada")
        wait_until(lambda: under_way(farm) == {(run, "ada")} and list_waiting(farm), PATIENCE_S)
        ada.kill(signal.SIGKILL)
        ada.process.wait(60)
        for (pid,) in list_waiting(farm):
            tell_dbos(farm, f"SELECT pg_terminate_backend({pid})")
        wait_until(lambda: not list_waiting(farm))
    assert farm.ask_store("status", run, "--json").json["status"] != "completed"
    farm.hold("first")
    farm.host("bob")
    farm.wait_for("first")
    wait_until(lambda: driven(farm) == {(run, "bob")} == under_way(farm), PATIENCE_S)
    farm.let_go("first")
    assert result_of(farm, run) == "first by bob\nsecond by bob"
    assert [line[:3] for line in farm.log()] == WHOLE


def test_runs_of_a_worker_that_is_killed_are_placed_on_another_one(farm: Farm) -> None:
    ada = farm.host("ada")
    farm.hold("second")
    run = farm.submit()
    farm.wait_for("second")
    ada.kill(signal.SIGKILL)
    farm.host("bob")
    farm.wait_for("second", 2)
    wait_until(lambda: under_way(farm) == {(run, "bob")}, PATIENCE_S)
    farm.let_go("second")
    assert result_of(farm, run) == "first by ada\nsecond by bob"
    assert [line[0] for line in farm.log()[2:]] == ["start", "killed", "start", "end"]


def test_a_worker_that_is_started_again_shows_what_it_drives_on(farm: Farm) -> None:
    ada = farm.host("ada")
    farm.hold("first")
    run = farm.submit()
    farm.wait_for("first")
    ada.kill(signal.SIGKILL)
    ada.process.wait(60)
    again = farm.host("ada")
    again.wait_until_it_says(f"run {run}: taken up again")
    wait_until(lambda: driven(farm) == {(run, "ada")} == under_way(farm), PATIENCE_S)
    farm.let_go("first")
    assert result_of(farm, run) == "first by ada\nsecond by ada"
    assert [line[:3] for line in farm.log()] == WHOLE, "its agent lived on"
    wait_until(lambda: under_way(farm) == set(), PATIENCE_S)


def test_a_run_goes_on_after_an_outage_and_a_worker_leaves_during_one(repo: Path) -> None:
    server = PostgresServer()
    try:
        url = server.make_database()
        install(url)
        with cluster_of(repo, url) as farm:
            assert farm.ask_store("store", "init", "--placing", "dbos").code == 0
            ada = farm.host("ada")
            farm.hold("first")
            run = farm.submit()
            farm.wait_for("first")
            server.stop()
            farm.let_go("first")
            wait_until(lambda: ["end", "first"] in [line[:2] for line in farm.log()], PATIENCE_S)
            server.start()
            assert result_of(farm, run) == "first by ada\nsecond by ada"
            later = farm.submit()
            assert result_of(farm, later) == "first by ada\nsecond by ada"
            assert [line[:3] for line in farm.log()] == WHOLE * 2
            pid = ada.pid()
            server.stop()
            os.kill(pid, signal.SIGTERM)
            assert ada.process.wait(PATIENCE_S) in (0, -signal.SIGKILL, 128 + signal.SIGKILL), "its warden may be faster"
            server.start()
    finally:
        server.remove()


def test_a_mix_is_refused_with_one_sentence(farm: Farm) -> None:
    farm.host("ada")
    bob = farm.host("bob", "--capacity", "2")
    assert bob.process.wait(60) == 2, bob.said()
    assert "drive 1 at once (ada on ada), this one 2" in bob.said()
    assert [one["name"] for one in farm.workers()] == ["ada"]
    assert "runs are placed by dbos" in farm.ask_store("workers").out
    refused = farm.ask_store("store", "init", "--placing", "table")
    assert refused.code == 2, refused
    assert "drain them first" in refused.err
