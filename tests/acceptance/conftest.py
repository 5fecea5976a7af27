"""The rig every acceptance test starts from."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.acceptance.rig import Rig


@pytest.fixture
def rig(repo: Path) -> Rig:
    """`orc` on a fresh repository, with a workflow of three steps and a wrapper that performs them."""
    return Rig(repo)


@pytest.fixture(scope="session")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Rig:
    """One repository with a finished run called `over`, for tests that change nothing."""
    repo = tmp_path_factory.mktemp("shared") / "repo"
    repo.mkdir()
    subprocess.run(["git", "init", "--quiet"], cwd=repo, check=True)
    made = Rig(repo)
    assert made.run("--run-id", "over").code == 0
    return made
