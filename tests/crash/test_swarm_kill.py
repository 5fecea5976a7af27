"""kill -9 of the dispatcher, twice or more: it continues, living agents are adopted, no bead is dispatched twice."""

from __future__ import annotations

import json
import random
import threading
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from agent_orchestrator.runs.orchestrator import Orchestrator
from agent_orchestrator.systems.swarm.system import SWARM
from tests.crash.rig import Orc, wait_until

AGENT = """\
#!/bin/sh
here=${0%/*}
echo "start $STEP_ID $STEP_ATTEMPT" >>"$here/agents.log"
sleep 0.2
echo "end $STEP_ID $STEP_ATTEMPT" >>"$here/agents.log"
case $STEP_ID in once-*) [ "$STEP_ATTEMPT" -gt 1 ] || exit 4;; esac
"""
BEADS, AGENTS = 40, 5


class SwarmRig:
    def __init__(self, workspace: Path) -> None:
        self.workspace, self.side = workspace, workspace.parent / "side"
        self.side.mkdir()
        self.agent = self.side / "agent.sh"
        self.agent.write_text(AGENT)
        self.agent.chmod(0o755)
        self.beads = [f"{'once' if number % 9 == 0 else 'good'}-{number}" for number in range(BEADS)]
        lines = [
            {"id": bead, "prompt": f"do {bead}", "depends_on": [self.beads[number - 7]] if number > 7 and number % 3 == 0 else []}
            for number, bead in enumerate(self.beads)
        ]
        self.file = self.side / "beads.jsonl"
        self.file.write_text("".join(json.dumps(line) + "\n" for line in lines))
        self.said = 0

    def start(self, *arguments: str) -> Orc:
        self.said += 1
        return Orc(self.workspace, self.side / f"said.{self.said}", arguments)

    def swarm(self, *more: str) -> Orc:
        agent = ("--agent", "claude:sonnet", "--agent-command", str(self.agent))
        return self.start("swarm", "run", str(self.file), "--max-agents", str(AGENTS), "--force", *agent, *more)

    def log(self, word: str) -> list[tuple[str, str]]:
        log = self.side / "agents.log"
        lines = [line.split() for line in log.read_text().splitlines()] if log.exists() else []
        return [(line[1], line[2]) for line in lines if line[0] == word]

    def wait_for_more(self, orc: Orc, count: int) -> None:
        """Waits until so many more agents have started."""
        begun = len(self.log("start"))
        wait_until(lambda: len(self.log("start")) >= begun + count or orc.ended)

    def record(self, folder: str, bead: str) -> Any:
        return json.loads((self.workspace / "state" / folder / f"{bead}.json").read_text())

    def lost(self) -> set[tuple[str, str]]:
        """Attempts of which the records say that nobody knows whether they ever started."""
        found = set()
        for file in (self.workspace / "state" / "attempts").glob("*.result.json"):
            bead, _, attempt = file.name.removesuffix(".result.json").rpartition(".")
            if json.loads(file.read_text())["reason"] == "The program was lost: it is not known whether it ever started.":
                found.add((bead, attempt))
        return found

    def run(self) -> str:
        with Orchestrator(str(self.workspace)) as orchestrator:
            return orchestrator.runs()[0].id


class Reader:
    """Reads every record all the time and checks each reading: whole and valid at every instant."""

    def __init__(self, workspace: Path) -> None:
        self._state, self._over = workspace / "state", threading.Event()
        self._thread = threading.Thread(target=self._read)
        self.readings = 0
        self.faults: list[str] = []

    def __enter__(self) -> Reader:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _read(self) -> None:
        while not self._over.wait(0.02):
            for folder in ("runs", "results"):
                for file in (self._state / folder).glob("**/*.json"):
                    self._check(file, f"state/{folder}/x.json")

    def _check(self, file: Path, path: str) -> None:
        try:
            content = file.read_text()
        except FileNotFoundError:
            return
        self.readings += 1
        try:
            self.faults += [f"{file.name}: {fault}" for fault in SWARM.faults(path, json.loads(content))]
        except ValueError as error:
            self.faults.append(f"{file.name}: {error}: {content[:100]!r}")


def survive_kills(seed: int, workspace: Path) -> int:
    """Kill the dispatcher again and again, check every record, and return how often it was killed."""
    rig, chance = SwarmRig(workspace), random.Random(seed)
    with Reader(workspace) as reader:
        orc = rig.swarm()
        kills = 0
        while kills < 4 and not orc.ended:
            rig.wait_for_more(orc, chance.randint(1, 8))
            orc.kill()
            kills += 1
            orc = rig.start("resume", rig.run(), "--repo", str(workspace))
        assert orc.end() == 0 or "has ended" in orc.said, orc
    assert reader.faults == []
    assert reader.readings > BEADS
    starts = Counter(rig.log("start"))
    assert Counter(rig.log("end")) == starts
    assert max(starts.values()) == 1, "no attempt is made twice"
    lost = rig.lost()
    assert len(lost) <= kills, "one that was marked and not started yet, at most, each time"
    for bead in rig.beads:
        run, result = rig.record("runs", bead), rig.record("results", bead)
        shared = ("status", "attempt", "started_at", "finished_at", "duration_seconds", "exit_code", "output_summary")
        assert [run[name] for name in shared] == [result[name] for name in shared]
        assert (run["status"], result["will_retry"]) == ("done", False)
        attempts = {(bead, str(number)) for number in range(1, run["attempt"] + 1)}
        assert len(list((workspace / "state" / "attempts").glob(f"{bead}.*.run.json"))) == len(attempts)
        assert attempts - lost == {made for made in starts if made[0] == bead}, "each is made, or recorded as lost"
        assert len(attempts - lost) == (2 if bead.startswith("once") and (bead, "1") not in lost else 1)
    return kills


@pytest.mark.parametrize("seed", range(2))
def test_whenever_the_dispatcher_is_killed_every_attempt_is_made_and_recorded_once(seed: int, tmp_path: Path) -> None:
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    assert survive_kills(seed, workspace) > 0


def test_a_killed_dispatch_is_taken_up_with_its_living_agent(tmp_path: Path) -> None:
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    rig = SwarmRig(workspace)
    agent = ("--agent-command", str(rig.agent))
    orc = rig.start("swarm", "dispatch", "good-x", ".", "claude", "do it", *agent)
    wait_until(lambda: rig.log("start"))
    orc.kill()
    again = rig.start("swarm", "dispatch", "good-x", ".", "claude", "do it", *agent)
    assert again.end() == 2
    assert "continues it" in again.said
    orc = rig.start("resume", "good-x", "--repo", str(workspace))
    assert orc.end() == 0, orc
    assert rig.log("start") == rig.log("end") == [("good-x", "1")]
    assert (rig.record("runs", "good-x")["status"], rig.record("results", "good-x")["attempt"]) == ("done", 1)
