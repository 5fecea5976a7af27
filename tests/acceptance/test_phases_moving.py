"""Moving a run of phases: rewind, budgets, hand edits, gh, and command lines that are refused."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.acceptance.phases_rig import FOUR_PHASES, SMALL, WORKS, PhasesRig
from tests.acceptance.rig import wait_until

METERED = """\
for call in 1 2 3 4; do
  echo '{"cost": 0.30}'
  echo "$call" >>"$here/calls"
  sleep 0.2
done
"""
GH = """\
#!/bin/sh
# Lists nothing the first time, and keeps what it was told.
here=${0%/*}
echo "$*" >>"$here/gh.log"
if [ "$2" = list ]; then echo "[]"; exit 0; fi
cat >"$here/gh.$1.body"
echo "https://github.com/user/repo/$1/1"
"""


@pytest.fixture
def rig(repo: Path) -> PhasesRig:
    return PhasesRig(repo)


def test_rewind_takes_state_and_git_back_together_and_keeps_what_was_not_committed(rig: PhasesRig) -> None:
    rig.report("task-executor.1.2", {"status": "FAILED"}, also="echo mine >uncommitted")
    assert rig.phases("--yes", "--no-wait", "--run-id", "back", "--max-iterations", "1").code == 4
    unknown = rig.orc("rewind", "back", "--to", "checkpoint-009")
    assert unknown.code == 2
    assert "there are: start, plan, checkpoint-001, 1.1" in unknown.err
    done = rig.orc("rewind", "back", "--to", "checkpoint-001", "--json")
    assert done.code == 0, done
    assert rig.git("rev-parse", "HEAD") == done.json["commit"] == rig.checkpoint(1)["checkpoints"][0]["git_sha"]
    assert not (rig.repo / "uncommitted").exists()
    assert rig.git("show", f"{done.json['kept']}:uncommitted") == "mine"
    state = rig.state()
    assert [entry["task"] for entry in state["completed_tasks"]] == ["1.1"]
    assert len(state["pending_tasks"]) <= 1, "the next task may have begun in the same moment"
    rig.do("task-executor.1.2", WORKS)
    assert rig.orc("resume", "back").code == 0
    rig.check_numbers()


def test_a_loop_has_no_checkpoints_to_go_back_to(rig: PhasesRig) -> None:
    assert rig.orc("loop", "run", "x", "--until", "true", "--agent-command", "true", "--loop-id", "ralph-x-00000000").code == 0
    refused = rig.orc("rewind", "ralph-x-00000000", "--to", "checkpoint-001")
    assert refused.code == 2
    assert "there is no point 'checkpoint-001'; there are: start" in refused.err


def test_a_cost_limit_pauses_within_a_call_and_raising_it_goes_on_in_the_same_iteration(rig: PhasesRig) -> None:
    command = json.dumps([str(rig.agent)])
    (rig.repo / ".orc.toml").write_text(
        f'[agents.meter]\ncommand = {command}\noutput = "json-lines"\nusage_counts = "sum"\nusage = {{ cost_usd = "cost" }}\n'
    )
    rig.git("add", ".orc.toml")
    rig.git("-c", "user.name=ada", "-c", "user.email=ada@localhost", "commit", "--quiet", "-m", "agents")
    rig.do("task-executor", METERED + WORKS)
    bound = ("--max-cost", "$0.70", "--no-supervisor")
    paused = rig.orc("phases", "run", "task.md", "--agent", "meter", "--yes", *bound, "--run-id", "dear")
    assert paused.code == 5, paused
    state = rig.state()
    assert (state["orchestrator"]["status"], state["orchestrator"]["ralph_iteration"]) == ("executing", 1)
    assert any(text.startswith("Paused: ") for text in state["safety_bounds"]["warnings"])
    assert state["safety_bounds"]["max_cost"] == "$0.70"
    assert len((rig.side / "calls").read_text().splitlines()) <= 3
    done = rig.orc("resume", "dear", "--max-cost", "$20")
    assert done.code == 0, done
    state = rig.state()
    assert [entry["iterations"] for entry in state["completed_tasks"]] == [1, 1]
    assert state["safety_bounds"]["max_cost"] == "$20"
    assert state["safety_bounds"]["cost_so_far"].startswith(">=$")  # The scanner does not say what it cost.


def test_an_unmetered_agent_is_refused_under_a_cost_limit(rig: PhasesRig) -> None:
    rig.write(FOUR_PHASES)
    refused = rig.orc("phases", "run", "task.md", "--agent-command", str(rig.agent), "--yes")
    assert refused.code == 2
    assert "unknown is not zero" in refused.err
    assert rig.git("branch", "--show-current") == "main"


def test_a_message_that_is_a_sentence_ends_once_in_the_question_about_it(rig: PhasesRig) -> None:
    once = rig.side / "once.sh"
    once.write_text('#!/bin/sh\nrm -- "$0"\nexit 1\n')
    once.chmod(0o755)
    waits = rig.orc("phases", "run", "task.md", "--agent-command", str(once), "--allow-unmetered", "--yes", "--no-wait")
    assert waits.code == 4, waits
    assert "once.sh cannot be started: there is no such file. Approve to try again" in waits.out


def test_milestones_and_the_pull_request_go_through_gh_where_a_person_asks_for_it(rig: PhasesRig, tmp_path: Path) -> None:
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "gh").write_text(GH)
    (folder / "gh").chmod(0o755)
    rig.git("init", "--quiet", "--bare", str(tmp_path / "remote.git"))
    rig.git("remote", "add", "origin", str(tmp_path / "remote.git"))
    path = f"{folder}:{rig.environment()['PATH']}"
    done = rig.orc(*rig.arguments("--yes", "--publish", "--run-id", "public"), env={"PATH": path})
    assert done.code == 0, done
    (milestone,) = rig.state()["milestones"]
    assert milestone["issue_url"] == "https://github.com/user/repo/issue/1"
    assert "orc-public-milestone-1" in (folder / "gh.issue.body").read_text()
    assert "orc-public-pull-request" in (folder / "gh.pr.body").read_text()
    calls = [" ".join(line.split()[:2]) for line in (folder / "gh.log").read_text().splitlines()]
    assert calls == ["issue list", "issue create", "pr list", "pr create"]
    assert rig.git("ls-remote", "--heads", "origin", "phases/small-thing")
    assert not (rig.repo / ".claude" / "milestones").exists()


def test_a_push_that_is_refused_is_told_with_the_reason_and_not_with_the_last_line(rig: PhasesRig, tmp_path: Path) -> None:
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "gh").write_text(GH)
    (folder / "gh").chmod(0o755)
    rig.git("remote", "add", "origin", str(tmp_path / "nowhere.git"))
    path = f"{folder}:{rig.environment()['PATH']}"
    assert rig.orc(*rig.arguments("--yes", "--publish"), env={"PATH": path}).code == 0
    (told,) = rig.state()["safety_bounds"]["warnings"]
    assert told.startswith("git push --quiet failed: fatal: "), told
    assert "nowhere.git" in told


def test_a_change_of_the_plan_waits_for_a_person(rig: PhasesRig) -> None:
    rig.report("supervisor.1.1.0", {"status": "RE_PLAN", "conflicts": [{"type": "api", "recommendation": "keep the old one"}]})
    assert rig.phases("--no-wait", "--run-id", "plans").code == 4
    rig.orc("approve", "plans")
    asked = rig.orc("resume", "plans", "--no-wait")
    assert asked.code == 4
    assert "The supervisor wants another plan (api: keep the old one)" in asked.out
    rig.report("supervisor.1.1.0", {"status": "PASS"})
    rig.orc("approve", "plans", "1.1")
    assert rig.orc("resume", "plans").code == 0
    assert "Changed by the supervisor: keep the old one" in rig.prompt("task-executor.1.1.1")


def test_a_pause_stops_and_resume_goes_on_in_the_same_iteration(rig: PhasesRig) -> None:
    rig.hold("task-executor", "1.1")
    running = rig.start_phases("--yes", "--run-id", "rests")
    wait_until(lambda: rig.started("task-executor"))
    assert rig.orc("pause", "rests", "--now").code == 0
    assert running.end().code == 130
    assert "Paused: asked to pause" in rig.state()["safety_bounds"]["warnings"]
    rig.open("go")
    assert rig.orc("resume", "rests").code == 0
    assert rig.state()["completed_tasks"][0]["iterations"] == 1


def test_no_file_answers_for_a_person_where_none_is_named(rig: PhasesRig) -> None:
    asked = rig.phases("--no-wait", "--run-id", "filed")
    assert (asked.code, "echo" in asked.out) == (4, False), asked
    file = rig.repo / ".agents" / "runs" / "filed" / "plan" / "answer.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text('{"approved": true}')
    assert rig.orc("resume", "filed", "--no-wait").code == 4
    assert rig.orc("approve", "filed", "--comments", "go on").code == 0
    assert rig.orc("resume", "filed", "--no-wait").code == 0
    assert "approved by " in rig.orc("history", "filed").out


def test_a_plan_is_not_executed_on_another_branch(rig: PhasesRig) -> None:
    assert rig.phases("--no-wait", "--run-id", "waits").code == 4
    rig.git("switch", "--quiet", "main")
    assert "phases/small-thing is not checked out (main is)" in rig.orc("phases", "status").out
    assert rig.orc("approve", "waits").code == 0
    assert rig.orc("resume", "waits").code == 3
    assert not rig.started("task-executor")


def test_a_branch_that_was_left_pauses_the_run_until_it_is_back(rig: PhasesRig) -> None:
    rig.do("task-executor.1.1", f"{WORKS}git switch --quiet main")
    paused = rig.phases("--yes", "--no-supervisor", "--run-id", "left")
    assert paused.code == 4, paused
    assert "instead of phases/small-thing" in paused.out
    before = rig.started("task-executor")
    refused = rig.orc("resume", "left")
    assert (refused.code, "go back to it first: git switch phases/small-thing" in refused.err) == (3, True), refused
    assert rig.started("task-executor") == before
    rig.git("switch", "--quiet", "phases/small-thing")
    assert rig.orc("resume", "left").code == 0
    assert rig.git("log", "-1", "--format=%s", "main") == "init"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("run", "missing.md"), "The task document"),
        (("run", "task.md"), "Nobody would work: give --agent, --agent-command or --rehearse."),
        (("run", "task.md", "--agent-command", "true", "--max-parallel", "0"), "--max-parallel is '0'"),
        (("run", "task.md", "--agent-command", "true", "--max-iterations", "many"), "maximum iterations per task is 'many'"),
        (("run", "task.md", "--agent-command", "true", "--max-cost", "ten"), "maximum cost is 'ten'"),
        (("run", "task.md", "--agent-command", "true", "--role", "cook=claude"), "--role is 'cook'"),
        (("plan", "."), "cannot be read"),
        (("status",), "There is no run of phases"),
        (("skip", "1.1"), "There is no run of phases"),
        (("new", "task.md"), "exists already"),
    ],
)
def test_what_cannot_be_is_refused_with_one_sentence(rig: PhasesRig, arguments: tuple[str, ...], said: str) -> None:
    refused = rig.ask("phases", *arguments)
    assert refused.code == 2
    assert said in refused.err
    assert len(refused.err.strip().splitlines()) == 1


def test_a_bad_document_is_refused_with_all_its_lines(rig: PhasesRig) -> None:
    text = FOUR_PHASES.replace("$10", "ten dollars").replace("Task 1.2", "Task 1.1")
    (rig.repo / "task.md").write_text(text)
    refused = rig.ask("phases", "plan", "task.md", "--json")
    assert refused.code == 2
    assert [problem["line"] for problem in refused.json["error"]["problems"]] == [19, 40, 44]


def test_a_document_with_a_byte_order_mark_is_read_and_a_pipe_is_not(rig: PhasesRig) -> None:
    (rig.repo / "task.md").write_bytes(b"\xef\xbb\xbf" + SMALL.encode())
    assert rig.orc("phases", "plan", "task.md").code == 0
    os.mkfifo(rig.repo / "pipe.md")
    refused = rig.orc("phases", "plan", "pipe.md")
    assert (refused.code, "is not a regular file" in refused.err) == (2, True), refused


def test_the_plan_shows_phases_criteria_bounds_and_what_runs_side_by_side(rig: PhasesRig) -> None:
    first = FOUR_PHASES.replace("- [ ] Written `test -f work-2.1`", "- [ ] Written `test -f work-2.1`\n**Files**: a")
    roles = "#### Task 2.2: Roles\n\n**Success Criteria**:\n- [ ] It is good"
    rig.write(first.replace(roles, f"{roles}\n**Files**: b"))
    facts = rig.ask("phases", "plan", "task.md", "--max-parallel", "2", "--json").json
    assert facts["phases"][1]["side_by_side"] == [["2.1", "2.2"]]
    assert facts["bounds"] == {"max_iterations_per_task": 5, "max_cost": "$10", "max_time": "2h"}
    shown = rig.ask("phases", "plan", "task.md", "--max-parallel", "2").out
    assert "side by side: 2.1, 2.2" in shown
    assert "Tidy `test ! -f untidy` (run: test ! -f untidy)" in shown


@pytest.mark.parametrize(
    ("given", "said", "facts"),
    [
        ([], "an agent that says nothing for 30m 00s is stopped (2h 00m if it is no known client)", [1800, 7200]),
        (["--idle-timeout", "5m"], "an agent that says nothing for 5m 00s is stopped\n", [300, 300]),
        (["--idle-timeout", "none"], "an agent may say nothing for ever", [None, None]),
    ],
)
def test_the_plan_shows_how_long_agents_may_be_silent(
    given: list[str], said: str, facts: list[int | None], rig: PhasesRig
) -> None:
    rig.write(FOUR_PHASES)
    assert f"silence: {said}" in rig.ask("phases", "plan", "task.md", *given).out
    told = rig.ask("phases", "plan", "task.md", *given, "--json").json["idle_timeout_s"]
    assert [told["clients"], told["programs"]] == facts


def test_new_writes_a_template_that_is_refused_until_it_is_filled_in(rig: PhasesRig) -> None:
    assert rig.ask("phases", "new", "fresh.md").code == 0
    refused = rig.ask("phases", "plan", "fresh.md")
    assert refused.code == 2
    assert "fresh.md:1: the template's example ‹a short name› is left in" in refused.err


def test_the_commands_for_all_runs_show_a_run_of_phases(rig: PhasesRig) -> None:
    assert rig.phases("--yes", "--run-id", "shown").code == 0
    assert "1.1" in rig.ask("status", "shown").out
    assert rig.ask("show", "shown", "--json").json["state"]["orchestrator"]["status"] == "completed"
    task = rig.ask("show", "shown", "1.1")
    assert (task.code, "step 1.1" in task.out, "i1.a1" in task.out) == (0, True, True), task
    assert rig.ask("show", "shown", "1.1", "--json").json["state"]["status"] == "COMPLETED"
    assert rig.ask("history", "shown").out.count("checkpoint-00") == 2
    assert rig.ask("watch", "shown").code == 0
    status = rig.ask("phases", "status").out
    assert "[x] 1.1 First, 1 iteration" in status
    assert "last checkpoint: checkpoint-002" in status


@pytest.mark.parametrize("file", [".claude/agent-state.json", ".claude/checkpoint-001.json", "task.md"])
def test_the_files_of_a_run_are_valid(rig: PhasesRig, file: str) -> None:
    assert rig.phases("--yes").code == 0
    done = rig.ask("validate", file)
    assert done.code == 0, done
    (rig.repo / "old.json").write_text('{"status": "executing", "current_step": 5, "total_steps": 10}')
    assert "Migration not automatic" in rig.ask("validate", "old.json").err


def test_logs_show_the_supervisor_before_and_after_and_the_newest_iteration_between(rig: PhasesRig) -> None:
    rig.do("supervisor", 'echo "looked at $STEP_ID.$ITERATION"; echo \'{"status": "PASS"}\' >"$REPORT_PATH"\n')
    rig.report("task-executor.1.1.1", {"status": "PARTIAL"}, also="echo first try")
    rig.do("task-executor.1.1.2", f"echo second try\n{WORKS}")
    assert rig.phases("--yes", "--run-id", "logged").code == 0
    shown = rig.orc("logs", "logged", "1.1").out.splitlines()
    assert shown == ["looked at 1.1.0", "second try", "looked at 1.1.2"]
    kinds = [launch["kind"] for launch in rig.orc("logs", "logged", "1.1", "--json").json["launches"]]
    assert kinds == ["pre_task", "execute", "criterion", "post_task"]


def test_git_at_another_checkpoint_than_the_state_is_pointed_out(rig: PhasesRig) -> None:
    third = "\n#### Task 1.3: Third\n\n**Success Criteria**:\n- [ ] It is good\n"
    rig.write(SMALL + third)
    rig.report("task-executor.1.3", {"status": "FAILED"})
    assert rig.phases("--yes", "--no-wait", "--run-id", "apart", "--max-iterations", "1").code == 4
    rig.git("reset", "--hard", "--quiet", rig.state()["checkpoints"][0]["git_sha"])
    resumed = rig.orc("resume", "apart", "--no-wait")
    assert "git is at checkpoint-001, the state at checkpoint-002; `orc rewind apart --to checkpoint-001`" in resumed.err
