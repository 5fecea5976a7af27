"""`orc rewind` and `orc fork`, in every mode: state, tree and branches together, and nothing lost on the way."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.acceptance.loop_rig import LoopRig
from tests.acceptance.phases_rig import PhasesRig
from tests.acceptance.rig import Result, Rig, Running, wait_until
from tests.acceptance.swarm_rig import SwarmRig
from tests.acceptance.team_rig import TeamRig

STEPS = """
name: four
steps:
  - {id: plan, agent: a, prompt: prompt.md}
  - {id: code, agent: a, prompt: prompt.md, needs: [plan]}
  - {id: test, agent: a, prompt: prompt.md, needs: [code], check: "test -f code.txt"}
  - {id: docs, agent: a, prompt: prompt.md, needs: [test]}
"""
WORKS = "#!/bin/sh\necho $STEP_ID >>work.txt\necho by $STEP_ID >$STEP_ID.txt\n"


def git(repo: Path, *arguments: str) -> str:
    """Git as a person has it."""
    who = ("-c", "user.name=ada", "-c", "user.email=ada@localhost")
    return subprocess.run(["git", *who, *arguments], cwd=repo, check=True, capture_output=True, text=True).stdout.strip()


class Mode:
    """A way of working in a repository: a run that went to its end, its points, and where its fork works."""

    def __init__(self, rig: Rig, run: Callable[[], Result], middle: str) -> None:
        self.rig, self._run, self.middle = rig, run, middle

    def finish(self) -> str:
        """Run to the end; return the run's id."""
        done = self._run()
        assert done.code == 0, done
        return str(self.ok("list", "--json").json["runs"][0]["run_id"])

    def ok(self, *arguments: str) -> Result:
        """A command that must succeed."""
        done = self.rig.orc(*arguments)
        assert done.code == 0, done
        return done


def committed(repo: Path) -> None:
    """A repository of a person's own, with something in it."""
    if not (repo / ".git").exists():
        git(repo, "init", "--quiet", "--initial-branch", "main")
    (repo / "own.txt").write_text("theirs\n")
    git(repo, "add", "own.txt")
    git(repo, "commit", "--quiet", "-m", "theirs")


def _workflow(repo: Path) -> Mode:
    rig = Rig(repo)
    agent = rig.side / "works.sh"
    agent.write_text(WORKS)
    agent.chmod(0o755)
    rig.workflow(STEPS)
    committed(repo)
    return Mode(rig, lambda: rig.orc("run", "--workflow", "workflow.yaml", "--agent-command", str(agent)), "code")


def _loop(repo: Path) -> Mode:
    rig = LoopRig(repo)
    agent = rig.side / "works.sh"
    agent.write_text("#!/bin/sh\nn=$(cat n.txt 2>/dev/null || echo 0); echo $((n+1)) >n.txt\n")
    agent.chmod(0o755)
    committed(repo)
    how = ("--completion", 'test "$(cat n.txt)" -ge 3', "--agent-command", str(agent))
    return Mode(rig, lambda: rig.orc("loop", "run", "count", *how), "iteration-1")


def _swarm(repo: Path) -> Mode:
    rig = SwarmRig(repo)
    committed(repo)
    rig.do('echo $STEP_ID >"$STEP_ID.txt"')
    rig.beads(*({"id": f"b{number}", "prompt": "x"} for number in (1, 2, 3)))
    return Mode(rig, lambda: rig.swarm("--max-agents", "1", "--shared-tree"), "b2")


def _phases(repo: Path) -> Mode:
    rig = PhasesRig(repo)
    git(repo, "add", "-A")
    git(repo, "commit", "--quiet", "-m", "task")
    return Mode(rig, lambda: rig.phases("--yes"), "checkpoint-001")


def _team(repo: Path) -> Mode:
    rig = TeamRig(repo)
    committed(repo)
    rig.plan(
        {"id": "A", "name": "one", "tasks": ["T1"], "files_affected": ["a.py"]},
        {"id": "B", "name": "two", "tasks": ["T2"], "files_affected": ["b.py"], "depends_on": ["A"]},
    )
    return Mode(rig, rig.team, "A")


MODES = {"workflow": _workflow, "loop": _loop, "swarm": _swarm, "phases": _phases, "team": _team}


@pytest.fixture(params=list(MODES))
def mode(request: pytest.FixtureRequest, tmp_path: Path) -> Mode:
    """Each way of working."""
    repo = tmp_path / "repo"
    repo.mkdir()
    made: Mode = MODES[request.param](repo)
    return made


def tree_of(repo: Path) -> str:
    """All files of a checkout that a person sees, untracked ones too."""
    names = git(repo, "ls-files", "--cached", "--others", "--exclude-standard").splitlines()
    return "".join(f"{name}: {(repo / name).read_text()}" for name in sorted(set(names)) if (repo / name).is_file())


def test_a_run_forked_in_the_middle_and_the_one_it_was_forked_from_both_get_to_their_end(mode: Mode) -> None:
    rig, run = mode.rig, mode.finish()
    whole = tree_of(rig.repo)
    forked = mode.ok("fork", run, "--at", mode.middle, "--run-id", "other", "--json").json
    assert forked["status"] == "paused"
    assert tree_of(rig.repo) == whole, "the fork leaves the other's tree alone"
    mode.ok("resume", "other")
    mode.ok("rewind", run, "--to", mode.middle)
    mode.ok("resume", run)
    assert tree_of(rig.repo) == whole
    statuses = {one["run_id"]: one["status"] for one in mode.ok("list", "--json").json["runs"]}
    assert statuses == {run: "completed", "other": "completed"}
    assert mode.ok("diff", "other", "--name-only").out
    mode.ok("discard", "other")
    assert len(git(rig.repo, "worktree", "list").splitlines()) == 1, "its worktree is gone, its home with it"
    assert git(rig.repo, "branch", "--list", "orc/other*") == ""
    assert "other" in mode.ok("prune", "--older-than", "0", "--yes", "--json").json["deleted"]
    assert git(rig.repo, "for-each-ref", "refs/orc/other/") == ""


def _held_phases(mode: Mode) -> Callable[[], Running]:
    rig = mode.rig
    assert isinstance(rig, PhasesRig)
    rig.hold("task-executor", "1.2")
    return lambda: rig.start_phases("--yes")


def _held_team(mode: Mode) -> Callable[[], Running]:
    rig = mode.rig
    assert isinstance(rig, TeamRig)
    rig.hold("B", "develop")
    return rig.start_team


HELD = {"phases": (_phases, _held_phases, "start task-executor.1.2"), "team": (_team, _held_team, "B developer develop")}


@pytest.mark.parametrize("name", HELD)
def test_a_run_at_work_is_forked_in_the_middle_and_both_go_on_side_by_side_to_their_end(name: str, tmp_path: Path) -> None:
    make, hold, begun = HELD[name]
    repo = tmp_path / "repo"
    repo.mkdir()
    mode = make(repo)
    rig, start = mode.rig, hold(mode)

    def launches() -> int:
        log = rig.side / "launches.log"
        return log.read_text().count(begun) if log.exists() else 0

    first = start()
    wait_until(lambda: launches() == 1)
    (run,) = [one["run_id"] for one in mode.ok("list", "--json").json["runs"]]
    forked = mode.ok("fork", run, "--at", mode.middle, "--run-id", "other", "--json").json
    assert forked["status"] == "paused"
    second = rig.start("resume", "other")
    wait_until(lambda: launches() == 2)
    statuses = {one["run_id"]: one["driven_by"] is not None for one in mode.ok("list", "--json").json["runs"]}
    assert statuses == {run: True, "other": True}, "both are at work"
    rig.open("go")
    assert first.end().code == second.end().code == 0
    ended = mode.ok("list", "--json").json["runs"]
    assert {one["run_id"]: (one["status"], one["done"]) for one in ended} == {run: ("completed", 2), "other": ("completed", 2)}
    names = [set(mode.ok("diff", one, "--name-only").out.split()) for one in (run, "other")]
    last = "work-1.2" if name == "phases" else "b.py"
    assert last in names[0] & names[1], names


def test_a_rewind_with_uncommitted_work_loses_nothing_and_is_undone(mode: Mode) -> None:
    rig, run = mode.rig, mode.finish()
    (rig.repo / "mine.txt").write_text("mine\n")
    tracked = git(rig.repo, "ls-files").splitlines()[0]
    with (rig.repo / tracked).open("a") as file:
        file.write("edited\n")
    before = tree_of(rig.repo)
    if isinstance(rig, TeamRig):  # No unit of a team works in a person's checkout: what is uncommitted there stays.
        mode.ok("rewind", run, "--to", mode.middle)
        assert (rig.repo / "mine.txt").read_text() == "mine\n"
        assert "edited" in (rig.repo / tracked).read_text()
        return
    back = mode.ok("rewind", run, "--to", mode.middle, "--json").json
    assert (rig.repo / "mine.txt").read_text() == "mine\n", "a file that the run never touched stays"
    assert git(rig.repo, "show", f"{back['kept']}:mine.txt") == "mine"
    assert git(rig.repo, "show", f"{back['kept']}:{tracked}").endswith("edited")
    assert tree_of(rig.repo) != before
    mode.ok("rewind", run, "--to", str(back["undo"]))
    git(rig.repo, "checkout", back["kept"], "--", tracked)
    assert tree_of(rig.repo) == before


def test_the_points_are_listed_and_what_cannot_be_is_refused_in_one_sentence(tmp_path: Path) -> None:
    repo = tmp_path / "repo"
    repo.mkdir()
    mode = _workflow(repo)
    rig, run = mode.rig, mode.finish()
    names = [line.split()[2] for line in mode.ok("history", run, "--points").out.splitlines()]
    assert names == ["start", "plan", "code", "test", "docs"]
    for arguments, said in (
        (("rewind", run, "--to", "cod"), "there is no point 'cod'; there are: start, plan, code, test, docs"),
        (("rewind", run, "--to", "99"), "has no row 99; its journal has rows 1 to"),
        (("fork", run, "--at", "code", "--run-id", run), f"{run} exists"),
        (("fork", run, "--at", "code", "--run-id", "../x"), "--run-id"),
    ):
        refused = rig.orc(*arguments)
        assert refused.code == 2, refused
        assert said in refused.err
        assert len(refused.err.splitlines()) == 1, refused
    git(repo, "switch", "--quiet", "--create", "elsewhere")
    refused = rig.orc("rewind", run, "--to", "code")
    assert refused.code == 2
    assert "is on elsewhere now, and the run was on main at that point" in refused.err


def test_a_run_that_is_driven_is_rewound_only_when_it_is_stopped_first(tmp_path: Path) -> None:
    repo = tmp_path / "repo"
    repo.mkdir()
    rig = Rig(repo)
    committed(repo)
    rig.play({"coding": {"until": "go"}})
    driver = rig.start_run("--run-id", "one")
    wait_until(lambda: rig.launches("coding"))
    busy = rig.orc("rewind", "one", "--to", "planning")
    assert busy.code != 0
    assert "one" in busy.err
    done = rig.orc("rewind", "one", "--to", "planning", "--now")
    assert done.code == 0, done
    driver.end()
    rig.open("go")
    assert rig.orc("resume", "one").code == 0
    assert rig.launches("planning") == ["one planning 0 1"]
    assert rig.launches("coding") == ["one coding 0 1"] * 2, "the same attempt in a new launch"


def test_an_edit_in_a_file_that_a_teams_merge_brought_stops_a_rewind_before_anything_is_touched(tmp_path: Path) -> None:
    repo = tmp_path / "repo"
    repo.mkdir()
    mode = _team(repo)
    run = mode.finish()
    (repo / "b.py").write_text("mine\n")
    refused = mode.rig.orc("rewind", run, "--to", "A")
    assert refused.code == 2
    assert refused.err == (
        f"orc: Nothing was touched: {repo} is on main and has changes of its own in b.py: commit or stash them, then rewind.\n"
    )
    assert mode.ok("status", run, "--json").json["status"] == "completed"
    git(repo, "checkout", "--quiet", "b.py")
    mode.ok("rewind", run, "--to", "A")
    assert not (repo / "b.py").exists()


def test_a_run_whose_work_is_merged_is_rewound_and_forked_and_the_merge_stays(tmp_path: Path) -> None:
    repo = tmp_path / "repo"
    repo.mkdir()
    mode = _workflow(repo)
    git(repo, "add", "--all")
    git(repo, "commit", "--quiet", "-m", "workflow")
    works = str(mode.rig.side / "works.sh")
    mode.ok("run", "--workflow", "workflow.yaml", "--agent-command", works, "--git-worktree", "--run-id", "one")
    mode.ok("merge", "one", "--no-check")
    assert (repo / "docs.txt").exists()
    assert not (repo / ".agents" / "worktrees" / "one").exists()
    merged = git(repo, "rev-parse", "main")
    mode.ok("fork", "one", "--at", "plan", "--run-id", "other")
    mode.ok("rewind", "one", "--to", "code")
    assert git(repo, "rev-parse", "main") == merged
    assert (repo / ".agents" / "worktrees" / "one" / "work.txt").read_text() == "plan\ncode\n"
    assert (repo / ".agents" / "worktrees" / "other" / "work.txt").read_text() == "plan\n"
    mode.ok("resume", "one")
    assert (repo / ".agents" / "worktrees" / "one" / "work.txt").read_text() == "plan\ncode\ntest\ndocs\n"


def test_a_team_is_forked_at_its_very_start_where_no_tree_was_kept_yet(tmp_path: Path) -> None:
    repo = tmp_path / "repo"
    repo.mkdir()
    mode = _team(repo)
    run, whole = mode.finish(), tree_of(repo)
    forked = mode.ok("fork", run, "--at", "start", "--run-id", "other", "--json").json
    mode.ok("resume", "other")
    assert tree_of(repo) == whole, "the fork leaves the other's tree alone"
    assert git(repo, "show", f"{forked['branches'][0]}:b.py") == git(repo, "show", "main:b.py")


def test_a_swarm_goes_back_to_before_any_branch_of_it_was_there(tmp_path: Path) -> None:
    repo = tmp_path / "repo"
    repo.mkdir()
    rig = SwarmRig(repo)
    committed(repo)
    rig.do("echo a >a.txt", "a")
    rig.beads({"id": "a", "prompt": "x"})
    run = rig.swarm("--max-agents", "1", "--branch", "work").out.split()[1]
    back = rig.orc("rewind", run, "--to", "start")
    assert back.code == 0, back
    assert git(repo, "branch", "--list", "work/*") == ""
    assert git(repo, "show", f"refs/orc/{run}/@before-1/heads/work/a:a.txt") == "a"
    again = rig.orc("resume", run)
    assert again.code == 0, again
    assert rig.orc("diff", run, "--name-only").out.split() == ["a.txt"]
