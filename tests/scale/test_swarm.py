"""Five hundred beads through twenty agents, some of which fail, hang or flood: every bead ends with the right records."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

from agent_orchestrator.core.ids import RunId
from agent_orchestrator.engine.journal import decode_events
from agent_orchestrator.engine.process.folder import read_birth
from agent_orchestrator.runs.orchestrator import Orchestrator
from agent_orchestrator.systems.swarm.events import AgentFinished
from agent_orchestrator.systems.swarm.system import SWARM

BEADS, AGENTS = 500, 20
PATIENCE_S = 280.0

AGENT = """\
#!/bin/sh
echo "$STEP_ID $STEP_ATTEMPT" >>"${0%/*}/agents.log"
sleep 0.2
case $STEP_ID in
  fail*) echo "cannot do $STEP_ID" >&2; exit 3;;
  once*) [ "$STEP_ATTEMPT" -gt 1 ] || exit 4;;
  hang*) while :; do sleep 1; done;;
  flood*) yes "$STEP_ID";;
  word*) echo '{"status": "maybe"}' >"$REPORT_PATH";;
esac
"""
KINDS = {7: "fail", 19: "once", 101: "hang", 113: "flood", 41: "word"}
"""Every so many beads one is of this kind; all others do well."""
ENDS = {
    "good": ("done", None, 1),
    "once": ("done", None, 2),
    "fail": ("failed", "exit-3", 2),
    "hang": ("timeout", "timeout-1s", 2),
    "flood": ("failed", "output-limit", 2),
    "word": ("failed", "report-invalid", 2),
}
"""By kind: status, reason and attempts of the newest record."""


def kind_of(number: int) -> str:
    return next((kind for every, kind in KINDS.items() if number % every == 0), "good")


def beads() -> list[dict[str, Any]]:
    """Good beads wait for good ones, so that nothing is left undone because of a failure."""
    made: list[dict[str, Any]] = []
    good: list[str] = []
    for number in range(1, BEADS + 1):
        kind = kind_of(number)
        name = f"{kind}-{number}"
        needs = [good[-1 - number % 5]] if len(good) > 5 and number % 3 == 0 else []
        timeout = {"timeout": "1s"} if kind == "hang" else {}
        made.append({"id": name, "prompt": f"do {name}", "priority": number % 4, "depends_on": needs, **timeout})
        if kind == "good":
            good.append(name)
    return made


def most_at_once(finished: list[AgentFinished]) -> int:
    """By the times at which programs started and ended."""
    moments = sorted([(one.started_us, 1) for one in finished] + [(one.ended_us, -1) for one in finished])
    most = now = 0
    for _, step in moments:
        now += step
        most = max(most, now)
    return most


def living(launches: Path) -> list[str]:
    nonces = [birth.nonce.encode() for folder in launches.glob("*~*") if (birth := read_birth(folder)) is not None]
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            environ = (process / "environ").read_bytes()
        except OSError:
            continue
        if any(nonce in environ for nonce in nonces):
            found.append(process.name)
    return found


def test_every_bead_of_a_large_swarm_ends_with_its_records_and_nothing_is_left_behind(tmp_path: Path) -> None:
    agent, file = tmp_path / "agent.sh", tmp_path / "beads.jsonl"
    agent.write_text(AGENT)
    agent.chmod(0o755)
    planned = beads()
    file.write_text("".join(json.dumps(bead) + "\n" for bead in planned))
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    command = [sys.executable, "-m", "agent_orchestrator.cli", "swarm", "run", str(file), "--max-agents", str(AGENTS), "--force"]
    options = ["--agent", "claude", "--agent-command", str(agent), "--output-limit", "1", "--quiet"]
    done = subprocess.run([*command, *options], cwd=workspace, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert done.returncode == 1, done.stderr
    run = done.stdout.split()[1]

    tries = Counter(tuple(line.split()) for line in (tmp_path / "agents.log").read_text().splitlines())
    assert set(tries.values()) == {1}, "an attempt was started twice"
    for bead in planned:
        name = bead["id"]
        status, reason, attempts = ENDS[name.partition("-")[0]]
        newest = json.loads((workspace / "state" / "runs" / f"{name}.json").read_text())
        result = json.loads((workspace / "state" / "results" / f"{name}.json").read_text())
        assert (newest["status"], newest.get("failure_reason"), newest["attempt"]) == (status, reason, attempts), newest
        assert (result["status"], result["attempt"], result["will_retry"]) == (status, attempts, False)
        assert [attempt for known, attempt in tries if known == name] == [str(number + 1) for number in range(attempts)]
        for folder, kind in (("runs", "run"), ("results", "result")):
            kept = (workspace / "state" / "attempts").glob(f"{name}.*.{kind}.json")
            records = sorted((json.loads(path.read_text()) for path in kept), key=lambda one: one["attempt"])
            assert [one["attempt"] for one in records] == list(range(1, attempts + 1))
            faults = [fault for one in records for fault in SWARM.faults(f"state/{folder}/{name}.json", one)]
            assert not faults, faults
    with Orchestrator(str(workspace)) as orchestrator:
        events = [event for _, _, body in orchestrator.store.rows(RunId(run)) for event in decode_events(SWARM, body)]
        most = most_at_once([event for event in events if isinstance(event, AgentFinished)])
        assert AGENTS // 2 < most <= AGENTS
        assert living(orchestrator.settings.folder / "launches" / run) == []
