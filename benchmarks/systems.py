"""A large run of each way to work, played by the scripted agent on a real engine: what its last tenth costs, and its first.

The cost is the processor time of the engine's process. The programs that it starts (git, checks) are not in it, since they
cost the same for every unit and would hide how our own part grows.
"""

from __future__ import annotations

import json
import subprocess
import time
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from agent_orchestrator.core.events import Event
from agent_orchestrator.engine.driver import Driver
from agent_orchestrator.runs.choices import AgentOptions
from agent_orchestrator.runs.loop.options import LoopOptions
from agent_orchestrator.runs.orchestrator import Orchestrator
from agent_orchestrator.runs.phases.options import PhasesOptions
from agent_orchestrator.runs.start import Start
from agent_orchestrator.runs.swarm.options import SwarmOptions
from agent_orchestrator.runs.team.options import TeamOptions
from agent_orchestrator.runs.workflow.options import WorkflowOptions
from benchmarks.protocol import serve

WARM = 0.01
"""The share of the events that counts for nothing: the first ones pay for imports and a young log."""

Make = Callable[[Path, int], AgentOptions]


class Costs:
    """An observer that notes the processor time at every durable tick, and leaves when the time is over."""

    def __init__(self, limit_s: float) -> None:
        self._end_s = time.monotonic() + limit_s
        self.events = 0
        self.noted: list[tuple[int, float]] = []
        self.left = False

    def happened(self, driver: Driver, events: Sequence[Event], at_us: int) -> None:
        """Note it."""
        self.events += len(events)
        self.noted.append((self.events, time.process_time()))
        if not self.left and time.monotonic() > self._end_s:
            self.left = True
            driver.leave()

    def noticed(self, driver: Driver, text: str) -> None:
        """Ignore it: a git repository may say what it likes."""

    def cost_s(self, begin: float, end: float) -> float:
        """Return the seconds per event from one share of the events to another."""
        reached = [events for events, _ in self.noted]
        first = bisect_left(reached, begin * self.events)
        last = max(first + 1, bisect_right(reached, end * self.events) - 1)
        if last >= len(reached):
            first, last = len(reached) - 2, len(reached) - 1
        (before, from_s), (after, to_s) = self.noted[first], self.noted[last]
        return (to_s - from_s) / (after - before)


def make_chain(side: Path, count: int) -> AgentOptions:
    """Steps in a row."""
    return _workflow(
        side, [f"id: s{n}, agent: coder, prompt: prompt.md, needs: [{f's{n - 1}' if n else ''}]" for n in range(count)]
    )


def make_wide(side: Path, count: int) -> AgentOptions:
    """Steps at once."""
    return _workflow(side, [f"id: s{n}, agent: coder, prompt: prompt.md" for n in range(count)], count)


def make_items(side: Path, count: int) -> AgentOptions:
    """One step of many items."""
    items = f"items: {json.dumps(list(range(count)))}, max_iterations: {count}"
    return _workflow(side, [f"id: all, agent: coder, prompt: prompt.md, loop: {{{items}}}"])


def _workflow(side: Path, steps: list[str], at_once: int = 1) -> AgentOptions:
    (side / "prompt.md").write_text("Work.\n")
    (side / "workflow.yaml").write_text("name: large\nsteps:\n" + "".join(f"  - {{{step}}}\n" for step in steps))
    return WorkflowOptions(workflow=str(side / "workflow.yaml"), rehearse=_play(side, "[]\n"), max_parallel=at_once)


def make_loop(side: Path, count: int) -> AgentOptions:
    """Iterations until a command passes, which it does not: the limit ends it. Each leaves something, or it would be stuck."""
    script = _play(side, "- {append: {work: more\\n}}\n")
    return LoopOptions(task="go on", until="false", rehearse=script, max_iterations=count, auto_test=False)


def make_phases(side: Path, count: int) -> AgentOptions:
    """Tasks of one document."""
    tasks = "".join(f"#### Task 1.{n}: Task {n}\n\n**Success Criteria**:\n- [ ] It is good\n\n" for n in range(1, count + 1))
    (side / "task.md").write_text(f"# Task: Large\n\n## Goal\n\nMuch.\n\n## Phases & Tasks\n\n### Phase 1: Only\n\n{tasks}")
    script = _play(side, "- {role: task-executor, report: {status: SUCCESS, criteria: {it_is_good: true}}}\n")
    return PhasesOptions(document=str(side / "task.md"), rehearse=script, no_supervisor=True, no_outer_ralph=True, yes=True)


def make_team(side: Path, count: int) -> AgentOptions:
    """Groups of one plan, each developed, tested, reviewed and merged."""
    groups = [
        {"id": f"G{n}", "name": f"Feature {n}", "files_affected": [f"{n}.py"], "branch_name": f"feature/g{n}"}
        for n in range(count)
    ]
    plan = {"status": "PLANNING_COMPLETE", "mode": "parallel", "groups": groups}
    rules: list[dict[str, Any]] = [
        {"role": "project_manager", "iteration": 1, "report": plan},
        {"role": "project_manager", "report": {"status": "DONE"}},
        *(
            {"step": f"G{n}", "role": "developer", "append": {f"{n}.py": "# work\n"}, "report": {"status": "READY_FOR_QA"}}
            for n in range(count)
        ),
        {"role": "qa_expert", "report": {"status": "PASS"}},
        {"role": "tech_lead", "report": {"status": "APPROVED"}},
    ]
    return TeamOptions(text="Many features", rehearse=_play(side, json.dumps(rules)), check="true", max_parallel=4)


def make_swarm(side: Path, count: int) -> AgentOptions:
    """Beads, twenty at once."""
    lines = (json.dumps({"id": f"b{n}", "prompt": f"Do {n}."}) + "\n" for n in range(count))
    (side / "beads.jsonl").write_text("".join(lines))
    return SwarmOptions(file=str(side / "beads.jsonl"), rehearse=_play(side, "- {}\n"), max_agents=20)


MAKERS: dict[str, Make] = {
    "chain": make_chain,
    "wide": make_wide,
    "items": make_items,
    "loop": make_loop,
    "phases": make_phases,
    "team": make_team,
    "swarm": make_swarm,
}
NEED_GIT = ("phases", "team")


def _play(side: Path, script: str) -> str:
    (side / "script.yaml").write_text(script)
    return str(side / "script.yaml")


def run(folder: str, kind: str, count: int, limit_s: float) -> dict[str, Any]:
    """Drive one run to its end, or until the time is over; return the costs per event."""
    side, repo = Path(folder) / "side", Path(folder) / "repo"
    side.mkdir(parents=True)
    repo.mkdir()
    if kind in NEED_GIT:  # The others work in a plain folder as well: what git takes for every unit is not ours to measure.
        _make_repository(repo)
    with Orchestrator(str(repo)) as orchestrator:
        started = orchestrator.start(MAKERS[kind](side, count), Start(worktree=False, force=True))
        costs, began_s = Costs(limit_s), time.monotonic()
        summary = orchestrator.drive_owned(started.run, costs, lambda driver: driver.state.doing.questions == 0)
        took_s = time.monotonic() - began_s
        started.owner.release()
    assert costs.left or summary.ended, f"the run of {kind} is {summary.status}: its script does not fit"
    return {
        "first_s": costs.cost_s(WARM, WARM + 0.1),
        "last_s": costs.cost_s(0.9 - WARM, 1 - WARM),
        "took_s": took_s,
        "finished": not costs.left,
        "status": summary.status,
        "done": summary.done,
        "events": costs.events,
    }


def _make_repository(repo: Path) -> None:
    git = ["git", "-C", str(repo)]
    subprocess.run([*git, "init", "--quiet", "--initial-branch", "main"], check=True)
    for name, value in (("user.name", "bench"), ("user.email", "bench@localhost")):
        subprocess.run([*git, "config", name, value], check=True)
    subprocess.run([*git, "commit", "--quiet", "--allow-empty", "-m", "begin"], check=True)


if __name__ == "__main__":
    serve(run=run)
