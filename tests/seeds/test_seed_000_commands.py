"""The advice of seed 000 that has no command line of its own; those that have are run by test_lines."""

from __future__ import annotations

import shutil
from pathlib import Path

from tests.acceptance.rig import Rig


def test_deleting_the_run_directory_starts_fresh(repo: Path) -> None:
    """000:494: delete the entire run directory to start fresh."""
    rig = Rig(repo)
    assert rig.run("--run-id", "again").code == 0
    shutil.rmtree(repo / ".agents" / "runs" / "again")
    assert rig.run("--run-id", "again").code == 0
    assert len(rig.launches("planning")) == 2
    assert rig.state("again")["steps"]["planning"]["attempts"] == 1
