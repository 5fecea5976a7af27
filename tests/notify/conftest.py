"""The rig that every test of notifications with real processes starts from."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.notify.rig import NotifyRig


@pytest.fixture
def rig(repo: Path) -> NotifyRig:
    """`orc` on a fresh repository, for a person with a home of their own."""
    return NotifyRig(repo)
