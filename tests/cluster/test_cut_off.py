"""A worker that cannot reach the store any more: its agents are ended before others begin, and it changes nothing."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest

from tests.acceptance.rig import is_alive, wait_until
from tests.cluster.rig import LEASE_S, PATIENCE_S, Farm
from tests.cluster.wire import Wire
from tests.postgres.server import frozen, shared_server
from tests.unit.git.test_repository import git

REFUSING = """
ALTER FUNCTION orc.beat(bigint, uuid, double precision) RENAME TO whole_beat;
CREATE FUNCTION orc.beat(bigint, uuid, double precision)
RETURNS TABLE (drain boolean, held_s double precision) LANGUAGE plpgsql AS $$
BEGIN
    IF nextval('public.refusals') = 1 THEN
        RAISE EXCEPTION USING ERRCODE = '53100', MESSAGE = 'no space left';
    END IF;
    RETURN QUERY SELECT * FROM orc.whole_beat($1, $2, $3);
END $$
"""
"""Lets a lease not be renewed once, because the server's disk is full."""
BEATS = 3


@pytest.fixture
def wire() -> Iterator[Wire]:
    made = Wire(shared_server().port)
    yield made
    made.cut()


def test_a_worker_that_is_cut_off_is_ended_with_its_agents_and_its_run_goes_on_elsewhere(farm: Farm, wire: Wire) -> None:
    ada = farm.host("ada", "--store", wire.through(farm.url))
    farm.hold("first")
    run = farm.submit()
    agent, worker = farm.wait_for("first"), ada.pid()
    wire.cut()
    farm.host("bob")
    farm.wait_for("first", 2)
    assert not is_alive(agent)
    assert not is_alive(worker)
    farm.let_go("first")
    farm.wait_for_status(run, "completed")
    wait_until(lambda: f"orc/{run}" in git(farm.bare, "branch", "--list", "orc/*"), PATIENCE_S)
    assert git(farm.bare, "show", f"orc/{run}:work.txt") == "first by bob\nsecond by bob"


def test_a_short_cut_costs_nothing(farm: Farm, wire: Wire) -> None:
    ada = farm.host("ada", "--store", wire.through(farm.url))
    farm.hold("first")
    run = farm.submit()
    farm.wait_for("first")
    wire.cut()
    ada.wait_until_it_says("is away")
    wire.mend()
    farm.let_go("first")
    ada.wait_until_it_says(f"run {run}: completed")
    assert [line[:3] for line in farm.log()] == [[what, step, "1"] for step in ("first", "second") for what in ("start", "end")]
    ada.kill(signal.SIGTERM)
    assert ada.process.wait(60) == 0


def test_a_worker_whose_server_processes_freeze_renews_its_lease_by_others(farm: Farm) -> None:
    ada = farm.host("ada")
    farm.hold("first")
    run = farm.submit()
    farm.wait_for("first")
    server = shared_server()
    with frozen(server.list_serving(farm.url)):
        joined = f"SELECT extract(epoch FROM lease_until - held_since) > {4 * LEASE_S} FROM orc.workers WHERE name = 'ada'"
        wait_until(lambda: server.execute(joined, farm.url.rpartition("/")[2]) == "t", PATIENCE_S)
        farm.let_go("first")
        ada.wait_until_it_says(f"run {run}: completed")
    assert [line[:3] for line in farm.log()] == [[what, step, "1"] for step in ("first", "second") for what in ("start", "end")]


def test_a_server_that_can_write_nothing_for_a_moment_costs_a_worker_nothing(farm: Farm) -> None:
    ada = farm.host("ada")
    farm.hold("first")
    run = farm.submit()
    farm.wait_for("first")
    server, database = shared_server(), farm.url.rpartition("/")[2]
    server.execute("CREATE SEQUENCE public.refusals", database)
    server.execute(REFUSING, database)
    ada.wait_until_it_says("is full; nothing was lost")
    wait_until(lambda: int(server.execute("SELECT last_value FROM public.refusals", database)) > BEATS, PATIENCE_S)
    farm.let_go("first")
    ada.wait_until_it_says(f"run {run}: completed")
    assert [line[:3] for line in farm.log()] == [[what, step, "1"] for step in ("first", "second") for what in ("start", "end")]
