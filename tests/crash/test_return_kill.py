"""`orc rewind` and `orc fork` killed with -9 before each of their steps: finished by the next command, and nothing lost."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.swarm_rig import SwarmRig
from tests.acceptance.test_going_back import MODES, Mode, committed, git, tree_of
from tests.crash.warm import Warm

KILLS_MAX = 40
STEPS_MIN = 4
MINE = "mine, and nowhere else\n"


def _branches(repo: Path) -> Mode:
    """A swarm whose beads have branches and worktrees of their own."""
    rig = SwarmRig(repo)
    committed(repo)
    rig.do('echo $STEP_ID >"$STEP_ID.txt"')
    rig.beads(*({"id": f"b{number}", "prompt": "x"} for number in (1, 2)))
    return Mode(rig, lambda: rig.swarm("--max-agents", "1", "--branch", "work"), "b1")


ALL = {**MODES, "branches": _branches}


class Interrupted:
    """A finished run with work of a person's in every tree of it, and the same again after each kill."""

    def __init__(self, mode: Mode) -> None:
        self.mode, self.repo, self.run = mode, mode.rig.repo, mode.finish()
        lines = git(self.repo, "worktree", "list", "--porcelain").splitlines()
        self.trees = [Path(line[9:]) for line in lines if line[:9] == "worktree "]
        for tree in self.trees:
            (tree / "mine.txt").write_text(MINE)
        (self.repo / "own.txt").write_text(MINE)
        if "own.txt" in git(self.repo, "ls-files"):
            git(self.repo, "add", "own.txt")
            (self.repo / "own.txt").write_text(MINE * 2)
        self.warm = Warm(self.repo, mode.rig.environment())
        self.warm.save()

    def look(self) -> tuple[object, ...]:
        """Return all that a person sees of the repository."""
        lines = git(self.repo, "worktree", "list", "--porcelain").splitlines()
        trees = [Path(line[9:]) for line in lines if line[:9] == "worktree "]
        return (
            git(self.repo, "for-each-ref", "--format=%(refname) %(objectname)", "refs/heads/"),
            {str(tree): (tree_of(tree), git(tree, "status", "--porcelain")) for tree in trees},
            [one.name for one in (self.repo / ".agents").glob("worktrees/.gone~*")],
        )

    def refs(self) -> set[str]:
        """Return what is kept, and as what."""
        return set(git(self.repo, "for-each-ref", "--format=%(refname) %(tree)", "refs/orc/").splitlines())

    def kept(self) -> set[str]:
        """Return the uncommitted files of a person's that there are: in trees, or under refs that keep what was there."""
        found = [one.read_text() for tree in self.trees for one in (tree / "mine.txt", tree / "own.txt") if one.is_file()]
        for ref in git(self.repo, "for-each-ref", "--format=%(refname)", "refs/orc/").split():
            for name in git(self.repo, "ls-tree", "--name-only", ref).split():
                found += [git(self.repo, "show", f"{ref}:{name}") + "\n"] if name in ("mine.txt", "own.txt") else []
        return {one for one in found if one in (MINE, MINE * 2)}


CASES = {
    "rewind": ("workflow", "phases", "team", "branches"),
    "fork": ("loop", "phases", "branches"),
}
"""Each way that trees are brought back or copied, once: a loop, and beads in one tree, go back as a workflow does."""


@pytest.mark.parametrize(("verb", "mode"), [(verb, mode) for verb, modes in CASES.items() for mode in modes])
def test_a_killed_command_is_finished_by_itself_or_by_the_next_one_and_nothing_is_lost(
    verb: str, mode: str, tmp_path: Path
) -> None:
    repo = tmp_path / "repo"
    repo.mkdir()
    one = Interrupted(ALL[mode](repo))
    try:
        check_every_kill(one, verb)
    finally:
        one.warm.end()


def check_every_kill(one: Interrupted, verb: str) -> None:
    """Kill a command before each of its steps, and finish it each time."""
    warm, run, middle = one.warm, one.run, one.mode.middle
    command = (verb, run, *(("--to", middle) if verb == "rewind" else ("--run-id", "other", "--at", middle)), "--json")
    mine = one.kept()
    assert mine, "there is something to lose"
    code, said = warm.orc(*command)
    assert code == 0, said
    told, wanted, refs = json.loads(said), one.look(), one.refs()
    assert one.kept() == mine
    for at in range(1, KILLS_MAX):
        warm.restore()
        killed = warm.orc(*command, killed_at=at)[0] == -9
        code, said = warm.orc(*command) if killed else (0, said)
        assert one.look() == wanted, f"killed before step {at}"
        if not killed or _was_done(code, said, told):
            break
        assert code == 0, f"killed before step {at}: {said}"
        assert one.refs() == refs, f"killed before step {at}"
        assert json.loads(said).get("refs") == told.get("refs"), f"killed before step {at}"
    assert KILLS_MAX - 1 > at > STEPS_MIN, "it was killed on the way, and came to its end"
    assert one.refs() >= refs
    warm.restore()
    warm.orc(*command, killed_at=STEPS_MIN)
    code, said = warm.orc("resume", run if verb == "rewind" else "other")
    assert code == 0, said
    assert {"completed"} == {one["status"] for one in json.loads(warm.orc("list", "--json")[1])["runs"]}


def _was_done(code: int, said: str, told: dict[str, Any]) -> bool:
    """Return True if the killed command had done everything and was only not heard: to repeat it is a second rewind or fork."""
    if code == 2 and "Run other exists already (it is paused); continue it with `orc resume other`" in said:
        return True
    return "undo" in told and code == 0 and json.loads(said)["undo"] > told["undo"]
