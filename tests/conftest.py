"""The ground of every test: a git that reads nobody's configuration, and a fresh repository on request.

Tests import their neighbours in full (`from tests.crash.rig import …`); the folders are namespace packages.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from tempfile import gettempdir

import pytest

from agent_orchestrator.git.environment import GitEnvironment, use_environment

GIT_ENVIRONMENT = {
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_AUTHOR_NAME": "Ada Example",
    "GIT_AUTHOR_EMAIL": "ada@example.com",
    "GIT_COMMITTER_NAME": "Ada Example",
    "GIT_COMMITTER_EMAIL": "ada@example.com",
}


def pytest_configure() -> None:
    """Set for the whole process, so that every program a test starts sees the same git, and the same store."""
    os.environ.update(GIT_ENVIRONMENT)
    # Some machines set it. Tests start `orc` thousands of times, and each would compile all of it again: a third of the time.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    os.environ["ORC_TRUSTED_PATHS"] = gettempdir()  # the repositories that tests make; those about trust take it away
    for name in ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE"):
        os.environ.pop(name, None)  # a hook that runs the tests must not lend them its repository
    os.environ.pop("ORC_STORE", None)
    if os.environ.get("STORE") == "postgres":
        os.environ["ORC_STORE"] = prepare_database()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run the quick tests last: a long one at the end would let all other processes wait for it."""
    items.sort(key=lambda item: item.nodeid.startswith(("tests/unit/", "tests/scenarios/")))


@cache
def prepare_database() -> str:
    """Make a database in this process's server, for runs of all repositories that its tests make."""
    from agent_orchestrator.store.postgres import install
    from tests.postgres.server import shared_server

    url = shared_server().make_database()
    install(url)
    return url


def forget_limits() -> None:
    """Forget the rate limits that other tests hit: those of an account are everybody's in a database."""
    from tests.postgres.server import shared_server

    shared_server().execute("DELETE FROM orc.rate_windows", os.environ["ORC_STORE"].rpartition("/")[2])


@pytest.fixture(autouse=True)
def _same_environment() -> Iterator[None]:
    """The environment of programs and of our git is as it was before a test: none must see what another has set."""
    before = dict(os.environ)
    yield
    use_environment(GitEnvironment())
    changed = {name for name, _ in before.items() ^ os.environ.items()} - {"PYTEST_CURRENT_TEST"}
    assert not changed, f"left behind in the environment: {', '.join(sorted(changed))}"


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    """A git repository with one commit on `main`."""
    if os.environ.get("STORE") == "postgres":
        forget_limits()
    return make_repo(tmp_path / "repo")


def make_repo(home: Path) -> Path:
    """Make a git repository with one commit on `main`."""
    home.mkdir()
    (home / "README.md").write_text("A repository to work on.\n")
    for command in (["init", "--quiet", "--initial-branch=main"], ["add", "--all"], ["commit", "--quiet", "--message", "First"]):
        subprocess.run(["git", *command], cwd=home, check=True)
    return home
