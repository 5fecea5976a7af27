"""The directories of a repository, found without starting git; and the files that we keep out of its commits."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from agent_orchestrator.git.repository import common_dir, store_folder, top_level


def git(where: Path, *arguments: str) -> str:
    done = subprocess.run(["git", *arguments], cwd=where, check=True, capture_output=True, text=True)
    return done.stdout.strip()


def test_a_repository_is_found_from_any_folder_in_it(repo: Path) -> None:
    inner = repo / "src" / "deep"
    inner.mkdir(parents=True)
    assert top_level(inner) == top_level(repo) == repo
    assert store_folder(inner) == store_folder(repo) == repo / ".git" / "orc"


def test_all_worktrees_share_one_store(repo: Path, tmp_path: Path) -> None:
    git(repo, "worktree", "add", "--quiet", str(tmp_path / "tree"))
    assert top_level(tmp_path / "tree") == tmp_path / "tree"
    assert common_dir(tmp_path / "tree") == repo / ".git"
    assert store_folder(tmp_path / "tree") == repo / ".git" / "orc"


def test_a_submodule_has_a_git_directory_of_its_own(repo: Path) -> None:
    own = repo / ".git" / "modules" / "sub"
    own.mkdir(parents=True)
    (repo / "sub").mkdir()
    (repo / "sub" / ".git").write_text("gitdir: ../.git/modules/sub\n")
    assert top_level(repo / "sub") == repo / "sub"
    assert common_dir(repo / "sub") == own


@pytest.mark.parametrize("text", ["", "nonsense", "gitdirs: x"])
def test_a_git_file_that_says_nothing_leads_nowhere(text: str, tmp_path: Path) -> None:
    (tmp_path / ".git").write_text(text)
    assert common_dir(tmp_path) is None
    assert store_folder(tmp_path) == tmp_path / ".agents" / "orc"


def test_an_empty_folder_that_a_sandbox_left_is_no_repository(repo: Path) -> None:
    inner = repo / "inner"
    (inner / ".git" / "info").mkdir(parents=True)
    assert top_level(inner) == repo
    assert store_folder(inner) == repo / ".git" / "orc"


def test_without_git_the_store_lies_beside_the_print_outs(tmp_path: Path) -> None:
    assert top_level(tmp_path) is None
    assert store_folder(tmp_path) == tmp_path / ".agents" / "orc"


def test_git_agrees_on_the_common_directory(repo: Path) -> None:
    said = git(repo, "rev-parse", "--path-format=absolute", "--git-common-dir")
    assert common_dir(repo) == Path(said)
