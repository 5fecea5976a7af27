"""Git work that is done by one process at a time, an orphan of a killed one included."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
from pathlib import Path

import pytest

from agent_orchestrator.core.effects import Tree
from agent_orchestrator.git.command import held_locks, hold_lock
from agent_orchestrator.git.worktree import add_worktree, folder_of, open_tree

ORPHANING = """
import os, signal, subprocess, sys
from pathlib import Path
from agent_orchestrator.git.command import hold_lock, held_locks
with hold_lock(Path(sys.argv[1]), "worktrees"):
    child = subprocess.Popen(["sh", "-c", "read line"], stdin=0, pass_fds=held_locks())
    print(child.pid, flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
"""


def is_locked(repo: Path) -> bool:
    with (repo / ".git" / "orc" / "locks" / "worktrees").open("r+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


def test_a_git_that_outlives_its_engine_keeps_the_lock_until_it_is_done(repo: Path) -> None:
    reading, writing = os.pipe()
    with subprocess.Popen(
        [sys.executable, "-c", ORPHANING, str(repo)], stdin=reading, stdout=subprocess.PIPE, text=True
    ) as engine:
        os.close(reading)
        assert engine.stdout is not None
        assert engine.stdout.readline()
        assert engine.wait() < 0
        assert is_locked(repo)
        os.write(writing, b"\n")
        os.close(writing)
        with hold_lock(repo, "worktrees"):
            assert len(held_locks()) == 1
    assert held_locks() == ()


def test_a_worktree_of_which_only_the_beginning_is_there_is_finished(repo: Path) -> None:
    tree = Tree(branch="feature/a", start="main")
    open_tree(repo, "x", tree)
    folder = folder_of(repo, "x", tree)
    admin = next((repo / ".git" / "worktrees").iterdir())
    (admin / "index").unlink()
    (folder / "README.md").unlink()
    open_tree(repo, "x", tree)
    assert (folder / "README.md").exists()


@pytest.mark.parametrize("times", [1, 2])
def test_a_worktree_is_made_once(repo: Path, times: int) -> None:
    for _ in range(times):
        open_tree(repo, "x", Tree(branch="feature/a", start="main"))
    assert len(list((repo / ".git" / "worktrees").iterdir())) == 1


def test_a_lock_file_from_before_a_power_cut_that_emptied_our_mark_is_removed(repo: Path) -> None:
    add_worktree(repo, "r1")
    for mark in (repo / ".git" / "orc" / "locks").iterdir():
        mark.write_bytes(b"")
    old, young = repo / ".git" / "refs" / "heads" / "old.lock", repo / ".git" / "refs" / "heads" / "young.lock"
    for lock in (old, young):
        lock.touch()
    os.utime(old, (0, 0))
    add_worktree(repo, "r2")
    assert not old.exists(), "it is older than this start of the machine"
    assert young.exists(), "somebody may have it"
