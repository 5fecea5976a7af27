"""Owners by leases: who drives a run is known by the store, and whoever cannot be sure any more starts nothing."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator

import pytest

from agent_orchestrator.core.ids import RunId
from agent_orchestrator.engine.leases import LeaseOwners, this_worker
from agent_orchestrator.errors import RunBusy
from agent_orchestrator.store.postgres import PostgresStore
from agent_orchestrator.testing.store import new_run

ONE = RunId("one")
TTL_S = 600.0
"""So long that no thread renews it while a test runs: the test does."""


class Hosts:
    """Processes that share a store, each with a clock that the test turns."""

    def __init__(self, database: str) -> None:
        self._database = database
        self.now_s = 1_000.0
        self.stores: list[PostgresStore] = []
        self.owners: list[LeaseOwners] = []

    def join(self, **about: object) -> LeaseOwners:
        self.stores.append(PostgresStore(self._database, "demo"))
        worker = this_worker(**about)
        self.owners.append(LeaseOwners(self.stores[-1].leases, worker, ttl_s=TTL_S, clock=lambda: self.now_s))
        return self.owners[-1]

    def expire(self, number: int) -> None:
        """Let the lease of a process be over for the server, too."""
        self.stores[number].leases.beat(-1.0)
        self.now_s += TTL_S

    def close(self) -> None:
        for owners in self.owners:
            owners.close()
        for store in self.stores:
            store.close()


@pytest.fixture
def hosts(database: str) -> Iterator[Hosts]:
    hosts = Hosts(database)
    yield hosts
    hosts.close()


def test_a_run_is_busy_while_its_driver_has_a_lease(hosts: Hosts) -> None:
    one, two = hosts.join(), hosts.join(host="elsewhere", boot="another", pid=7)
    owned = one.own(ONE)
    hosts.stores[0].create(*new_run(ONE))
    assert (owned.epoch, owned.held, owned.may_act()) == (1, True, True)
    with pytest.raises(RunBusy, match=f"process {os.getpid()} on "):
        two.own(ONE)
    assert two.owner_of(ONE) == f"process {os.getpid()} on {os.uname().nodename}"
    owned.release()
    assert (owned.held, owned.may_act(), two.owner_of(ONE)) == (False, False, None)
    assert two.own(ONE).epoch == 2


def test_whoever_is_not_sure_of_its_lease_starts_nothing(hosts: Hosts) -> None:
    one = hosts.join()
    owned = one.own(ONE)
    hosts.stores[0].create(*new_run(ONE))
    hosts.expire(0)
    assert not owned.may_act(), "the lease is over by its own clock"
    assert one.beat()
    assert owned.may_act(), "nobody has taken the run up meanwhile"


def test_a_run_that_somebody_took_up_while_the_lease_was_over_is_lost(hosts: Hosts) -> None:
    one, two = hosts.join(), hosts.join(host="elsewhere", boot="another", pid=7)
    owned = one.own(ONE)
    hosts.stores[0].create(*new_run(ONE))
    hosts.expire(0)
    assert two.own(ONE).epoch == 2, "a lease that is over holds nobody up"
    assert one.beat(), "it is known, and its lease good again"
    assert not owned.may_act(), "and yet the run is another's"
    owned.release()
    assert two.owner_of(ONE) is not None, "what is another's cannot be let go of"


def dead_pid() -> int:
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        return process.pid


def test_a_dead_process_of_this_machine_holds_nobody_up(hosts: Hosts) -> None:
    hosts.join(pid=dead_pid()).own(ONE)
    hosts.stores[0].create(*new_run(ONE))
    here, there = hosts.join(), hosts.join(boot="another", host="elsewhere")
    assert there.owner_of(ONE) is not None, "from elsewhere nobody can tell"
    with pytest.raises(RunBusy):
        there.own(ONE)
    assert here.owner_of(ONE) is None
    assert here.own(ONE).epoch == 2


def test_a_process_that_nobody_has_waited_for_is_dead(hosts: Hosts) -> None:
    with subprocess.Popen([sys.executable, "-c", "import signal; signal.pause()"]) as process:
        hosts.join(pid=process.pid).own(ONE)
        hosts.stores[0].create(*new_run(ONE))
        here = hosts.join()
        with pytest.raises(RunBusy):
            here.own(ONE)
        process.send_signal(signal.SIGKILL)
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        assert here.own(ONE).epoch == 2


def count(hosts: Hosts) -> int:
    return int(hosts.stores[0]._main.read("SELECT count(*) FROM orc.workers")[0][0])


def test_a_process_that_leaves_is_forgotten(hosts: Hosts, database: str) -> None:
    one = hosts.join()
    one.own(ONE).release()
    assert count(hosts) == 1
    one.close()
    assert count(hosts) == 0


def until(true: Callable[[], bool]) -> None:
    while not true():
        signal.sigtimedwait((), 0.05)


def test_a_lease_is_renewed_by_itself(hosts: Hosts, database: str) -> None:
    store = PostgresStore(database, "demo")
    owners = LeaseOwners(store.leases, this_worker(), ttl_s=0.3)
    owned = owners.own(ONE)
    begun = owners._good_until
    until(lambda: owners._good_until > begun + 0.6)
    assert owned.held
    owners.close()
    store.close()
