"""Neither an orchestrator nor an agent outlives the test that started it, however the test ends."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.crash.rig import Orc, Rig


@pytest.fixture(autouse=True)
def _nothing_left_behind() -> Iterator[None]:
    yield
    while Orc.started:
        Orc.started.pop().kill()
    while Rig.made:
        Rig.made.pop().let_go()
