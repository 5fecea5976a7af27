"""The walls that can be tried on this machine."""

from __future__ import annotations

import pytest

from agent_orchestrator.core.sandbox import Wall
from agent_orchestrator.engine.walls.machine import find_walls

WALLS = (Wall.BWRAP, Wall.LANDLOCK)


def need(wall: Wall) -> Wall:
    """Skip the test where the wall cannot stand; `make test` installs what Linux needs for it."""
    if (fault := find_walls(None)[wall]) is not None:
        pytest.skip(f"{wall}: {fault}")
    return wall
