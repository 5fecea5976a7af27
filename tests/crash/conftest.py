"""No orchestrator outlives the test that started it, however the test ends."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.crash.rig import Orc


@pytest.fixture(autouse=True)
def _nothing_left_behind() -> Iterator[None]:
    yield
    while Orc.started:
        Orc.started.pop().kill()
