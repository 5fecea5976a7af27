"""A repository with files of its own where we write ours: in every mode all of them reach its history, and ours none.

The agents are plain programs; they make new files in the same folders. `git status` shows a person what it showed before.
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from tests.acceptance.loop_rig import LoopRig
from tests.acceptance.phases_rig import PhasesRig
from tests.acceptance.rig import Rig
from tests.acceptance.swarm_rig import SwarmRig
from tests.acceptance.team_rig import TeamRig

TRACKED = (
    *("state/machine.py", "state/runs/fixture.json", "state/results/a.txt", ".agents/prompts/code.md", ".agents/runs/README"),
    *("coordination/notes.md", "coordination/messages/README", "coordination/archive/2019.md", ".aiwg/config.yaml"),
    *(".aiwg/ralph/notes.md", ".claude/settings.json", ".claude/milestones/own.md", ".claude/checkpoint-notes.json"),
)
NEW = (
    *("state/new.ts", "state/runs/mine.json", ".agents/skills/new.md", "coordination/todo.md", "coordination/messages/new.json"),
    *(".claude/commands/new.md", ".claude/archive/own.md", ".aiwg/ralph/new.md"),
)
MADE = ("state/reducer.ts", "state/runs/made.json", ".agents/made.md", "coordination/made.md", ".claude/made.md", ".aiwg/made.md")
MAKE = 'for file in {files}; do mkdir -p "$(dirname "$file")"; echo made >"$file"; done; echo noise >made.log\n'


def git(repo: Path, *arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=repo, check=True, capture_output=True, text=True).stdout.rstrip("\n")


def status(repo: Path) -> list[str]:
    return git(repo, "status", "--porcelain", "--untracked-files=all").splitlines()


def make(*, also: tuple[str, ...] = ()) -> str:
    return MAKE.format(files=" ".join((*MADE, *also)))


def settled(repo: Path, *, new: bool = True) -> list[str]:
    """Commits and makes the repository's own files; answers with what a person sees then."""
    (repo / ".gitignore").write_text("*.log\n")
    for name in TRACKED:
        (repo / name).parent.mkdir(parents=True, exist_ok=True)
        (repo / name).write_text(f"{name}\n")
    git(repo, "add", "--all")
    git(repo, "commit", "--quiet", "--message", "Our own")
    for name in NEW if new else ():
        (repo / name).parent.mkdir(parents=True, exist_ok=True)
        (repo / name).write_text(f"{name}\n")
    before = status(repo)
    assert before == sorted(f"?? {name}" for name in (NEW if new else ()))
    return before


def check_history(repo: Path, commit: str = "HEAD", *, made: tuple[str, ...] = MADE) -> None:
    """The repository's own files and the agents' are there; nothing of ours is, in any commit."""
    files = set(git(repo, "ls-tree", "-r", "--name-only", commit).splitlines())
    assert files >= {*TRACKED, *made}
    ever = set(git(repo, "log", "--branches", "--name-only", "--format=").splitlines())
    assert not [name for name in ever if name.endswith((".log", ".orc-tmp", "run_state.json", "agent-state.json", "_state.json"))]
    assert not [name for name in ever if name.startswith((".agents/runs/", "state/", ".aiwg/", ".claude/", "coordination/"))
                and name not in {*TRACKED, *NEW, *made}]  # fmt: skip


def prune(rig: Rig) -> None:
    done = rig.orc("prune", "--older-than", "0", "--yes", "--json")
    assert (done.code, done.json["kept"]) == (0, {}), done
    assert done.json["deleted"], done


def test_a_workflow_in_the_checkout(rig: Rig) -> None:
    before = settled(rig.repo)
    script = rig.side / "agent.sh"
    script.write_text(f'#!/bin/sh\n{make()}echo \'{{"status": "COMPLETED"}}\' >"$REPORT_PATH"\n')
    script.chmod(0o755)
    ran = rig.orc("run", "--workflow", "workflow.yaml", "--agent-command", str(script), "--run-id", "r1")
    assert ran.code == 0, ran
    assert status(rig.repo) == sorted([*before, *(f"?? {name}" for name in MADE)])
    git(rig.repo, "add", "--all")
    git(rig.repo, "commit", "--quiet", "--message", "As an agent would")
    check_history(rig.repo, made=(*MADE, *NEW))
    prune(rig)
    assert status(rig.repo) == []
    assert "r1" not in (rig.repo / ".git" / "info" / "exclude").read_text()


def test_a_workflow_in_a_worktree(rig: Rig) -> None:
    before = settled(rig.repo)
    script = rig.side / "agent.sh"
    # What would be ours in the checkout is work here.
    made = (*MADE, "state/SCHEMA.md", ".claude/agent-state.json", ".agents/runs/r1/notes.md")
    script.write_text(f'#!/bin/sh\n{make(also=made)}echo \'{{"status": "COMPLETED"}}\' >"$REPORT_PATH"\n')
    script.chmod(0o755)
    agent = ("--agent-command", str(script), "--run-id", "r1", "--git-worktree")
    assert rig.orc("run", "--workflow", "workflow.yaml", *agent).code == 0
    assert status(rig.repo) == before
    folder = rig.repo / ".agents" / "worktrees" / "r1"
    if git(rig.repo, "rev-parse", "orc/r1") == git(rig.repo, "rev-parse", "main"):
        kept = rig.orc("prune", "--older-than", "0", "--yes", "--json").json["kept"]["r1"]
        assert "has uncommitted changes (.agents/made.md, .agents/runs/r1/notes.md" in kept
        git(folder, "add", "--all", "--force", *made)
        git(folder, "commit", "--quiet", "--message", "What the agent made")
    git(rig.repo, "merge", "--quiet", "orc/r1")
    assert set(git(rig.repo, "ls-tree", "-r", "--name-only", "HEAD").splitlines()) >= {*TRACKED, *made}
    prune(rig)
    assert not folder.exists()
    assert status(rig.repo) == before


@pytest.mark.parametrize("tree", [(), ("--git-worktree",)])
def test_a_loop_that_commits(repo: Path, tree: tuple[str, ...]) -> None:
    rig = LoopRig(repo)
    before = settled(repo, new=bool(tree))
    rig.do(make() + "touch done\n")
    ran = rig.loop("--commit", "--max-iterations", "2", "--loop-id", "ralph-own-00000001", *tree)
    assert ran.code == 0, ran
    if tree:
        git(repo, "merge", "--quiet", "orc/ralph-own-00000001")
    check_history(repo)
    assert status(repo) == before
    prune(rig)
    assert status(repo) == before
    check_history(repo)


def test_phases(repo: Path) -> None:
    rig = PhasesRig(repo)
    settled(repo, new=False)
    rig.do("task-executor", make() + (rig.side / "do.task-executor").read_text())
    ran = rig.phases("--yes", "--run-id", "r1")
    assert ran.code == 0, ran
    assert status(repo) == []
    branch = git(repo, "branch", "--show-current")
    git(repo, "switch", "--quiet", "main")
    git(repo, "merge", "--quiet", branch)
    check_history(repo)
    prune(rig)
    assert status(repo) == []
    assert (repo / ".claude" / "milestones" / "own.md").exists()
    assert not (repo / ".claude" / "agent-state.json").exists()
    assert ".claude/agent-state.json" not in (repo / ".git" / "info" / "exclude").read_text()


def test_a_team(repo: Path) -> None:
    rig = TeamRig(repo)
    before = settled(repo)
    rig.plan(*({"id": name, "name": name, "tasks": [f"T{name}"]} for name in "AB"))
    for name in "AB":
        made = " ".join(f"{one}.{name}" for one in MADE)
        rig.do(f"{name}.develop", MAKE.format(files=made) + 'echo \'{"status": "READY_FOR_QA"}\' | report')
    for _ in range(2):  # The second one moves the files of the first.
        ran = rig.team()
        assert ran.code == 0, ran
        assert status(repo) == before
    check_history(repo, made=tuple(f"{one}.{name}" for one in MADE for name in "AB"))
    prune(rig)
    assert status(repo) == before
    assert (repo / "coordination" / "messages" / "README").exists()
    assert not list((repo / "coordination" / "archive").glob("v4_*"))


def test_a_swarm(repo: Path) -> None:
    rig = SwarmRig(repo)
    before = settled(repo)
    for bead in ("bd-1", "bd-2"):
        made = " ".join(f"{one}.{bead}" for one in MADE)
        rig.do(MAKE.format(files=made), bead)
    rig.beads(*({"id": bead, "prompt": "do it", "branch": f"w/{bead}", "repo": str(repo)} for bead in ("bd-1", "bd-2")))
    ran = rig.swarm("--max-agents", "2")
    assert ran.code == 0, ran
    merged = rig.orc("swarm", "merge", ran.run, "--into", "main")
    assert merged.code == 0, merged
    check_history(repo, made=tuple(f"{one}.{bead}" for one in MADE for bead in ("bd-1", "bd-2")))
    assert status(repo) == before
    prune(rig)
    assert status(repo) == before, "records of beads outlive their run, and stay hidden"
    assert json.loads((repo / "state" / "runs" / "bd-1.json").read_text())["status"] == "done"


def test_a_tracked_state_file_is_written_over_and_never_committed(repo: Path) -> None:
    rig = PhasesRig(repo)
    state = repo / ".claude" / "agent-state.json"
    state.parent.mkdir()
    state.write_text('{"somebody": "committed this"}\n')
    settled(repo, new=False)
    rig.do("task-executor", "git add --all\n" + (rig.side / "do.task-executor").read_text())
    ran = rig.phases("--yes", "--run-id", "r1")
    assert ran.code == 0, ran
    assert "git tracks .claude/agent-state.json, where the state of runs is written" in ran.err
    assert rig.state()["orchestrator"]["status"] == "completed"
    assert git(repo, "log", "--branches", "--format=%s", "--", ".claude/agent-state.json") == "Our own"
    assert git(repo, "show", "HEAD:.claude/agent-state.json") == '{"somebody": "committed this"}'
    git(repo, "reset", "--quiet")
    git(repo, "switch", "--quiet", "main")
    git(repo, "merge", "--quiet", "phases/small-thing")
    prune(rig)
    assert status(repo) == []
    assert state.read_text() == '{"somebody": "committed this"}\n', "it comes back with the end of the run"


def test_lines_of_an_older_version_are_taken_back_and_files_of_earlier_runs_stay_hidden(rig: Rig) -> None:
    assert rig.run("--run-id", "old").code == 0
    before = status(rig.repo)
    exclude = rig.repo / ".git" / "info" / "exclude"
    exclude.write_text("*.swp\n# agent-orchestrator: state of runs, never committed\n/.agents/\n/state/\n")
    (rig.repo / "state").mkdir()
    (rig.repo / "state" / "reducer.ts").write_text("mine")
    assert rig.run("--run-id", "new").code == 0
    assert status(rig.repo) == sorted([*before, "?? state/reducer.ts"])
    assert "*.swp" in exclude.read_text()


def test_pruning_a_loop_leaves_the_lines_that_an_unfinished_one_needs(repo: Path) -> None:
    rig = LoopRig(repo)
    rig.do("exit 1")
    rig.hold(1)
    paused = rig.start_loop("--loop-id", "ralph-on-00000001")
    paused.wait_for("ralph-on-00000001")
    done = rig.loop("--loop-id", "ralph-over-00000002", "--git-worktree", until="true")
    assert done.code == 0, done
    prune(rig)
    lines = (repo / ".git" / "info" / "exclude").read_text().splitlines()
    assert "/.aiwg/ralph/.*.orc-tmp" in lines
    assert "/.aiwg/ralph/loops/ralph-on-00000001/" in lines
    assert not [line for line in lines if "ralph-over" in line]
    rig.orc("loop", "abort", "ralph-on-00000001")
    rig.open("go")
    paused.end()
