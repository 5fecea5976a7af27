"""A working tree is written as `git add --all` would write it, by whoever has just looked and by whoever has not."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from agent_orchestrator.core.ids import RunId
from agent_orchestrator.git.kept_trees import TreeKeeper
from agent_orchestrator.git.ownership import TreeWork
from agent_orchestrator.git.settings import mark_file
from agent_orchestrator.git.snapshots import write_tree
from tests.conftest import make_repo
from tests.unit.git.test_repository import git


@pytest.fixture
def repo(repo: Path, tmp_path: Path) -> Path:
    """A repository with some files, two folders, a link and a submodule."""
    for name in ("a file", "b", "folder/x", "folder/y", "other/x"):
        (repo / name).parent.mkdir(exist_ok=True)
        (repo / name).write_text(f"{name}\n")
    (repo / "link").symlink_to("b")
    inner = make_repo(tmp_path / "inner")
    git(repo, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(inner), "sub")
    git(repo, "add", "--all")
    git(repo, "commit", "--quiet", "--message", "some files")
    return repo


def change(repo: Path) -> None:
    (repo / "b").write_text("more\n")
    (repo / "é\nö").write_text("new\n")
    (repo / "a file").unlink()


def replace_by_link(repo: Path) -> None:
    """A folder becomes a link to another one that has a file of the same name."""
    shutil.rmtree(repo / "folder")
    (repo / "folder").symlink_to("other")


def replace_by_folder(repo: Path) -> None:
    (repo / "b").unlink()
    (repo / "b").mkdir()
    (repo / "b/x").write_text("below\n")


def replace_by_file(repo: Path) -> None:
    shutil.rmtree(repo / "folder")
    (repo / "folder").write_text("no folder\n")


def replace_link(repo: Path) -> None:
    (repo / "link").unlink()
    (repo / "link").write_text("b")


def fail_to_merge(repo: Path) -> None:
    """A file that both changed, one that only one of them deleted."""
    git(repo, "switch", "--quiet", "--create", "theirs")
    (repo / "b").write_text("theirs\n")
    git(repo, "rm", "--quiet", "other/x", "folder/y")
    (repo / "folder/x").write_text("theirs\n")
    git(repo, "commit", "--quiet", "--all", "--message", "theirs")
    git(repo, "switch", "--quiet", "main")
    (repo / "b").write_text("ours\n")
    (repo / "other/x").write_text("ours\n")
    git(repo, "rm", "--quiet", "folder/x")
    git(repo, "commit", "--quiet", "--all", "--message", "ours")
    assert subprocess.run(["git", "merge", "--quiet", "theirs"], cwd=repo, capture_output=True, check=False).returncode == 1


def commit_below(repo: Path) -> None:
    (repo / "sub/README.md").write_text("more\n")
    git(repo / "sub", "commit", "--quiet", "--all", "--message", "more")


def stage_and_go_on(repo: Path) -> None:
    (repo / "b").write_text("staged\n")
    (repo / "new").write_text("staged\n")
    git(repo, "add", "--all")
    (repo / "b").write_text("after\n")
    (repo / "new").unlink()


def leave_out_of_the_tree(repo: Path) -> None:
    git(repo, "update-index", "--skip-worktree", "b")
    (repo / "b").unlink()
    git(repo, "update-index", "--assume-unchanged", "other/x")
    (repo / "other/x").write_text("nobody asks\n")


TREES: dict[str, Callable[[Path], object]] = {
    "as it was committed": lambda _: None,
    "changed, new and deleted": change,
    "executable now": lambda repo: (repo / "b").chmod(0o755),
    "a folder that is a link": replace_by_link,
    "a file that is a folder": replace_by_folder,
    "a folder that is a file": replace_by_file,
    "a link that is a file": replace_link,
    "an intent to add": lambda repo: ((repo / "soon").write_text("soon\n"), git(repo, "add", "--intent-to-add", "soon")),
    "deleted from the index only": lambda repo: git(repo, "rm", "--quiet", "--cached", "b"),
    "staged, and changed after it": stage_and_go_on,
    "a merge that conflicts": fail_to_merge,
    "a submodule with a new commit": commit_below,
    "a submodule that is gone": lambda repo: shutil.rmtree(repo / "sub"),
    "files that git was told not to look at": leave_out_of_the_tree,
}


def test_what_differed_from_an_index_that_has_changed_since_is_looked_for_again(repo: Path, tmp_path: Path) -> None:
    (repo / "b").write_text("staged\n")
    git(repo, "add", "--all")
    before = TreeWork([], [], [], mark_file(repo / ".git/index"))  # A person unstages it right after the look.
    git(repo, "reset", "--quiet")
    git(repo, "rm", "--quiet", "--cached", "link")
    (repo / "link").unlink()
    assert write_tree(repo, tmp_path / "scratch", before) == write_tree(repo, tmp_path / "scratch")


@pytest.mark.parametrize("way", TREES)
def test_a_tree_is_what_git_would_add(repo: Path, tmp_path: Path, way: str) -> None:
    TREES[way](repo)
    shutil.copy2(repo / ".git/index", tmp_path / "index")
    env = {**os.environ, "GIT_INDEX_FILE": str(tmp_path / "index")}
    subprocess.run(["git", "add", "--all"], cwd=repo, env=env, check=True)
    wanted = subprocess.run(["git", "write-tree"], cwd=repo, env=env, capture_output=True, text=True, check=True).stdout.strip()
    assert write_tree(repo, tmp_path / "scratch") == wanted
    kept = TreeKeeper().keep(repo, tmp_path / "scratch", RunId("r"), None)
    assert kept is not None
    assert not kept.problem
    assert git(repo, "rev-parse", f"{kept.commit}^{{tree}}") == wanted
