"""A prepared database and a cluster around it, for each test; with PLACING=dbos, the queues of DBOS place its runs."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent_orchestrator.store.postgres import install
from tests.cluster.rig import Farm, cluster_of
from tests.postgres.server import shared_server


@pytest.fixture
def farm(repo: Path) -> Iterator[Farm]:
    """A repository with a remote and a store, and no worker yet."""
    url = shared_server().make_database()
    install(url)
    with cluster_of(repo, url) as made:
        if placing := os.environ.get("PLACING"):
            assert made.ask_store("store", "init", "--placing", placing).code == 0
        yield made
