"""Every file in `store/` that holds a store keeps the same promises."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import agent_orchestrator.store
from agent_orchestrator.store.memory import MemoryStore
from agent_orchestrator.store.port import Store
from agent_orchestrator.store.postgres import PostgresStore, install
from agent_orchestrator.store.postgres.schema import SQL
from agent_orchestrator.store.queries import migrations
from agent_orchestrator.store.sqlite import SqliteStore
from agent_orchestrator.testing.leases import check_leases
from agent_orchestrator.testing.store import check_store
from tests.postgres.server import shared_server


def make_postgres(folder: Path) -> PostgresStore:
    address = shared_server().make_database()
    assert install(address) == 0
    assert install(address) == len(migrations(SQL)), "what is there stays as it is"
    return PostgresStore(address, "demo")


MAKERS: dict[str, Callable[[Path], Store]] = {
    "MemoryStore": lambda folder: MemoryStore(),
    "PostgresStore": make_postgres,
    "SqliteStore": lambda folder: SqliteStore(folder),
}


JOINERS: dict[str, Callable[[Any], Store]] = {
    "PostgresStore": lambda store: PostgresStore(store.url, store.repository),
    "SqliteStore": lambda store: SqliteStore(store.path.parent),
}


def stores() -> list[str]:
    found = []
    for module in pkgutil.walk_packages(agent_orchestrator.store.__path__, "agent_orchestrator.store."):
        loaded = importlib.import_module(module.name)
        found += [
            name
            for name, value in vars(loaded).items()
            if name.endswith("Store") and isinstance(value, type) and value.__module__ == loaded.__name__ and name != "Store"
        ]
    return found


@pytest.mark.parametrize("name", stores())
def test_a_store_keeps_every_promise(name: str, tmp_path: Path) -> None:
    made = iter(range(1000))
    check_store(lambda: MAKERS[name](tmp_path / str(next(made))), JOINERS.get(name))


def test_leases_keep_every_promise() -> None:
    def make() -> Callable[[], PostgresStore]:
        address = shared_server().make_database()
        install(address)
        return lambda: PostgresStore(address, "demo")

    check_leases(make)
