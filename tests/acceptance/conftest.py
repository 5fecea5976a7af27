"""The rig every acceptance test starts from."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.acceptance.rig import Rig


@pytest.fixture
def rig(repo: Path) -> Rig:
    """`orc` on a fresh repository, with a workflow of three steps and a wrapper that performs them."""
    return Rig(repo)
