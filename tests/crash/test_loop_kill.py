"""kill -9 of the engine while a loop runs: agents are adopted, iterations counted once, files whole at every instant."""

from __future__ import annotations

import json
import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.crash.rig import Orc, wait_until
from tests.scenarios.loop_world import loop_state_schema

AGENT = """\
#!/bin/sh
here=${0%/*}
echo "start $ITERATION $$" >>"$here/agents.log"
sleep 0.15
echo "$ITERATION" >>count
echo "end $ITERATION $$" >>"$here/agents.log"
"""
ITERATIONS = 6


class LoopRig:
    def __init__(self, repo: Path) -> None:
        self.repo, self.side = repo, repo.parent / "side"
        self.side.mkdir()
        self.agent = self.side / "agent.sh"
        self.agent.write_text(AGENT)
        self.agent.chmod(0o755)
        self.said = 0

    def start(self, *arguments: str) -> Orc:
        self.said += 1
        return Orc(self.repo, self.side / f"said.{self.said}", arguments)

    def loop(self, loop: str) -> Orc:
        check = f'test "$(wc -l <count)" -ge {ITERATIONS}'
        agent = ("--agent-command", str(self.agent))
        return self.start("loop", "run", "count", "--until", check, *agent, "--loop-id", loop)

    def log(self, word: str) -> list[str]:
        log = self.side / "agents.log"
        lines = [line.split() for line in log.read_text().splitlines()] if log.exists() else []
        return [line[1] for line in lines if line[0] == word]

    def wait_for_another_agent(self, orc: Orc, polls: int) -> None:
        """Waits until one more agent has started, and then a little more."""
        begun = len(self.log("start"))
        wait_until(lambda: len(self.log("start")) > begun or orc.ended)
        left = iter(range(polls))
        wait_until(lambda: next(left, None) is None)

    def state(self, loop: str) -> Any:
        content = json.loads((self.repo / ".aiwg" / "ralph" / "loops" / loop / "state.json").read_text())
        faults = [error.message for error in loop_state_schema().iter_errors(content)]
        assert not faults, faults
        return content


def survive_kills(seed: int, repo: Path) -> int:
    """Kill the engine of a loop again and again, check what became of it, and return how often it was killed."""
    rig, chance, loop = LoopRig(repo), random.Random(seed), f"ralph-count-{seed:08d}"
    orc = rig.loop(loop)
    kills = 0
    while kills < 5 and not orc.ended:
        orc.wait_for(f"loop {loop}")
        rig.wait_for_another_agent(orc, polls=chance.randint(0, 60))
        orc.kill()
        kills += 1
        orc = rig.start("loop", "resume", loop)
    code = orc.end()
    assert code == 0 or "is completed; there is nothing to resume" in orc.said, orc
    state = rig.state(loop)
    assert state["status"] == "completed", orc
    assert Counter(rig.log("end")) == {str(number): 1 for number in range(1, ITERATIONS + 1)}
    assert Counter(rig.log("start")) == Counter(rig.log("end"))
    assert (state["iteration"], state["metrics"]["total_iterations"]) == (ITERATIONS, ITERATIONS)
    assert (rig.repo / "count").read_text().split() == [str(number) for number in range(1, ITERATIONS + 1)]
    return kills


@pytest.mark.parametrize("seed", range(3))
def test_whenever_the_engine_is_killed_each_iteration_is_worked_and_counted_once(seed: int, repo: Path) -> None:
    assert survive_kills(seed, repo) > 0
