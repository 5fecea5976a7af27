"""A database of its own for each test, in one server per test process."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.acceptance.rig import Rig
from tests.postgres.server import shared_server


@pytest.fixture
def empty() -> str:
    """The address of a database that nobody has prepared."""
    return shared_server().make_database()


@pytest.fixture
def database(empty: str) -> str:
    """The address of a database that is prepared for runs."""
    from agent_orchestrator.store.postgres import install

    install(empty)
    return empty


@pytest.fixture
def rig(repo: Path) -> Rig:
    return Rig(repo)
