"""The real clients; without them these tests are skipped, with the reason."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent_orchestrator.testing.model_server import ModelServer
from tests.clients.modes import ModeRig
from tests.clients.rig import BINARIES, Rig, binary


def missing() -> str | None:
    """Say why the clients cannot be run; None if they can."""
    if os.environ.get("CLIENTS") == "0":
        return "the real clients were left out (CLIENTS=0)"
    if all(binary(client) for client in BINARIES):
        return None
    if shutil.which("npm") is None:
        return "npm was not found, so that the real clients could not be installed"
    return "the real clients are not installed; `make clients` does it"


@pytest.fixture(scope="session")
def model() -> Iterator[ModelServer]:
    with ModelServer() as server:
        yield server


@pytest.fixture
def rig(tmp_path: Path, model: ModelServer) -> Iterator[Rig]:
    if (why := missing()) is not None:
        pytest.skip(why)
    made = Rig(tmp_path, model)
    yield made
    made.check_answers()


@pytest.fixture
def mode(tmp_path: Path, model: ModelServer) -> Iterator[ModeRig]:
    if (why := missing()) is not None:
        pytest.skip(why)
    made = ModeRig(tmp_path, model)
    yield made
    made.close()
