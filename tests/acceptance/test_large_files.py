"""A repository with Git LFS, the real one: large files of a run reach the remote with its branch, whoever pushes it."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from agent_orchestrator.config import load_settings
from agent_orchestrator.git.fences import Fence, RunRemote, push_fenced
from agent_orchestrator.git.homes import objects_of
from agent_orchestrator.git.remotes import push_branch
from agent_orchestrator.git.snapshots import commit_on_branch, write_tree
from agent_orchestrator.git.worktree import add_worktree

pytestmark = pytest.mark.skipif(shutil.which("git-lfs") is None, reason="git-lfs is needed; `make test` installs it")


class Large:
    """A repository of a person who uses LFS, its remote, and a worktree in which an agent wrote a large file."""

    def __init__(self, folder: Path) -> None:
        self.repo, self.bare, home = folder / "repo", folder / "remote.git", folder / "home"
        home.mkdir()
        self.environ = {"HOME": str(home), "PATH": os.environ["PATH"], "GIT_CONFIG_NOSYSTEM": "1"}
        (home / ".gitconfig").write_text("[user]\nname = Grace Example\nemail = grace@example.com\n")
        self.run(folder, "git", "lfs", "install")
        self.run(folder, "git", "init", "--quiet", "--bare", str(self.bare))
        self.run(folder, "git", "init", "--quiet", "--initial-branch=main", str(self.repo))
        (self.repo / ".gitattributes").write_text("*.bin filter=lfs diff=lfs merge=lfs -text\n")
        self.run(self.repo, "git", "add", "--all")
        self.run(self.repo, "git", "commit", "--quiet", "--message", "First")
        self.run(self.repo, "git", "remote", "add", "origin", str(self.bare))
        load_settings(str(self.repo), self.environ)
        self.tree = add_worktree(self.repo, "f8c1")
        (self.tree / "large.bin").write_text("large\n")
        scratch = folder / "scratch"
        made = commit_on_branch(self.tree, scratch, write_tree(self.tree, scratch), "Work", 1_750_000_000_000_000)
        assert made is not None
        self.commit = made

    def run(self, where: Path, *command: str) -> str:
        done = subprocess.run(command, cwd=where, env=self.environ, check=True, capture_output=True, text=True)
        return done.stdout.strip()

    def reads_from_remote(self, branch: str) -> str:
        """Return the large file as somebody gets it who clones the branch."""
        clone = self.repo.parent / "clone"
        self.run(self.repo.parent, "git", "clone", "--quiet", "--branch", branch, str(self.bare), str(clone))
        return (clone / "large.bin").read_text()


@pytest.fixture
def large(tmp_path: Path) -> Large:
    return Large(tmp_path)


def test_a_branch_is_pushed_with_its_large_files(large: Large) -> None:
    assert large.run(large.repo, "git", "show", f"{large.commit}:large.bin").startswith("version https://git-lfs")
    push_branch(large.repo, "origin", "orc/f8c1", large.environ)
    assert large.reads_from_remote("orc/f8c1") == "large\n"


def test_a_worker_pushes_large_files_from_the_home_of_its_run(large: Large) -> None:
    mirror = large.repo.parent / "mirror.git"
    large.run(large.repo.parent, "git", "clone", "--quiet", "--mirror", str(large.repo), str(mirror))
    remote = RunRemote(where=mirror, url=str(large.bare), environ=large.environ)
    push_fenced(remote, "f8c1", Fence(), {"refs/heads/orc/f8c1": large.commit}, objects_of(large.repo))
    assert large.reads_from_remote("orc/f8c1") == "large\n"


def test_an_agent_cannot_name_the_server_that_large_files_are_sent_to(large: Large) -> None:
    (large.tree / ".lfsconfig").write_text("[lfs]\nurl = http://127.0.0.1:9/stolen\n")
    push_branch(large.repo, "origin", "orc/f8c1", large.environ)
    assert large.reads_from_remote("orc/f8c1") == "large\n"
