"""kill -9 of the engine in every phase of a team: agents are adopted, messages sent once, every merge made once."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

import pytest

from tests.acceptance.team_rig import TeamRig
from tests.crash.rig import Orc, wait_until
from tests.scenarios.team_world import group

SLOW = "sleep 0.1; "
PHASES = ("pm plan", "A develop", "A qa", "A review", "B develop", "C develop", "C review", "pm final", "pm confirm")


class TeamKill(TeamRig):
    """A team whose agents take a moment, and an orchestrator that is killed."""

    def __init__(self, repo: Path) -> None:
        super().__init__(repo)
        self.plan(group("A"), group("B"), group("C", "A"))
        for turn in ("plan", "develop", "qa", "review", "final", "confirm"):
            script = self.side / f"do.{turn}"
            script.write_text(SLOW + script.read_text())
        self.said = 0

    def begin(self, *arguments: str) -> Orc:
        self.said += 1
        return Orc(self.repo, self.side / f"said.{self.said}", arguments)

    def begun(self, turn: str) -> bool:
        return any(one.startswith(turn) for one in self.turns())

    def wait_for_another_turn(self, orc: Orc) -> None:
        seen = len(self.turns())
        wait_until(lambda: len(self.turns()) > seen or orc.ended)

    def wait_a_little(self, polls: int) -> None:
        left = iter(range(polls))
        wait_until(lambda: next(left, None) is None)

    def check_end(self, orc: Orc) -> None:
        """Check that each thing happened, and happened once."""
        assert orc.end() == 0 or "there is nothing left to do" in orc.said, orc
        state = self.file("orchestrator_state.json")
        assert state["status"] == "completed", orc
        begun = Counter(self.turns())
        assert all(count == 1 for count in begun.values()), begun
        assert {f"{unit} {turn} 1" for unit in "ABC" for turn in ("develop", "qa", "review")} <= set(begun)
        ended = (self.side / "ended.log").read_text().splitlines()
        assert len(ended) == len(begun)
        merges = [line for line in self.git("log", "--first-parent", "--format=%s", "main").splitlines() if "Merge group" in line]
        assert sorted(merges) == [f"Merge group {name}: Feature {name}" for name in "ABC"]
        for box, count in (("dev_to_qa", 3), ("qa_to_techlead", 3), ("techlead_to_dev", 3)):
            ids = [one["id"] for one in self.file(f"messages/{box}.json")["messages"]]
            assert len(ids) == len(set(ids)) == count
        for name in "abc":
            assert (self.repo / f"{name}.py").read_text() == f"{name.upper()} 1\n"
        assert self.git("status", "--porcelain") == ""
        assert len(self.git("worktree", "list").splitlines()) == 1, "merged worktrees are cleaned up"


@pytest.mark.parametrize("phase", PHASES)
def test_killed_in_a_phase_the_team_goes_on_where_it_was(phase: str, repo: Path) -> None:
    rig = TeamKill(repo)
    orc = rig.begin(*rig.team_arguments())
    wait_until(lambda: rig.begun(phase) or orc.ended)
    orc.kill()
    rig.check_end(rig.begin("resume"))


def test_killed_while_a_merge_is_checked_the_check_is_adopted_and_the_merge_made_once(repo: Path) -> None:
    rig = TeamKill(repo)
    log = rig.side / "checks.log"
    orc = rig.begin(*rig.team_arguments("--check", f"echo check >>{log}; sleep 0.3"))
    wait_until(lambda: log.exists() or orc.ended)
    orc.kill()
    rig.check_end(rig.begin("resume"))
    assert log.read_text().split() == ["check"] * 3, "one for each merge, none beside its repeat"


def survive_kills(seed: int, repo: Path) -> int:
    """Kill the engine of a team again and again, check everything it made, and return how often it was killed."""
    rig, chance, kills = TeamKill(repo), random.Random(seed), 0
    orc = rig.begin(*rig.team_arguments())
    rig.wait_for_another_turn(orc)
    for _ in range(6):
        if orc.ended:
            break
        rig.wait_a_little(chance.randint(0, 40))
        orc.kill()
        kills += 1
        orc = rig.begin("resume")
        rig.wait_for_another_turn(orc)
    rig.check_end(orc)
    return kills


@pytest.mark.parametrize("seed", range(3))
def test_whenever_it_is_killed_every_turn_is_taken_once(seed: int, repo: Path) -> None:
    assert survive_kills(seed, repo) > 0
