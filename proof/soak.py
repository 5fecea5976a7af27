"""A long life: one orchestrator makes many iterations, steps or beads; memory and descriptors stay what they were halfway."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

from proof.subjects import Subject, open_subject
from proof.trial import Kind, Trial
from tests.crash.rig import Orc, wait_until

ROUNDS = 1
LAUNCHES = 160
PATIENCE_S = 540.0
GROWTH, SLACK_KB = 1.10, 3_000
"""Memory may grow by a tenth from the middle to the end: the journal of a run is held in it, row by row."""
SLACK_DESCRIPTORS = 3


def _make_loop(subject: Subject) -> tuple[str, ...]:
    check = ("--until", f'test "$(wc -l <count)" -ge {LAUNCHES}', "--max-iterations", str(2 * LAUNCHES))
    return ("loop", "run", "count", *check, "--agent-command", str(subject.agent), "--loop-id", "ralph-count-00000001")


def _make_workflow(subject: Subject) -> tuple[str, ...]:
    steps = [{"id": f"s{number}", "agent": "coder", "prompt": "prompt.md"} for number in range(LAUNCHES)]
    for number, step in enumerate(steps[1:]):
        step["needs"] = [f"s{number}"]  # type: ignore[assignment]
    (subject.side / "workflow.yaml").write_text(json.dumps({"name": "chain", "steps": steps}))
    return ("run", "--workflow", str(subject.side / "workflow.yaml"), "--run-id", "run", "--agent-command", str(subject.agent))


def _make_swarm(subject: Subject) -> tuple[str, ...]:
    beads = ({"id": f"b{number}", "prompt": "do it"} for number in range(LAUNCHES))
    (subject.side / "beads.jsonl").write_text("".join(json.dumps(bead) + "\n" for bead in beads))
    agent = ("--agent", "claude:sonnet", "--agent-command", str(subject.agent), "--max-agents", "2", "--force")
    return ("swarm", "run", str(subject.side / "beads.jsonl"), *agent)


LONG: dict[str, Callable[[Subject], tuple[str, ...]]] = {"workflow": _make_workflow, "loop": _make_loop, "swarm": _make_swarm}


def plan(seed: int, scale: float) -> Iterator[Trial]:
    """Play each system that can go on for long."""
    for number in range(max(1, round(ROUNDS * scale))):
        for system in LONG:
            yield Trial("soak", system, (seed + number,))


def play(trial: Trial, folder: Path) -> int:
    """Drive one long run and look at its process in the middle and near the end."""
    with open_subject(trial.system, folder) as subject:
        subject.let_work(0.0)
        orc = subject.orc(*LONG[trial.system](subject))
        middle = _look_at(orc, subject, LAUNCHES // 2)
        end = _look_at(orc, subject, LAUNCHES - 4)
        wait_until(lambda: orc.ended, PATIENCE_S)
        subject.check_end(orc)
        assert end[0] <= middle[0] * GROWTH + SLACK_KB, f"memory in the middle {middle[0]} kB, at the end {end[0]} kB"
        assert end[1] <= middle[1] + SLACK_DESCRIPTORS, f"descriptors in the middle {middle[1]}, at the end {end[1]}"
    return LAUNCHES


def _look_at(orc: Orc, subject: Subject, launches: int) -> tuple[int, int]:
    """Return the memory in kB and the descriptors of the process when so many agents have started."""
    wait_until(lambda: len(subject.log()) >= launches or orc.ended, PATIENCE_S)
    assert not orc.ended, orc
    status = Path(f"/proc/{orc.pid}/status").read_text()
    memory = next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS"))
    return memory, len(list(Path(f"/proc/{orc.pid}/fd").iterdir()))


KINDS = (Kind(name="soak", unit="launches of one orchestrator", plan=plan, play=play),)
