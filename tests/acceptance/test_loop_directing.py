"""Pausing, resuming, aborting, steering and following loops, from other processes; several loops at once."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import pytest

from tests.acceptance.loop_rig import LoopRig, loop_of
from tests.acceptance.rig import is_alive, wait_until


@pytest.fixture
def rig(repo: Path) -> LoopRig:
    return LoopRig(repo)


def test_pause_takes_effect_between_iterations_and_resume_goes_on_with_the_same_count(rig: LoopRig) -> None:
    rig.do("echo $ITERATION > n")
    rig.do("touch done", 3)
    rig.hold(1)
    running = rig.start_loop()
    loop = loop_of(running)
    running.wait_for("iteration 1 started")
    paused = rig.orc("loop", "pause", loop)
    assert paused.code == 0, paused
    assert rig.state(loop)["status"] == "running"
    rig.open("go")
    ended = running.end()
    assert ended.code == 130, ended
    state = rig.state(loop)
    assert (state["status"], state["iteration"], state["pid"]) == ("paused", 1, None)
    assert rig.registry()["active_loops"][0]["status"] == "paused"
    again = rig.orc("loop", "resume")
    assert again.code == 0, again
    assert rig.state(loop)["iteration"] == 3
    assert [line.split()[1] for line in rig.launches()] == ["1", "2", "3"]


def test_pause_now_stops_the_agent_and_the_iteration_goes_on_with_a_new_launch(rig: LoopRig) -> None:
    rig.do("touch done")
    rig.hold()
    running = rig.start_loop()
    loop = loop_of(running)
    wait_until(lambda: rig.launches())
    pid = int(rig.launches()[0].split()[2])
    assert rig.orc("loop", "pause", "--now").code == 0
    assert running.end().code == 130
    assert not is_alive(pid)
    assert (rig.state(loop)["status"], rig.state(loop)["iteration"]) == ("paused", 0)
    rig.open("go")
    assert rig.orc("loop", "resume", loop).code == 0
    assert [line.split()[1] for line in rig.launches()] == ["1", "1"]
    assert rig.state(loop)["iteration"] == 1


def test_every_refusal_names_both_states_and_what_is_allowed(rig: LoopRig) -> None:
    rig.do("touch done")
    loop = loop_of(rig.loop())
    for command, wanted in (("pause", "paused"), ("abort", "aborted")):
        refused = rig.orc("loop", command, loop)
        assert refused.code == 2
        assert f"a loop that is completed cannot become {wanted}; from completed it can become: nothing" in refused.err
    assert "is completed; there is nothing to resume" in rig.orc("loop", "resume", loop).err


def test_resuming_a_completed_loop_writes_the_files_that_a_power_cut_tore(rig: LoopRig) -> None:
    rig.do("touch done")
    loop = loop_of(rig.loop())
    before = rig.state(loop)
    (rig.ralph / "loops" / loop / "state.json").write_bytes(b"")
    assert "there is nothing to resume" in rig.orc("loop", "resume", loop).err
    assert rig.state(loop) == before


def test_abort_revert_brings_the_tree_back_and_loses_nothing(rig: LoopRig) -> None:
    (rig.repo / "notes.txt").write_text("mine, uncommitted\n")
    rig.do("echo changed > README.md; echo new > new.txt; rm notes.txt", 1)
    rig.do("echo half > half.txt; touch ../side/half; while :; do sleep 0.02; done", 2)
    running = rig.start_loop()
    loop = loop_of(running)
    wait_until(lambda: (rig.side / "half").exists())
    aborted = rig.orc("loop", "abort", loop, "--revert")
    assert aborted.code == 0, aborted
    assert running.end().code == 1
    assert rig.state(loop)["status"] == "aborted"
    assert (rig.repo / "README.md").read_text() == "A repository to work on.\n"
    assert (rig.repo / "notes.txt").read_text() == "mine, uncommitted\n"
    assert not (rig.repo / "new.txt").exists()
    assert not (rig.repo / "half.txt").exists()
    kept = f"refs/orc/{loop}/reverted"
    assert rig.git("show", f"{kept}:new.txt") == "new"
    assert rig.git("show", f"{kept}:half.txt") == "half"
    assert rig.git("show", f"refs/orc/{loop}/0:notes.txt") == "mine, uncommitted"


def test_best_puts_the_best_iterations_tree_on_a_branch(rig: LoopRig) -> None:
    for number, score in ((1, 10), (2, 80), (3, 20)):
        rig.do(f"""echo {number} > n; echo '{{"quality_score": {score}}}' > $REPORT_PATH""", number)
    loop = loop_of(rig.loop("--max-iterations", "3"))
    assert rig.analytics(loop)["best_iteration"] == {"iteration": 2, "quality_score": 80.0, "ref": f"refs/orc/{loop}/2"}
    done = rig.orc("loop", "best", loop)
    assert done.code == 0, done
    assert rig.git("show", f"orc-best/{loop}:n") == "2"
    assert (rig.repo / "n").read_text() == "3\n"


def test_two_low_deltas_in_a_row_are_pointed_out_and_stop_nothing(rig: LoopRig) -> None:
    rig.do("""echo $ITERATION > n; echo '{"quality_score": 50}' > $REPORT_PATH""")
    loop = loop_of(rig.loop("--max-iterations", "4"))
    assert rig.state(loop)["iteration"] == 4
    assert rig.analytics(loop)["diminishing_returns"]["at_iteration"] == 3


def test_each_iteration_is_committed_with_trailers_when_asked(rig: LoopRig) -> None:
    rig.do("""echo 1 > n; echo '{"summary": "write n"}' > $REPORT_PATH""", 1)
    rig.do("touch done", 2)
    loop = loop_of(rig.loop("--commit"))
    assert rig.git("log", "--format=%s", "-2") == "make it so\nwrite n"
    assert f"Loop-Id: {loop}\nLoop-Iteration: 2" in rig.git("log", "-1", "--format=%B")
    assert rig.git("status", "--porcelain") == ""
    (rig.repo / "done").unlink()
    assert "needs a clean tree" in rig.loop("--commit").err


def test_steering_stands_first_in_the_next_prompt_once(rig: LoopRig) -> None:
    rig.do("echo $ITERATION > n")
    rig.do("touch done", 3)
    rig.hold(1)
    running = rig.start_loop()
    loop = loop_of(running)
    running.wait_for("iteration 1 started")
    assert rig.orc("loop", "steer", loop, "look at the lexer").code == 0
    rig.open("go")
    assert running.end().code == 0
    assert rig.prompt(loop, 2).startswith("## First of all\n\nlook at the lexer\n")
    assert "lexer" not in rig.prompt(loop, 3)


def test_attach_follows_the_agent_and_ends_with_the_loop(rig: LoopRig) -> None:
    rig.do("touch done")
    rig.hold()
    running = rig.start_loop()
    loop = loop_of(running)
    attached = rig.start("loop", "attach")
    attached.wait_for("working on 1")
    rig.open("go")
    ended = attached.end()
    assert ended.code == 0, ended
    assert f"loop {loop} is completed" in ended.out
    assert running.end().code == 0


def test_four_loops_at_once_each_in_its_own_worktree_and_a_fifth_is_refused(rig: LoopRig) -> None:
    rig.do("touch done")
    rig.hold()
    running = [rig.start_loop("--git-worktree", task=f"task {number}") for number in range(4)]
    loops = {loop_of(one) for one in running}
    wait_until(lambda: len(rig.launches()) == 4)
    registry = rig.registry()
    assert {one["loop_id"] for one in registry["active_loops"]} == loops
    assert all(one["working_directory"].startswith(".agents/worktrees/") for one in registry["active_loops"])
    assert all(one["pid"] for one in registry["active_loops"])
    refused = rig.loop(task="one more")
    assert refused.code == 2
    assert all(loop in refused.err for loop in loops)
    several = rig.orc("loop", "pause")
    assert several.code == 2
    assert all(loop in several.err for loop in loops)
    rig.open("go")
    assert [one.end().code for one in running] == [0, 0, 0, 0]
    assert not (rig.repo / "done").exists()
    assert rig.registry()["active_loops"] == []


def test_force_goes_beyond_the_limit_with_a_warning(rig: LoopRig) -> None:
    rig.hold()
    paused = []
    for number in range(4):
        running = rig.start_loop("--shared-tree", task=f"task {number}")
        loop = loop_of(running)
        running.wait_for("iteration 1 started")
        rig.orc("loop", "pause", loop, "--now")
        assert running.end().code == 130
        paused.append(loop)
    rig.do("touch done")
    rig.open("go")
    forced = rig.loop("--force", "--shared-tree")
    assert forced.code == 0, forced
    assert "the limit is 4" in forced.err
    assert {one["loop_id"] for one in rig.registry()["active_loops"]} == set(paused)


def test_the_living_agent_of_a_killed_engine_is_adopted_and_its_iteration_counted_once(rig: LoopRig) -> None:
    rig.do("touch done")
    rig.hold()
    running = rig.start_loop()
    loop = loop_of(running)
    wait_until(lambda: rig.launches())
    running.signal(signal.SIGKILL)
    running.end()
    assert rig.registry()["active_loops"][0]["pid"] == running.process.pid
    assert rig.orc("loop", "list", "--json").json["loops"][0]["status"] == "running"
    assert rig.registry()["active_loops"][0]["pid"] is None
    status = rig.orc("loop", "status", loop, "--json")
    assert status.json["state"]["status"] == "running"
    resumed = rig.start("loop", "resume", loop)
    resumed.wait_for(f"loop {loop}")
    rig.open("go")
    assert resumed.end().code == 0
    assert rig.state(loop)["iteration"] == 1
    assert len(rig.launches()) == 1


def test_process_and_agent_gone_is_seen_as_crashed_and_resume_starts_a_successor(rig: LoopRig) -> None:
    rig.do("echo 1 > n", 1)
    rig.do("touch done", 3)
    rig.hold(2)
    running = rig.start_loop(task="survive")
    loop = loop_of(running)
    running.wait_for("iteration 2 started")
    wait_until(lambda: len(rig.launches()) == 2)
    running.signal(signal.SIGKILL)
    running.end()
    os.killpg(os.getpgid(int(rig.launches()[1].split()[2])), signal.SIGKILL)
    wait_until(lambda: not is_alive(int(rig.launches()[1].split()[2])))
    listed = rig.orc("loop", "list", "--all", "--json")
    assert [one["status"] for one in listed.json["loops"]] == ["crashed"]
    state = rig.state(loop)
    assert (state["status"], state["iteration"]) == ("crashed", 1)
    assert "gone" in state["error_context"]["error_message"]
    assert state["error_context"]["recovery_attempted"] is False
    assert rig.registry()["active_loops"] == []
    (rig.side / "hold.2").unlink()
    rig.do("echo 2 > n", 2)
    resumed = rig.orc("loop", "resume", loop)
    assert resumed.code == 0, resumed
    successor = loop_of(resumed)
    assert successor != loop
    assert rig.state(successor)["iteration"] == 3
    assert rig.state(loop)["error_context"]["recovery_attempted"] is True
    assert "- iteration 1 (the check failed" in rig.prompt(successor, 2)
    assert "has a successor already" in rig.orc("loop", "resume", loop).err


def test_a_legacy_file_is_taken_over_once_and_kept_in_step(rig: LoopRig) -> None:
    rig.ralph.mkdir(parents=True)
    legacy = rig.ralph / "current-loop.json"
    legacy.write_text(json.dumps({"task": "old work", "completion": "test -f done", "iteration": 4, "status": "running"}))
    (listed,) = rig.orc("loop", "list", "--json").json["loops"]
    loop = listed["run_id"]
    assert listed["only_in"] == ".aiwg/ralph/current-loop.json"
    assert "no agent is known" in rig.orc("loop", "resume").err
    state = rig.state(loop)
    assert (state["status"], state["iteration"], state["task"]) == ("paused", 4, "old work")
    assert json.loads(legacy.read_text())["loop_id"] == loop
    rig.do("touch done")
    done = rig.orc("loop", "resume", "--agent-command", str(rig.agent))
    assert done.code == 0, done
    assert rig.state(loop)["iteration"] == 5
    kept = json.loads(legacy.read_text())
    assert kept == {"task": "old work", "completion": "test -f done", "iteration": 5, "status": "completed", "loop_id": loop}
    assert len(rig.orc("loop", "list", "--all", "--json").json["loops"]) == 1
    assert rig.orc("prune", "--older-than", "0", "--yes", "--json").json["deleted"] == [loop]
    assert rig.orc("loop", "list", "--all", "--json").json["loops"] == []


def test_a_legacy_file_that_nobody_has_seen_yet_is_not_overwritten(rig: LoopRig) -> None:
    foreign = {"loop_id": "ralph-old-work-0badcafe", "task": "old work", "completion_criteria": "false", "iteration": 2}
    (rig.side / "foreign.json").write_text(json.dumps(foreign))
    rig.do("cp ../side/foreign.json .aiwg/ralph/current-loop.json; touch done")
    assert rig.loop().code == 0
    assert json.loads((rig.ralph / "current-loop.json").read_text()) == foreign
    assert rig.orc("loop", "status", "--json").json["state"]["loop_id"] == foreign["loop_id"]


def test_detached_loops_run_behind(rig: LoopRig) -> None:
    rig.do("touch done")
    started = rig.loop("--detach", "--json")
    assert started.code == 0, started
    loop = started.json["run_id"]
    wait_until(lambda: rig.state(loop)["status"] == "completed")
    assert rig.state(loop)["iteration"] == 1


def test_prose_needs_the_agents_verdict_and_a_person(rig: LoopRig) -> None:
    rig.do("""echo 1 > n""", 1)
    rig.do("""echo 2 > n; echo '{"done": true, "summary": "it reads well"}' > $REPORT_PATH""")
    waiting = rig.loop("--completion", "The guide reads well", "--no-wait", until=None)
    assert waiting.code == 4, waiting
    loop = loop_of(waiting)
    assert (rig.state(loop)["status"], rig.state(loop)["iteration"]) == ("paused", 1)
    assert "asks: Is this so: The guide reads well?" in rig.orc("loop", "status", loop).out
    assert rig.orc("reject", loop, "--comments", "too short").code == 0
    again = rig.orc("loop", "resume", loop, "--no-wait")
    assert again.code == 4, again
    assert "the criterion was not confirmed: too short" in rig.prompt(loop, 3)
    assert rig.orc("approve", loop).code == 0
    done = rig.orc("loop", "resume", loop)
    assert done.code == 0, done
    assert (rig.state(loop)["status"], rig.state(loop)["iteration"]) == ("completed", 3)


def test_prose_may_be_confirmed_by_another_agent(rig: LoopRig) -> None:
    confirmer = rig.side / "confirm.sh"
    confirmer.write_text('#!/bin/sh\necho \'{"status": "PASS", "summary": "seen"}\' > "$REPORT_PATH"\n')
    confirmer.chmod(0o755)
    rig.do("""echo 2 > n; echo '{"done": true}' > $REPORT_PATH""")
    done = rig.loop("--completion", "It is good", "--confirm-with", f"sh {confirmer}", until=None)
    assert done.code == 0, done
    assert rig.state(loop_of(done))["status"] == "completed"


def test_aiwg_speaks_the_seeds_command_lines(rig: LoopRig) -> None:
    rig.do("echo $ITERATION > n")
    rig.hold(1)
    agent = ("--agent-command", str(rig.agent))
    started = rig.aiwg("ralph", "fix it", "--completion", "test -f done passes", "--detach", "--json", *agent)
    assert started.code == 0, started
    loop = started.json["run_id"]
    assert rig.state(loop)["completion_criteria"] == "test -f done passes"
    wait_until(lambda: rig.launches())
    assert f"loop {loop}  running" in rig.aiwg("ralph-status").out
    assert f"loop {loop}  running" in rig.aiwg("ralph-status", f"--loop-id={loop}", "--repo", str(rig.repo)).out
    assert "running" in rig.aiwg("ralph-status", loop).out
    assert rig.aiwg("ralph-pause", "--loop-id", loop).code == 0
    rig.open("go")
    wait_until(lambda: rig.state(loop)["status"] == "paused")
    rig.do("touch done", 2)
    assert rig.aiwg("ralph-resume", loop, "--detach").code == 0
    assert rig.aiwg("ralph-attach", loop).code == 0
    assert rig.state(loop)["status"] == "completed"
    assert "cannot become aborted" in rig.aiwg("ralph-abort", loop).err
    assert rig.aiwg("ralph-nothing").code == 2


def test_ctrl_c_once_pauses_when_the_iteration_is_over_and_twice_at_once(rig: LoopRig) -> None:
    rig.do("echo $ITERATION > n")
    rig.hold(1)
    first = rig.start_loop(task="once")
    loop = loop_of(first)
    wait_until(lambda: rig.launches())
    first.signal(signal.SIGINT)
    first.wait_for("pauses when this iteration ends")
    rig.open("go")
    assert first.end().code == 130
    assert (rig.state(loop)["status"], rig.state(loop)["iteration"]) == ("paused", 1)
    (rig.side / "go").unlink()
    second = rig.start_loop("--shared-tree", task="twice")
    wait_until(lambda: len(rig.launches()) == 2)
    second.signal(signal.SIGINT)
    second.wait_for("pauses when this iteration ends")
    second.signal(signal.SIGINT)
    assert second.end().code == 130
    assert rig.state(loop_of(second))["iteration"] == 0


def test_a_loop_that_is_left_alone_goes_on_where_it_was(rig: LoopRig) -> None:
    rig.do("touch done")
    rig.hold()
    running = rig.start_loop()
    loop = loop_of(running)
    wait_until(lambda: rig.launches())
    running.signal(signal.SIGTERM)
    assert running.end().code == 130
    (entry,) = rig.registry()["active_loops"]
    assert (entry["status"], entry["pid"]) == ("running", None)
    rig.open("go")
    wait_until(lambda: not is_alive(int(rig.launches()[0].split()[2])))
    assert rig.orc("loop", "list", "--json").json["loops"][0]["status"] == "running"
    assert rig.orc("loop", "resume", loop).code == 0
    assert rig.state(loop)["iteration"] == 1
    assert len(rig.launches()) == 1
