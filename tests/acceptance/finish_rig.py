"""A finished run of each mode in a real repository, and `orc` killed before any of its git commands that change something."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import msgspec

from tests.acceptance.loop_rig import LoopRig
from tests.acceptance.phases_rig import PhasesRig
from tests.acceptance.rig import Result, Rig
from tests.acceptance.swarm_rig import SwarmRig
from tests.acceptance.team_rig import TeamRig

ADA = ("-c", "user.name=ada", "-c", "user.email=ada@localhost")

KILLED = """
import os, signal, subprocess, sys
changing = {"update-ref", "worktree", "switch", "commit-tree", "read-tree", "checkout", "branch", "merge", "push", "update-index"}
at, count, run = int(os.environ["KILLED_AT"]), 0, subprocess.run
def counted(argv, **more):
    global count
    count += bool(changing.intersection((*argv[1:2], *argv[3:4]))) or (argv[0] == "gh")
    if count == at:
        os.kill(os.getpid(), signal.SIGKILL)
    return run(argv, **more)
subprocess.run = counted
from agent_orchestrator.surfaces.cli.main import main
sys.exit(main())
"""


class Finished(msgspec.Struct):
    """A run that is over, and what it made."""

    rig: Rig
    run: str
    file: str
    """A file that it made."""
    branch: str = ""
    unit: str = ""

    def git(self, *arguments: str) -> str:
        """Git in the repository."""
        return git(self.rig.repo, *arguments)

    def orc(self, *arguments: str) -> Result:
        """`orc` in the repository."""
        return self.rig.orc(*arguments)

    def killed(self, at: int, *arguments: str, env: dict[str, str] | None = None) -> bool:
        """Runs `orc`, killed before its git command of that number that changes something; False when it had fewer."""
        environment = self.rig.environment({"KILLED_AT": str(at), **(env or {})})
        done = subprocess.run(
            [sys.executable, "-c", KILLED, *arguments],
            cwd=self.rig.repo,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert done.returncode in (0, -9), (done.returncode, done.stdout, done.stderr)
        return done.returncode == -9


def git(repo: Path, *arguments: str) -> str:
    """Git with a name to commit under."""
    done = subprocess.run(["git", *ADA, *arguments], cwd=repo, check=False, capture_output=True, text=True, errors="replace")
    assert done.returncode == 0, (arguments, done.stderr)
    return done.stdout.strip()


def begin(repo: Path) -> None:
    """A repository with a commit on main."""
    if not (repo / ".git").exists():
        git(repo, "init", "--quiet", "--initial-branch", "main")
    git(repo, "symbolic-ref", "HEAD", "refs/heads/main")
    (repo / "own.txt").write_text("mine\n")
    git(repo, "add", "--all")
    git(repo, "commit", "--quiet", "-m", "begin")


ONE = "name: one\nsteps: [{id: code, agent: coder, prompt: prompt.md, check: 'test -e made.txt'}]\n"


def workflow(repo: Path, *more: str) -> Finished:
    """A workflow in a worktree of its own."""
    rig = Rig(repo)
    rig.workflow(ONE)
    begin(repo)
    writer = "sh -c 'echo made >made.txt'"
    made = rig.orc(
        "run", "--workflow", "workflow.yaml", "--run-id", "wf", "--agent-command", writer, *(more or ("--git-worktree",))
    )
    assert made.code == 0, made
    return Finished(rig, "wf", "made.txt", "" if more else "orc/wf")


def in_place(repo: Path) -> Finished:
    """A workflow in the user's own checkout."""
    return workflow(repo, "--quiet")


def loop(repo: Path) -> Finished:
    """A loop of two iterations in a worktree of its own."""
    rig = LoopRig(repo)
    begin(repo)
    rig.do("echo half >half.txt", 1)
    rig.do("touch done")
    made = rig.loop("--git-worktree")
    assert made.code == 0, made
    run = made.out.split()[1]
    return Finished(rig, run, "done", f"orc/{run}")


def phases(repo: Path) -> Finished:
    """A run of phases on its branch."""
    rig = PhasesRig(repo)
    begin(repo)
    made = rig.phases("--yes")
    assert made.code == 0, made
    run = made.out.split()[1]
    return Finished(rig, run, "work-1.1", "phases/small-thing")


def team(repo: Path) -> Finished:
    """A team, which has merged its groups itself."""
    rig = TeamRig(repo)
    begin(repo)
    rig.plan({"id": "A", "name": "one", "tasks": ["T1"], "files_affected": ["a.py"], "branch_name": "feature/a"})
    made = rig.team(requirements="One thing")
    assert made.code == 0, made
    return Finished(rig, made.out.split()[1], "a.py", "feature/a", "A")


def swarm(repo: Path) -> Finished:
    """A swarm of two beads on branches."""
    rig = SwarmRig(repo)
    begin(repo)
    for bead in "ab":
        rig.do(f"echo {bead} >{bead}.txt", bead)
    rig.beads({"id": "a", "prompt": "x"}, {"id": "b", "prompt": "y"})
    made = rig.swarm("--max-agents", "2", "--branch", "work")
    assert made.code == 0, made
    return Finished(rig, made.out.split()[1], "a.txt", "work/a", "a")


def given_up(repo: Path) -> Finished:
    """A team that was aborted when a group of it had failed: its branch is left to a person."""
    rig = TeamRig(repo)
    begin(repo)
    rig.plan({"id": "A", "name": "one", "tasks": ["T1"], "files_affected": ["a.py"], "branch_name": "feature/a"})
    rig.says("qa", status="FAIL", feedback="no")
    waits = rig.team("--max-qa-rounds", "1", "--no-wait", requirements="One thing")
    assert waits.code == 4, waits
    run = waits.out.split()[1]
    assert rig.orc("abort", run).code == 0
    return Finished(rig, run, "a.py", "feature/a", "A")


MODES: dict[str, Callable[[Path], Finished]] = {"workflow": workflow, "loop": loop, "phases": phases, "swarm": swarm}
"""The modes whose work a person merges; a team merges its groups itself."""
