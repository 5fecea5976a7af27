"""An `orc` that is loaded once and forked for each command, which may be killed before any of its steps; for tests of many kills.

Started with `python -m tests.crash.warm`, it reads commands and answers them, one JSON line each. The steps that are counted:
each git command that changes more than an index of ours, each deleted folder, and each write to the journal; or each git
command that may change anything, and nothing else.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.postgres.server import shared_server

CHANGING = frozenset(("update-ref", "read-tree", "update-index", "checkout-index", "switch"))
MAY_CHANGE = CHANGING | {"worktree", "commit-tree", "checkout", "branch", "merge", "push"}
LOADED = ("runs.rewind", "runs.fork", "runs.takeup", "runs.world", "runs.discard", "runs.merge", "runs.visit", "runs.facts")


class Warm:
    """The forking process, as a test talks to it."""

    def __init__(self, repo: Path, environment: dict[str, str], *, git_only: bool = False) -> None:
        self.repo, self.saved, self._git_only = repo, repo.with_name("saved"), git_only
        self._database, self._copy = environment.get("ORC_STORE", ""), ""
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.crash.warm"],
            cwd=Path(__file__).parents[2],
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def save(self) -> None:
        """Remember the repository as it is, and the database that holds its runs where that is not in it."""
        shutil.copytree(self.repo, self.saved, symlinks=True)
        if self._database:
            self._copy = shared_server().copy_database(self._database)

    def restore(self) -> None:
        """Bring the repository back as it was, in the same place."""
        shutil.rmtree(self.repo)
        shutil.copytree(self.saved, self.repo, symlinks=True)
        if self._database:
            shared_server().restore_database(self._database, self._copy)

    def orc(self, *arguments: str, killed_at: int = 0) -> tuple[int, str]:
        """Run a command, killed before that step if it has so many; return its exit code, -9 where it was killed, and words."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps([str(self.repo), killed_at, arguments, self._git_only]) + "\n")
        self._process.stdin.flush()
        code, said = json.loads(self._process.stdout.readline())
        return code, said

    def end(self) -> None:
        """End the process."""
        self._process.communicate()


def _count(at: int) -> Callable[[], None]:
    count = 0

    def step() -> None:
        nonlocal count
        count += 1
        if count == at:
            os.kill(os.getpid(), signal.SIGKILL)

    return step


def _watch_git(step: Callable[[], None]) -> None:
    """Count the git commands of this process that may change something."""
    run = subprocess.run

    def counted_run(argv: Any, **more: Any) -> Any:
        if MAY_CHANGE.intersection((*argv[1:2], *argv[3:4])):
            step()
        return run(argv, **more)

    subprocess.run = counted_run  # type: ignore[assignment]


def _watch(step: Callable[[], None]) -> None:
    """Count the steps of this process."""
    from agent_orchestrator.store.postgres import PostgresStore
    from agent_orchestrator.store.sqlite import SqliteStore

    run, delete = subprocess.run, shutil.rmtree

    def counted_run(argv: Any, **more: Any) -> Any:
        scratch = "GIT_INDEX_FILE" in more["env"] and "-u" not in argv
        if (argv[3] in CHANGING and not scratch) or argv[3:5] in (["worktree", "add"], ["worktree", "prune"]):
            step()
        return run(argv, **more)

    def counted_delete(*arguments: Any, **more: Any) -> None:
        step()
        delete(*arguments, **more)

    def before(write: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*arguments: Any, **more: Any) -> Any:
            step()
            return write(*arguments, **more)

        return counted

    subprocess.run, shutil.rmtree = counted_run, counted_delete  # type: ignore[assignment]
    for store in (SqliteStore, PostgresStore):
        for name in ("append", "create"):
            setattr(store, name, before(getattr(store, name)))


def _serve() -> None:
    import importlib

    from agent_orchestrator.surfaces.cli.main import main

    for name in LOADED:
        importlib.import_module(f"agent_orchestrator.{name}")
    for line in sys.stdin:
        repo, at, arguments, git_only = json.loads(line)
        with tempfile.TemporaryFile("w+") as said:
            child = os.fork()
            if child == 0:
                os.chdir(repo)
                os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
                for stream in (1, 2):
                    os.dup2(said.fileno(), stream)
                sys.argv = ["orc", *arguments]
                if at:
                    (_watch_git if git_only else _watch)(_count(at))
                code = 1
                try:
                    code = main()
                finally:
                    sys.stdout.flush()
                    sys.stderr.flush()
                    os._exit(code)
            code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
            said.seek(0)
            print(json.dumps([code, said.read()]), flush=True)


if __name__ == "__main__":
    _serve()
