"""The page over a database that machines share: who drives what, what waits in which pool, and who has gone silent."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from agent_orchestrator.core.ids import RunId
from agent_orchestrator.store.postgres import PostgresStore, install
from agent_orchestrator.store.postgres.cluster import Cluster
from agent_orchestrator.store.postgres.leases import Worker
from agent_orchestrator.testing.store import new_run
from tests.postgres.server import shared_server
from tests.web.rig import Visitor
from tests.web.server import Server

pytestmark = pytest.mark.xdist_group("browser")

LONG_S = 3600.0


def join(url: str, name: str, lease_s: float) -> Cluster:
    cluster = Cluster(url)
    about = Worker(name=name, host=f"{name}.example", boot="b", pid=7, pool="default", capacity=2, root="/r")
    cluster.leases.join(about, lease_s)
    return cluster


def test_workers_and_queues_are_on_the_page(repo: Path, visit: Callable[..., Visitor], monkeypatch: pytest.MonkeyPatch) -> None:
    url = shared_server().make_database()
    install(url)
    monkeypatch.setenv("ORC_STORE", url)
    monkeypatch.setenv("ORC_STORE_REPOSITORY", "example.com/you/shop")
    store = PostgresStore(url, "example.com/you/shop")
    for name in ("one", "two", "three"):
        new, first = new_run(RunId(name))
        context = msgspec.structs.replace(new.context, remote="git://example.com/shop.git")
        store.create(msgspec.structs.replace(new, system="workflow", context=context), first)
        assert store.leases.queue(RunId(name), "default")
    ada, bob = join(url, "ada", LONG_S), join(url, "bob", -60.0)
    assert len(ada.leases.claim("default", 2)) == 2
    server = Server(repo.parent, repo)
    try:
        tab = visit(server).tab()
        tab.wait_text("Workers", "ada on ada.example", "2/2", "bob on bob.example", "silent for", "1 queued, 2 driven, 0 at rest")
        tab.wait_text("queued", "waits for a worker")
        assert tab.serious() == []
    finally:
        server.stop()
        for one in (store, ada, bob):
            one.close()
