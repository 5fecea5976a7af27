"""Looking changes nothing, ever: no command that only looks touches a file that an older tool left."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.acceptance.finish_rig import git
from tests.acceptance.loop_rig import LoopRig
from tests.acceptance.phases_rig import SMALL
from tests.acceptance.rig import LINE

DATA = Path(__file__).parents[1] / "seeds" / "data"
LOOP = {
    "active": True,
    "loopId": "my loop",
    "task": "fix the tests",
    "completionCriteria": ["true"],
    "currentIteration": 3,
    "iterations": [{"iteration": 1, "summary": "tried", "passed": False}],
    "status": "running",
}
LEGACY: dict[str, object] = {
    ".aiwg/ralph/current-loop.json": LOOP,
    ".aiwg/ralph/registry.json": {"loops": {"ralph-old-a1b2c3d4": {"status": "paused", "task": "old"}}},
    ".aiwg/ralph/loops/ralph-old-a1b2c3d4/state.json": {**LOOP, "loopId": "ralph-old-a1b2c3d4"},
    ".claude/agent-state.json": json.loads((DATA / "agent_state_example.json").read_text()),
    "coordination/pm_state.json": json.loads((DATA / "team_pm_state_example.json").read_text()),
    "coordination/group_status.json": json.loads((DATA / "team_group_status_example.json").read_text()),
    "coordination/orchestrator_state.json": json.loads((DATA / "team_orchestrator_state_example.json").read_text()),
    ".agents/runs/old1/run_state.json": {
        "run_id": "old1",
        "workflow_name": "example",
        "created_at": "2025-01-15T14:30:00Z",
        "steps": {"planning": {"status": "COMPLETED"}},
    },
    "state/runs/bd-7.json": {"bead": "bd-7", "agent": "claude", "prompt": "fix", "started_at": "2026-02-12T17:00:00Z"},
    "state/results/bd-7.json": {"bead": "bd-7", "status": "done", "reason": None},
}
LOOKS = [
    "status",
    "list",
    "list --json",
    "show old1",
    "history old1",
    "logs old1",
    "usage",
    "watch --json",
    "doctor",
    "validate .agents/runs/old1/run_state.json",
    "validate .claude/agent-state.json",
    "validate coordination/pm_state.json",
    "validate .aiwg/ralph/current-loop.json",
    "validate task.md",
    "validate workflow.yaml",
    "plan --workflow workflow.yaml",
    "loop status",
    "loop status my-loop",
    "loop status --json",
    "loop list",
    "loop list --all --json",
    "loop best",
    "loop logs",
    "phases status",
    "phases plan task.md",
    "team status",
    "team messages",
    "swarm status",
    "swarm status --json",
    "swarm validate",
    "swarm analyze",
    "swarm logs bd-7",
    "prune --dry-run",
    "schema run-state",
]


def photograph(folder: Path) -> dict[str, tuple[int, int, bytes]]:
    """Take every file and folder with its time and content; what git and the store keep for themselves is not looked at."""
    found: dict[str, tuple[int, int, bytes]] = {}
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        if not name.startswith(".git/"):
            told = path.stat()
            found[name] = (told.st_mtime_ns, told.st_mode, path.read_bytes() if path.is_file() else b"")
    return found


@pytest.mark.parametrize("how", ["orc", "aiwg"])
def test_looking_leaves_every_byte_time_and_name_as_it_was(repo: Path, how: str) -> None:
    rig = LoopRig(repo)
    rig.workflow(LINE)
    for name, document in LEGACY.items():
        path = rig.repo / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(document))
    (rig.repo / "task.md").write_text(SMALL)
    before = photograph(rig.repo)
    for line in LOOKS if how == "orc" else ["ralph-status", "ralph-status --all --verbose", "ralph list", "ralph-status --json"]:
        looked = rig.ask(*line.split()) if how == "orc" else rig.aiwg(*line.split())
        assert looked.code in (0, 1, 2, 4), looked
        assert "Traceback" not in looked.err, looked
        after = photograph(rig.repo)
        changed = sorted(name for name in before.keys() | after.keys() if before.get(name) != after.get(name))
        assert not changed, f"`{how} {line}` changed {changed}"


def test_status_names_state_files_that_no_run_here_wrote_and_the_command_that_imports_each(repo: Path) -> None:
    rig = LoopRig(repo)
    assert "Not imported" not in rig.orc("status").out
    for name, document in LEGACY.items():
        path = rig.repo / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(document))
    (rig.repo / "task.md").write_text(SMALL)
    rig.workflow(LINE)
    (rig.repo / "prompt.md").write_text("Do your part.\n")

    def left() -> dict[str, str]:
        return {one["system"]: one["command"] for one in rig.orc("status", "--json").json["not_imported"]}

    assert left() == {
        "workflow": "orc import .agents/runs/old1 --workflow FILE --agent NAME",
        "loop": "orc import .aiwg/ralph",
        "swarm": "orc import state",
        "phases": "orc import .claude/agent-state.json --document FILE --agent NAME",
        "team": "orc import coordination --agent NAME",
    }
    said = rig.orc("status").out.splitlines()[1:]
    assert len(said) == 5, said
    named = "Not imported: coordination/pm_state.json (team) belongs to no run here"
    assert said[4] == f"{named}; import it with: orc import coordination --agent NAME"
    for system, command in left().items():
        words = command.replace("--agent NAME", "--agent-command true --allow-unmetered")
        words = words.replace("--workflow FILE", "--workflow workflow.yaml").replace("--document FILE", "--document task.md")
        git(rig.repo, "add", "--all")
        git(rig.repo, "commit", "--quiet", "--allow-empty", "-m", "as it is")
        taken = rig.orc(*words.split()[1:])
        assert taken.code == 0, taken
        assert system not in left(), "the command that was named has done it"
    assert left() == {}
    assert "Not imported" not in rig.orc("status").out
