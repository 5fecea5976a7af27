"""Every command line of the five seeds, verbatim, against a real run; only what stands for a name is filled in."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.loop_rig import LoopRig, loop_of
from tests.acceptance.phases_rig import WORKS, PhasesRig
from tests.acceptance.rig import Result, Rig, wait_until
from tests.acceptance.swarm_rig import SwarmRig
from tests.acceptance.team_rig import TeamRig
from tests.seeds.lines import LINES, Line

RUN_STATE = "cat .agents/runs/<run_id>/run_state.json | jq "
AGENT_STATE = " .claude/agent-state.json"
NUMBER = "X" * 3
"""The mark that seed 001 puts for the number of a checkpoint."""
CONFLICT = {"type": "api", "details": "renamed"}
LESSON = {"type": "insight", "lesson": "look first"}


def shell(rig: Rig, line: str, cwd: Path | None = None) -> Result:
    """Runs a line in a shell that finds our python, and aiwg as it is installed, first."""
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    done = subprocess.run(
        ["sh", "-c", line],
        cwd=cwd or rig.repo,
        env=rig.environment({"PATH": path}),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    return Result((line,), done.returncode, done.stdout, done.stderr)


def answers(rig: Rig, line: str, *wanted: Any) -> None:
    """The line prints these documents, one after the other, and complains of nothing."""
    said = shell(rig, line)
    assert (said.code, said.err) == (0, ""), said
    found, rest = [], said.out.strip()
    while rest:
        document, end = json.JSONDecoder().raw_decode(rest)
        found.append(document)
        rest = rest[end:].lstrip()
    assert found == list(wanted), said


def workflow(repo: Path) -> Rig:
    rig = Rig(repo)
    for name in ("wrapper.py", "parts.json"):
        (repo / name).symlink_to(rig.side / name)
    return rig


def resume_at_a_step(repo: Path, line: str) -> None:
    """000:374-378."""
    rig = workflow(repo)
    rig.play({"coding": {"exit": 1, "report": None}})
    failed = rig.run("--max-attempts", "1")
    before = rig.state(failed.run)
    rig.play({})
    again = shell(rig, line.replace("/path/to/repo", str(repo)))
    assert (again.code, again.run) == (0, failed.run), again
    after = rig.state(failed.run)
    assert after["steps"]["planning"] == before["steps"]["planning"]
    assert [step["status"] for step in after["steps"].values()] == ["COMPLETED"] * 3


def ask_run_state(tell: Callable[[Any], Any]) -> Callable[[Path, str], None]:
    """000:385-395, on a run that looped back and failed."""

    def play(repo: Path, line: str) -> None:
        rig = workflow(repo)
        rig.play({"code_review@0": {"report": {"gate_failure": True}}, "code_review": {"exit": 1, "report": None}})
        failed = rig.run("--max-attempts", "1")
        answers(rig, line.replace("<run_id>", failed.run), tell(rig.state(failed.run)))

    return play


def back_up(repo: Path, line: str) -> None:
    """000:507-509."""
    rig = workflow(repo)
    assert rig.run("--run-id", "first").code == 0
    folder = repo / ".agents" / "runs" / "first"
    assert shell(rig, line, cwd=folder).code == 0
    assert (folder / "run_state.json.bak").read_bytes() == (folder / "run_state.json").read_bytes()
    (folder / "run_state.json").write_text("corrupted")
    assert rig.run("--run-id", "second").code == 0, "a new --run-id is a fresh run"


def phased(repo: Path) -> PhasesRig:
    rig = PhasesRig(repo)
    report = {"status": "SUCCESS", "criteria": {"it_is_good": True}, "learnings": [LESSON]}
    rig.report("task-executor.1.1", report, also='touch "work-$STEP_ID"')
    rig.report("supervisor.1.1.0", {"status": "PASS", "conflicts": [CONFLICT]})
    return rig


def ask_agent_state(tell: Callable[[Any], list[Any]]) -> Callable[[Path, str], None]:
    """001:491-516."""

    def play(repo: Path, line: str) -> None:
        rig = phased(repo)
        done = rig.phases("--yes")
        assert done.code == 0, done
        state = rig.state()
        times = [state["safety_bounds"]["elapsed_time"], *(task["time_elapsed"] for task in state["completed_tasks"])]
        assert all(re.fullmatch(r"(\dh )?\d+m \d+s", time) for time in times), times
        wanted = tell(state)
        assert wanted, "the run has something to show"
        answers(rig, line, *wanted)

    return play


def restore_a_checkpoint(repo: Path, line: str) -> None:
    """001:571-572: the copy is adopted when the run goes on, by the word of a person."""
    rig = phased(repo)
    rig.do("task-executor.1.2", "exit 1")
    assert rig.phases("--yes", "--no-wait", "--run-id", "one").code == 4
    assert shell(rig, line.replace(NUMBER, "001")).code == 0
    rig.do("task-executor.1.2", WORKS)
    again = rig.orc("resume", "one", "--adopt-edits")
    assert again.code == 0, again
    assert [task["task"] for task in rig.state()["completed_tasks"]] == ["1.1", "1.2"]


def reset_the_tree(repo: Path, line: str) -> None:
    """001:574-576: the state survives it, for it is no part of any commit."""
    rig = phased(repo)
    assert rig.phases("--yes").code == 0
    before = rig.state()
    first = before["checkpoints"][0]["git_sha"]
    assert shell(rig, line.replace("<sha>", first)).code == 0
    assert (repo / "work-1.1").exists()
    assert not (repo / "work-1.2").exists()
    assert rig.state() == before


def team(repo: Path) -> TeamRig:
    rig = TeamRig(repo)
    rig.plan({"id": "A", "name": "one", "tasks": ["T1"], "files_affected": ["a.py"], "branch_name": "feature/a"})
    done = rig.team(requirements="One thing")
    assert done.code == 0, done
    return rig


def ask_coordination(name: str, tell: Callable[[Any], Any]) -> Callable[[Path, str], None]:
    """002:934-946."""

    def play(repo: Path, line: str) -> None:
        rig = team(repo)
        answers(rig, line, tell(rig.file(name)))

    return play


def watch_the_phase(repo: Path, line: str) -> None:
    """002:940-941, at a terminal: it never ends by itself."""
    rig = team(repo)
    sockets = Path("/tmp") / f"orc-{os.getpid()}-watch"
    sockets.mkdir(exist_ok=True)
    tmux = f"TMUX_TMPDIR={sockets} tmux"
    (rig.side / "watch.sh").write_text(line + "\n")
    try:
        started = shell(rig, f"env -u TMUX {tmux} new-session -d -x 100 -y 20 'sh {rig.side / 'watch.sh'}'")
        assert started.code == 0, started
        wait_until(lambda: '"completed"' in shell(rig, f"{tmux} capture-pane -p").out)
    finally:
        shell(rig, f"{tmux} kill-server")
        shutil.rmtree(sockets)


def with_a_loop(status: str, said: str = "", *, paused: bool = False) -> Callable[[Path, str], None]:
    """003:361-376: to a loop that runs, or is paused, and what it is afterwards."""

    def play(repo: Path, line: str) -> None:
        rig = LoopRig(repo)
        rig.do("echo $ITERATION > n")
        rig.do("touch done", 3)
        rig.hold(1)
        running = rig.start_loop()
        loop = loop_of(running)
        wait_until(rig.launches)
        if paused:
            assert rig.aiwg("ralph-pause", loop).code == 0
            rig.open("go")
            assert running.end().code == 130
        done = shell(rig, line.format(loop_id=loop))
        assert done.code == 0, done
        assert said.format(loop=loop) in done.out, done
        rig.open("go")
        if not paused:
            running.end()
        wait_until(lambda: rig.state(loop)["status"] == status)

    return play


def swarm(repo: Path) -> SwarmRig:
    rig = SwarmRig(repo)
    assert rig.orc("swarm", "init").code == 0
    assert rig.dispatch("bd-abc").code == 0
    return rig


def validate(records: str) -> Callable[[Path, str], None]:
    """004:185-198."""

    def play(repo: Path, line: str) -> None:
        said = shell(swarm(repo), line)
        assert (said.code, said.out, said.err) == (0, f"{records} pass, 0 fail\n", ""), said

    return play


def analyze(*told: str) -> Callable[[Path, str], None]:
    """004:210-218."""

    def play(repo: Path, line: str) -> None:
        said = shell(swarm(repo), line)
        assert (said.code, said.err) == (0, ""), said
        assert all(one in said.out for one in told), said

    return play


PLAYS: dict[str, Callable[[Path, str], None]] = {
    "python -m agent_orchestrator.cli run --repo /path/to/repo --workflow workflow.yaml --wrapper wrapper.py "
    "--start-at-step coding": resume_at_a_step,
    f"{RUN_STATE}.": ask_run_state(lambda state: state),
    f"{RUN_STATE}'.steps.coding'": ask_run_state(lambda state: state["steps"]["coding"]),
    f"{RUN_STATE}'.steps | to_entries | map(select(.value.status == \"FAILED\"))'": ask_run_state(
        lambda state: [{"key": "code_review", "value": state["steps"]["code_review"]}]
    ),
    f"{RUN_STATE}'.steps | to_entries | map({{key: .key, iterations: .value.iteration_count}})'": ask_run_state(
        lambda state: [{"key": key, "iterations": count} for key, count in (("planning", 0), ("coding", 1), ("code_review", 1))]
    ),
    "cp run_state.json run_state.json.bak": back_up,
    f"jq '.orchestrator.status'{AGENT_STATE}": ask_agent_state(lambda state: ["completed"]),
    "jq '{phase: .orchestrator.current_phase, task: .orchestrator.current_task, status: .orchestrator.status}'"
    + AGENT_STATE: ask_agent_state(lambda state: [{"phase": 0, "task": "2/2", "status": "completed"}]),
    f"jq '.safety_bounds | {{cost: .cost_so_far, time: .elapsed_time, max_cost, max_time}}'{AGENT_STATE}": ask_agent_state(
        lambda state: [
            {"cost": "unknown", "time": state["safety_bounds"]["elapsed_time"], "max_cost": "unlimited", "max_time": "unlimited"}
        ]
    ),
    f"jq '.completed_tasks[] | {{task, name, iterations, time: .time_elapsed}}'{AGENT_STATE}": ask_agent_state(
        lambda state: [
            {**{key: task[key] for key in ("task", "name", "iterations")}, "time": task["time_elapsed"]}
            for task in state["completed_tasks"]
        ]
    ),
    f"jq '.supervisor.interventions[]'{AGENT_STATE}": ask_agent_state(lambda state: state["supervisor"]["interventions"]),
    f"jq '.learnings[] | {{task, type, lesson}}'{AGENT_STATE}": ask_agent_state(
        lambda state: [{"task": "1.1", "type": "insight", "lesson": "look first"}]
    ),
    f"cp .claude/checkpoint-{NUMBER}.json .claude/agent-state.json": restore_a_checkpoint,
    "git reset --hard <sha>": reset_the_tree,
    "cat coordination/pm_state.json | jq .": ask_coordination("pm_state.json", lambda document: document),
    "cat coordination/group_status.json | jq '.A'": ask_coordination("group_status.json", lambda document: document["A"]),
    "watch -n 1 'cat coordination/orchestrator_state.json | jq .current_phase'": watch_the_phase,
    "cat coordination/pm_state.json | jq .iteration": ask_coordination("pm_state.json", lambda document: document["iteration"]),
    "aiwg ralph-status {loop_id}": with_a_loop("completed", "loop {loop}  running"),
    "aiwg ralph-pause {loop_id}": with_a_loop("paused"),
    "aiwg ralph-resume {loop_id}": with_a_loop("completed", paused=True),
    "aiwg ralph-abort {loop_id}": with_a_loop("aborted"),
    "./scripts/validate-state.sh --runs": validate("2 records: 2"),
    "./scripts/validate-state.sh --results": validate("2 records: 2"),
    "./scripts/validate-state.sh --all": validate("4 records: 4"),
    "./scripts/validate-state.sh --runs state/runs/bd-abc.json": validate("1 record: 1"),
    "./scripts/validate-state.sh --fix --runs": validate("2 records: 2"),
    "./scripts/analyze-runs.sh": analyze("success rate   100%", "The swarm is healthy"),
    "./scripts/analyze-runs.sh --json": analyze('"total_runs": 1', '"success": 1'),
    "./scripts/analyze-runs.sh --since 2026-02-11": analyze("success rate   100%"),
}


@pytest.mark.parametrize("line", LINES, ids=lambda line: f"{line.seed}: {line.text}")
def test_a_line_of_a_seed_does_what_the_seed_says(line: Line, repo: Path) -> None:
    assert line.text in PLAYS, f"seed {line.seed} has a line that nobody runs"
    PLAYS[line.text](repo, line.text)


def test_every_line_that_is_run_stands_in_a_seed_and_none_was_overlooked() -> None:
    """The counts are those that a reader finds: a fence or a spelling that the search does not know would lower them."""
    assert set(PLAYS) == {line.text for line in LINES}
    counts = [sum(line.seed == seed for line in LINES) for seed in ("000", "001", "002", "003", "004")]
    assert counts == [6, 8, 4, 4, 8]
