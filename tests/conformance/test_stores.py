"""Every file in `store/` that holds a store keeps the same promises."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from pathlib import Path

import pytest

import agent_orchestrator.store
from agent_orchestrator.store.memory import MemoryStore
from agent_orchestrator.store.port import Store
from agent_orchestrator.store.sqlite import SqliteStore
from agent_orchestrator.testing.store import check_store

MAKERS: dict[str, Callable[[Path], Store]] = {
    "MemoryStore": lambda folder: MemoryStore(),
    "SqliteStore": lambda folder: SqliteStore(folder),
}


def stores() -> list[str]:
    found = []
    for module in pkgutil.iter_modules(agent_orchestrator.store.__path__):
        loaded = importlib.import_module(f"agent_orchestrator.store.{module.name}")
        found += [
            name
            for name, value in vars(loaded).items()
            if name.endswith("Store") and isinstance(value, type) and value.__module__ == loaded.__name__ and name != "Store"
        ]
    return found


@pytest.mark.parametrize("name", stores())
def test_a_store_keeps_every_promise(name: str, tmp_path: Path) -> None:
    made = iter(range(1000))
    check_store(lambda: MAKERS[name](tmp_path / str(next(made))))
