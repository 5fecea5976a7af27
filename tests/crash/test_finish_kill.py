"""`orc merge` and `orc discard` killed with -9 before each git command that changes something: the next one makes it whole."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.acceptance import finish_rig
from tests.acceptance.finish_rig import Finished
from tests.crash.warm import Warm

KILLS_MAX = 40


def _look(one: Finished) -> tuple[object, ...]:
    """Return all that is left of a run in its repository, but for what is kept under refs."""
    return (
        sorted(one.git("for-each-ref", "--format=%(refname)", "refs/heads/").split()),
        len(one.git("worktree", "list").splitlines()),
        one.git("status", "--porcelain", "--untracked-files=all", "--", "*.txt", "done", "work-*"),
        one.git("log", "-1", "--format=%T", "main"),
        one.git("fsck", "--connectivity-only"),
    )


MERGED = ("workflow", "swarm", "phases")
CASES = [*(("merge", mode) for mode in MERGED), *(("discard", mode) for mode in (*MERGED, "in_place"))]
"""There is nothing to merge of a run that worked in a person's checkout."""


@pytest.mark.parametrize(("verb", "mode"), CASES)
def test_whatever_is_killed_the_same_command_finishes_it(verb: str, mode: str, tmp_path: Path) -> None:
    repo = tmp_path / "repo"
    repo.mkdir()
    make: Callable[[Path], Finished] = getattr(finish_rig, mode)
    one = make(repo)
    if verb == "discard" and mode == "phases":
        one.git("switch", "--quiet", "main")
    # State files in the checkout itself would be taken for edited ones once they are copied; missing ones are printed anew.
    shutil.rmtree(repo / ".claude", ignore_errors=True)
    warm = Warm(repo, one.rig.environment(), git_only=True)
    try:
        warm.save()
        done = one.orc(verb, one.run)
        assert done.code == 0, done
        check_every_kill(one, warm, verb)
    finally:
        warm.end()


def check_every_kill(one: Finished, warm: Warm, verb: str) -> None:
    """Kill a command before each of its git commands, and repeat it each time: all is as if it had not been killed."""
    wanted = _look(one)
    for at in range(1, KILLS_MAX):
        warm.restore()
        code, said = warm.orc(verb, one.run, killed_at=at)
        assert code in (0, -9), said
        if code == -9:
            warm.orc(verb, one.run)
        assert _look(one) == wanted, f"killed before command {at}"
        if code == 0:
            assert at > 2, "it was killed on the way"
            return
    raise AssertionError("it never came to its end")


def test_a_killed_discard_is_finished_by_whatever_is_done_next_with_the_run(tmp_path: Path) -> None:
    repo = tmp_path / "repo"
    repo.mkdir()
    one = finish_rig.workflow(repo)
    mark = f"refs/orc/{one.run}/_discarding"
    for at in range(1, KILLS_MAX):
        assert one.killed(at, "discard", one.run), "it is killed before it removes anything"
        if one.git("for-each-ref", mark):
            break
    assert one.git("branch", "--list", one.branch), "nothing is removed yet"
    opened = one.orc("open", one.run, "--path")
    assert opened.code == 2, opened
    assert f"was discarded; bring it back first: git branch {one.branch} refs/orc/" in opened.err
    assert not one.git("for-each-ref", mark)
    assert not one.git("branch", "--list", one.branch)
    assert len(one.git("worktree", "list").splitlines()) == 1
