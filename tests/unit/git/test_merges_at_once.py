"""Two merges into one branch that somebody has checked out: what one has moved by half is never taken for the owner's edit."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from agent_orchestrator.core.inputs import MergeEnded, MergeVerdict
from agent_orchestrator.git.environment import GitEnvironment, use_environment
from agent_orchestrator.git.merges import plan_merge
from agent_orchestrator.git.moves import CheckoutMove
from agent_orchestrator.git.repository import store_folder
from tests.unit.git.test_merges import branch, git, landed, merge, planned

During = Callable[[str, str], None]


@pytest.fixture
def during(tmp_path: Path) -> During:
    """Let a shell command run right before the first git command of ours whose words are these."""
    own = tmp_path / "bin"
    own.mkdir()

    def stand_in(words: str, script: str) -> None:
        once = f'case "$*" in *"{words}"*) if mkdir "{own}/done" 2>/dev/null; then {script}; fi;; esac'
        (own / "git").write_text(f'#!/bin/sh\n{once}\nexec "{shutil.which("git")}" "$@"\n')
        (own / "git").chmod(0o755)
        use_environment(GitEnvironment(variables={"PATH": f"{own}:{os.environ['PATH']}"}))

    return stand_in


def test_a_branch_that_moves_after_the_plan_read_it_is_planned_anew(repo: Path, during: During) -> None:
    branch(repo, "feature/a", {"a.py": "a\n"})
    other = branch(repo, "feature/b", {"b.py": "b\n"})
    during("commit-tree", f'git -C "{repo}" update-ref refs/heads/main {other}; echo b >"{repo}/b.py"')
    ended = plan_merge(repo, merge("feature/a"))
    assert isinstance(ended, MergeEnded)
    assert (ended.verdict, ended.again) == (MergeVerdict.MOVED, True), ended


def test_a_merge_that_moved_the_branch_and_not_yet_the_files_is_finished_first(repo: Path, during: During) -> None:
    lines = [f"{number}\n" for number in range(9)]
    (repo / "lines").write_text("".join(lines))
    git(repo, "add", "lines")
    git(repo, "commit", "--quiet", "--message", "Lines")
    old = git(repo, "rev-parse", "main")
    branch(repo, "feature/a", {"lines": "".join(["a\n", *lines])})
    new = branch(repo, "feature/b", {"lines": "".join([*lines, "b\n"])})
    move = msgspec.json.encode(CheckoutMove(checkout=str(repo), branch="main", old=old, new=new)).decode()
    locks = store_folder(repo) / "locks"
    during(
        "rev-parse --verify --quiet refs/heads/main",
        f'mkdir -p "{locks}"; echo \'{move}\' >"{locks}/landing.intent"; git -C "{repo}" update-ref refs/heads/main {new}',
    )
    assert planned(repo, merge("feature/a")).base == new
    assert (repo / "lines").read_text() == "".join([*lines, "b\n"])
    landed(repo, merge("feature/a"))
    assert (repo / "lines").read_text() == "".join(["a\n", *lines, "b\n"])
    assert git(repo, "status", "--porcelain") == ""
