"""`orc run` as a person uses it: what is printed, what it exits with, what it leaves behind."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import re
import signal
import subprocess
from pathlib import Path

import pytest

from tests.acceptance.rig import HUMAN, ORC, Rig, wait_until


def test_the_run_id_is_the_first_line_and_the_result_the_last(rig: Rig) -> None:
    done = rig.run()
    assert done.code == 0, done
    assert re.fullmatch(r"run [0-9a-f]{8}", done.out.splitlines()[0])
    assert re.search(r"^\d\d:\d\d:\d\d  coding    started \(attempt 1\)$", done.out, re.M), done
    assert f"run {done.run} completed: 3/3 steps" in done.out
    assert done.err == ""
    assert [line.split()[1] for line in rig.launches()] == ["planning", "coding", "code_review"]
    assert {step["status"] for step in rig.state(done.run)["steps"].values()} == {"COMPLETED"}


def test_with_json_the_output_is_one_object_and_progress_goes_to_stderr(rig: Rig) -> None:
    done = rig.run("--json", "--run-id", "given-1")
    assert done.code == 0, done
    assert (done.json["run_id"], done.json["status"], done.json["stop"], done.json["exit_code"]) == (
        "given-1",
        "completed",
        "completed",
        0,
    )
    assert json.loads(Path(done.json["state_file"]).read_text())["run_id"] == "given-1"
    assert done.err.splitlines()[0] == "run given-1"
    assert "coding" in done.err


def test_quiet_prints_the_id_and_the_result_only(rig: Rig) -> None:
    done = rig.run("--quiet")
    assert [line.split()[0] for line in done.out.splitlines()] == ["run", "run", "state:", "work:"], done


def test_a_failed_run_exits_with_1_and_says_where_to_look(rig: Rig) -> None:
    rig.play({"coding": {"exit": 3, "report": None}})
    done = rig.run("--max-attempts", "1")
    assert done.code == 1, done
    assert "coding    failed: Agent process exited with code 3: coding complains" in done.out
    assert f"why: orc show {done.run}" in done.out
    assert rig.state(done.run)["steps"]["coding"]["status"] == "FAILED"


def test_a_reached_iteration_limit_exits_with_5(rig: Rig) -> None:
    rig.play({"code_review": {"report": {"gate_failure": True}}})
    done = rig.run("--max-iterations", "2")
    assert done.code == 5, done
    assert len(rig.launches("coding")) == 2


def test_a_run_that_timed_out_exits_with_124(rig: Rig) -> None:
    rig.play({"planning": {"until": "never"}})
    done = rig.run("--timeout", "0.3", "--max-attempts", "1")
    assert done.code == 124, done


def test_a_gate_failure_loops_back_and_then_passes(rig: Rig) -> None:
    rig.play({"code_review@0": {"report": {"gate_failure": "found P0 issues"}}})
    done = rig.run()
    assert done.code == 0, done
    assert "code_review  loops back to coding" in done.out
    assert rig.state(done.run)["steps"]["coding"]["iteration_count"] == 1


def test_without_waiting_a_run_that_needs_a_person_exits_with_4(rig: Rig) -> None:
    rig.workflow(HUMAN)
    done = rig.run("--no-wait")
    assert done.code == 4, done
    assert f"orc approve {done.run} approval" in done.out
    answer = f".agents/runs/{done.run}/manual_inputs/{done.run}__approval.json"
    assert f"{rig.repo}/{answer}" in done.out
    (rig.repo / answer).write_text('{"approved": true}')
    resumed = rig.orc("resume", done.run)
    assert resumed.code == 0, resumed


def test_a_plan_prints_levels_prompts_and_gates_and_creates_nothing(rig: Rig) -> None:
    before = sorted(rig.repo.rglob("*"))
    done = rig.run("--plan")
    assert done.code == 0, done
    for said in ("level 3", "coding", "wrapper as coder", f"{rig.repo}/prompt.md", "back to coding"):
        assert said in done.out, done
    facts = rig.run("--plan", "--json").json
    assert [[step["id"] for step in level] for level in facts["levels"]] == [["planning"], ["coding"], ["code_review"]]
    assert sorted(rig.repo.rglob("*")) == before


def test_a_warning_about_a_report_is_told_once_when_it_happens_and_in_the_history(rig: Rig) -> None:
    rig.play({"planning": {"report": {"artifacts": ["../outside"], "learnings": [1]}}})
    done = rig.run()
    assert done.code == 0, done
    for told in (done.out, rig.ask("history", done.run).out, rig.ask("show", done.run, "planning").out):
        assert (told.count("'../outside' was refused"), told.count("a learning was dropped")) == (1, 1), told


def test_start_at_step_keeps_who_performs_the_steps_unless_somebody_else_is_chosen(rig: Rig) -> None:
    first = rig.run()
    assert first.code == 0, first
    take_up = ("run", "--workflow", "workflow.yaml", "--start-at-step", "coding")
    again = rig.orc(*take_up)
    assert (again.code, again.run) == (0, first.run), again
    assert (len(rig.launches("planning")), len(rig.launches("coding"))) == (1, 2)
    other = rig.orc(*take_up, "--agent-command", "false", "--max-attempts", "1")
    assert (other.code, len(rig.launches("coding"))) == (1, 2), other


def test_start_at_step_takes_the_newest_run_up_with_the_file_as_it_is_now(rig: Rig) -> None:
    rig.play({"coding": {"exit": 1, "report": None}})
    first = rig.run("--max-attempts", "1")
    assert first.code == 1, first
    rig.play({})
    again = rig.run("--start-at-step", "coding")
    assert again.code == 0, again
    assert again.run == first.run
    assert len(rig.launches("planning")) == 1
    refused = rig.run("--start-at-step", "nowhere")
    assert (refused.code, "nowhere" in refused.err) == (2, True), refused


def test_a_detached_run_goes_on_by_itself_and_can_be_watched(rig: Rig) -> None:
    rig.play({"planning": {"until": "go"}})
    started = rig.run("--detach", "--json")
    assert started.code == 0, started
    run = started.json["run_id"]
    assert started.json["driven_by"], started
    busy = rig.orc("resume", run)
    assert (busy.code, "already running in another process" in busy.err) == (3, True), busy
    watching = rig.start("watch", run)
    watching.wait_for("RUNNING")
    rig.open("go")
    watched = watching.end()
    assert watched.code == 0, watched
    assert "code_review  completed" in watched.out
    assert "completed" in Path(started.json["log"]).read_text()


def test_ctrl_c_drains_and_a_second_one_stops(rig: Rig) -> None:
    rig.play({"planning": {"until": "go"}})
    running = rig.start_run()
    running.wait_for("planning  started")
    wait_until(lambda: rig.launches("planning"))
    running.signal(signal.SIGINT)
    running.wait_for("Draining")
    running.signal(signal.SIGINT)
    done = running.end()
    assert done.code == 130, done
    assert f"orc resume {done.run}" in done.out.splitlines()[-1]
    assert rig.state(done.run)["steps"]["planning"]["status"] == "PENDING"
    rig.open("go")
    resumed = rig.orc("resume", done.run)
    assert resumed.code == 0, resumed
    assert {line.split()[3] for line in rig.launches("planning")} == {"1"}, "the same attempt went on"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGKILL])
def test_agents_live_on_when_the_orchestrator_goes(rig: Rig, number: signal.Signals) -> None:
    rig.play({"planning": {"until": "go"}})
    running = rig.start_run()
    running.wait_for("planning  started")
    wait_until(lambda: rig.launches("planning"))
    running.signal(number)
    left = running.end()
    if number is not signal.SIGKILL:
        assert left.code == 130, left
        assert "keep running" in left.out
        assert f"orc resume {left.run}" in left.out
    rig.open("go")
    resumed = rig.orc("resume")
    assert resumed.code == 0, resumed
    assert len(rig.launches("planning")) == 1


def test_hooks_get_the_facts_of_the_run_and_their_failure_is_a_warning(rig: Rig) -> None:
    rig.workflow(HUMAN)
    told = rig.side / "told"
    say = f'echo "$RUN_ID $RUN_STATUS $WORKFLOW_NAME [$WAITING_STEPS] $STATE_FILE" >> {told}'
    waiting = rig.run("--no-wait", "--on-wait", say)
    state = f"{rig.repo}/.agents/runs/{waiting.run}/run_state.json"
    assert told.read_text() == f"{waiting.run} waiting human [approval] {state}\n"
    assert rig.ask("approve").code == 0
    ended = rig.orc("resume", "--on-end", f"{say}; exit 7")
    assert ended.code == 0, ended
    assert told.read_text().splitlines()[-1] == f"{waiting.run} completed human [] {state}"
    assert "--on-end command ended with exit code 7" in ended.err


def test_a_reader_that_goes_away_does_not_stop_the_run(rig: Rig) -> None:
    rig.play({"planning": {"until": "go"}})
    command = [*ORC, "run", "--workflow", "workflow.yaml", "--wrapper", str(rig.side / "wrapper.py")]
    with subprocess.Popen(
        command, cwd=rig.repo, env=rig.environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        run = process.stdout.readline().split()[1]
        process.stdout.close()
        rig.open("go")
        assert (process.wait(30), process.stderr.read()) == (0, "")
    assert rig.state(run)["steps"]["code_review"]["status"] == "COMPLETED"


@pytest.mark.parametrize("no_colour", [False, True])
def test_on_a_terminal_the_table_is_live_and_colour_can_be_refused(rig: Rig, no_colour: bool) -> None:
    (rig.repo / "script.yaml").write_text('- {step: "*", takes: 0.05s}\n')
    ours, theirs = pty.openpty()
    environ = rig.environment({"TERM": "xterm-256color"} | ({"NO_COLOR": "1"} if no_colour else {}))
    command = [*ORC, "run", "--workflow", "workflow.yaml", "--rehearse", "script.yaml"]
    with subprocess.Popen(command, cwd=rig.repo, env=environ, stdin=subprocess.DEVNULL, stdout=theirs, stderr=theirs) as process:
        os.close(theirs)
        shown = b""
        with contextlib.suppress(OSError):  # how Linux says that the other end is closed
            while block := os.read(ours, 4096):
                shown += block
        os.close(ours)
    assert process.returncode == 0, shown
    assert b"working" in shown
    assert (b"completed: 3/3 steps" if no_colour else b"\x1b[32mcompleted\x1b[0m: 3/3 steps") in shown
    assert bool(re.search(rb"\x1b\[[0-9;]*[39]\dm", shown)) is not no_colour


def test_wrapper_arguments_are_passed_on_as_they_are(rig: Rig) -> None:
    done = rig.run("--wrapper-arg", "--fast", "--wrapper-arg", "$HOME x")
    assert done.code == 0, done
    assert rig.ask("logs", done.run, "coding").out == "coding at work --fast $HOME x\n"


def test_variables_and_environment_reach_the_agent(rig: Rig) -> None:
    agent = rig.side / "agent.sh"
    agent.write_text(f'#!/bin/sh\n{{ cat; echo "$COLOUR $SECRET_WORD $HIDDEN"; }} > {rig.side}/seen\n')
    agent.chmod(0o755)
    rig.workflow("steps: [{id: one, agent: coder, prompt: prompt.md}]")
    (rig.repo / "prompt.md").write_text("Paint it {SHADE}.\n")
    done = rig.orc(
        *("run", "--workflow", "workflow.yaml", "--agent-command", str(agent), "--var", "SHADE=dark", "--env", "COLOUR=red"),
        *("--pass-env", "SECRET_WORD"),
        env={"SECRET_WORD": "abc", "HIDDEN": "not for agents"},
    )
    assert done.code == 0, done
    assert (rig.side / "seen").read_text() == "Paint it dark.\nred abc \n"


def test_a_worktree_run_leaves_the_tree_alone(rig: Rig) -> None:
    subprocess.run(["git", "add", "--all"], cwd=rig.repo, check=True)
    subprocess.run(["git", "commit", "--quiet", "--message", "workflow"], cwd=rig.repo, check=True)
    done = rig.run("--git-worktree", "--run-id", "apart")
    assert done.code == 0, done
    assert rig.state("apart")["repo_dir"] == f"{rig.repo}/.agents/worktrees/apart"
    assert [path.name for path in (rig.repo / ".agents" / "worktrees").iterdir()] == ["apart"]
    status = subprocess.run(["git", "status", "--porcelain"], cwd=rig.repo, check=True, capture_output=True, text=True)
    assert status.stdout == ""


def test_the_work_of_a_worktree_run_is_committed_and_told_at_its_end(rig: Rig) -> None:
    def git(*arguments: str) -> str:
        return subprocess.run(["git", *arguments], cwd=rig.repo, check=True, capture_output=True, text=True).stdout

    git("add", "--all")
    git("commit", "--quiet", "--message", "workflow")
    rig.workflow("name: one\nsteps: [{id: one, agent: coder, prompt: prompt.md}]")
    writer = ("run", "--workflow", "workflow.yaml", "--git-worktree", "--run-id", "apart", "--max-attempts", "1")
    failed = rig.orc(*writer, "--agent-command", "sh -c 'echo x >new.txt; test -e go || exit 1; rm go; echo y >>new.txt'")
    folder = f"{rig.repo}/.agents/worktrees/apart"
    assert failed.code == 1, failed
    assert f"work: branch orc/apart in {folder}: 1 file changed, +1 -0\n" in failed.out
    assert "next: orc diff apart   orc merge apart   orc pr apart   orc discard apart\n" in failed.out
    assert git("show", "orc/apart:new.txt") == "x\n"
    (rig.repo / ".agents" / "worktrees" / "apart" / "go").touch()
    done = rig.orc("resume", "apart", "--json")
    assert done.code == 0, done
    size = {"files": 1, "added": 2, "removed": 0}
    assert done.json["work"] == {"branch": "orc/apart", "path": folder, **size, "merged": False, "uncommitted": ""}
    assert git("log", "--format=%s", "main..orc/apart").splitlines() == ["one: completed", "one: failed"]
    git("merge", "--quiet", "orc/apart")
    assert rig.ask("prune", "--older-than", "0", "--yes", "--json").json["deleted"] == ["apart"]


def test_a_rehearsal_needs_no_agent(rig: Rig) -> None:
    (rig.repo / "script.yaml").write_text('- {step: coding, write: {made.txt: "yes\\n"}}\n')
    done = rig.orc("run", "--workflow", "workflow.yaml", "--rehearse", "script.yaml")
    assert done.code == 0, done
    assert (rig.repo / "made.txt").read_text() == "yes\n"
    assert rig.launches() == []


def test_a_secret_given_with_env_is_not_left_in_what_an_agent_wrote(rig: Rig) -> None:
    rig.workflow("name: loud\nsteps:\n  - {id: tell, agent: shell, prompt: tell.sh}\n")
    (rig.repo / "tell.sh").write_text('echo "the key is $MY_API_KEY"\n')
    done = rig.orc("run", "--workflow", "workflow.yaml", "--env", "MY_API_KEY=swordfish-1234", "--run-id", "loud", cwd=rig.repo)
    assert done.code == 0, done
    said = rig.orc("logs", "loud", "tell").out
    assert "the key is" in said
    assert "swordfish" not in said


def test_a_secret_in_names_that_an_agent_gave_is_not_journaled(rig: Rig) -> None:
    rig.workflow("name: loud\nsteps:\n  - {id: tell, agent: shell, prompt: tell.sh}\n")
    commit = "git -c user.name=a -c user.email=a commit --quiet"
    named = f'git switch --quiet -c "wip-$MY_API_KEY" && touch "notes-$MY_API_KEY" && {commit} --allow-empty -m "of $MY_API_KEY"'
    (rig.repo / "tell.sh").write_text(f'{named}\nenv | sort | base64\ngit status "$MY_API_KEY:bad"\ntrue\n')
    given = {"MY_API_KEY": "swordfish-1234"}
    done = rig.orc("run", "--workflow", "workflow.yaml", "--pass-env", "MY_API_KEY", "--run-id", "loud", env=given)
    assert done.code == 0, done
    assert "swordfish" not in done.out + done.err
    kept = [file for file in (rig.repo / ".git" / "orc").rglob("*") if file.is_file()]
    assert [file for file in kept if b"swordfish" in file.read_bytes()] == []


def test_a_step_is_done_for_each_item_that_the_first_artifact_of_another_lists(rig: Rig) -> None:
    rig.workflow(
        "name: stories\nsteps:\n"
        "  - {id: breakdown, agent: planner, prompt: prompt.md}\n"
        "  - id: implement\n    agent: shell\n    prompt: one.sh\n    needs: [breakdown]\n"
        "    loop: {items_from_step: breakdown, item_var: story, max_iterations: 2}\n"
    )
    (rig.repo / "one.sh").write_text('echo "$LOOP_STORY" >> done.txt\n')
    (rig.repo / "stories.json").write_text('{"items": [{"title": "log in"}, "log out", "never"]}')
    rig.play({"breakdown": {"report": {"artifacts": ["stories.json", "PLAN.md"]}}})
    done = rig.run()
    assert done.code == 0, done
    assert "takes the first 2 of 3 items" in done.out
    assert (rig.repo / "done.txt").read_text() == '{"title":"log in"}\n"log out"\n'
    assert rig.state(done.run)["steps"]["implement"]["logs"] == [
        "The loop takes the first 2 of 3 items: that is its max_iterations."
    ]


def test_a_value_that_is_passed_on_is_stored_and_committed_nowhere(rig: Rig) -> None:
    secret = "plugh-xyzzy-4711"
    rig.workflow(f"name: use {secret}\nsteps:\n  - {{id: work, agent: a, prompt: prompt.md, check: echo $DEPLOY}}\n")
    report = r"{\"status\": \"COMPLETED\", \"summary\": \"$DEPLOY\"}"
    script = f'echo "$DEPLOY"; echo x > "$DEPLOY.txt"; echo "{report}" > "$REPORT_PATH"\n'
    (rig.side / "agent.sh").write_text(f"#!/bin/sh\n{script}")
    (rig.side / "agent.sh").chmod(0o755)
    words = ("run", "--workflow", "workflow.yaml", "--run-id", "one", "--git-worktree", "--pass-env", "DEPLOY")
    done = rig.orc(*words, "--agent-command", str(rig.side / "agent.sh"), env={"DEPLOY": secret})
    assert done.code == 0, done
    log = subprocess.run(["git", "-C", str(rig.repo), "log", "--all", "--format=%B"], capture_output=True, text=True, check=True)
    assert "use [redacted]: completed" in log.stdout
    assert secret not in log.stdout
    launches = [path for path in (rig.repo / ".git" / "orc" / "launches").rglob("*") if path.is_file()]
    named = [
        path for path in (*launches, *(rig.repo / ".agents" / "runs").rglob("*.json")) if secret.encode() in path.read_bytes()
    ]
    assert [path.name for path in named] == ["run_state.json"], "the workflow's own name, as its author wrote it"
    events = rig.ask("history", "one", "--json").out
    assert secret not in events.replace(f"use {secret}", "")
