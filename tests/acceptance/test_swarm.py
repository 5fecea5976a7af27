"""`orc swarm dispatch` and `orc swarm run` from a person's side."""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
from pathlib import Path

import pytest

from tests.acceptance.rig import is_alive, wait_until
from tests.acceptance.swarm_rig import SwarmRig


@pytest.fixture
def rig(repo: Path) -> SwarmRig:
    return SwarmRig(repo)


def test_a_dispatch_waits_for_the_end_and_leaves_both_records(rig: SwarmRig) -> None:
    rig.do("""printf '{"status": "done", "reason": "the login works"}' >"$REPORT_PATH" """)
    result = rig.dispatch("bd-1", prompt="fix the login " + "x" * 300)
    assert (result.code, result.out.splitlines()[0]) == (0, "run bd-1")
    run, kept = rig.record("runs", "bd-1"), rig.record("attempts", "bd-1.1.run")
    assert run == kept
    assert run["prompt_full"] == "fix the login " + "x" * 300
    assert run["prompt"] == run["prompt_full"][:200]
    assert run["prompt_hash"] == hashlib.sha256(run["prompt_full"].encode()).hexdigest()
    assert (run["agent"], run["model"], run["repo"]) == ("claude", "sonnet", str(rig.repo))
    assert (run["status"], run["exit_code"], run["session_name"]) == ("done", 0, "agent-bd-1")
    result_record = rig.record("results", "bd-1")
    assert (result_record["reason"], result_record["will_retry"]) == ("the login works", False)
    assert (rig.repo / "state" / "SCHEMA.md").exists()
    assert rig.orc("swarm", "validate", "--all").code == 0
    assert rig.git("status", "--porcelain") == "", "what we write is not counted as a change"


def test_a_failed_attempt_is_retried_and_the_next_prompt_says_what_failed(rig: SwarmRig) -> None:
    rig.do("echo the compiler is missing >&2; exit 9", "bd-1", 1)
    result = rig.dispatch("bd-1")
    assert result.code == 0, result
    assert rig.tries() == [("bd-1", 1), ("bd-1", 2)]
    assert "the compiler is missing" not in rig.prompt("bd-1", 1)
    assert "Agent process exited with code 9: the compiler is missing" in rig.prompt("bd-1", 2)
    first = rig.record("attempts", "bd-1.1.result")
    assert (first["status"], first["will_retry"], first["exit_code"]) == ("failed", True, 9)
    assert rig.record("attempts", "bd-1.1.run")["failure_reason"] == "exit-9"
    assert (rig.record("runs", "bd-1")["attempt"], rig.record("results", "bd-1")["attempt"]) == (2, 2)
    assert rig.record("runs", "bd-1")["prompt_hash"] == rig.record("attempts", "bd-1.1.run")["prompt_hash"]


def test_the_result_of_a_failed_attempt_goes_when_the_next_one_starts(rig: SwarmRig) -> None:
    rig.do("exit 9", "bd-1", 1)
    rig.do("""while [ ! -e "$here/second" ]; do sleep 0.02; done""", "bd-1", 2)
    running = rig.start_dispatch("bd-1")
    running.wait_for("continues at")
    wait_until(lambda: rig.has("results", "bd-1") and rig.record("results", "bd-1")["will_retry"])
    assert rig.record("runs", "bd-1")["status"] == "failed"
    running.wait_for("started (attempt 2)")
    wait_until(lambda: rig.record("runs", "bd-1")["attempt"] == 2)
    assert rig.record("runs", "bd-1")["status"] == "running"
    assert not rig.has("results", "bd-1"), "it went before the next attempt was written down"
    rig.open("second")
    assert running.end().code == 0


def test_an_exhausted_bead_needs_force_or_a_retry_and_its_numbers_go_on(rig: SwarmRig) -> None:
    rig.do("exit 1")
    assert rig.dispatch("bd-1").code == 1
    refused = rig.dispatch("bd-1")
    assert refused.code == 2
    assert "failed after 2 attempts, its limit" in refused.err
    assert "--force" in refused.err
    assert rig.orc("swarm", "retry", "bd-1").code == 1
    assert rig.dispatch("bd-1", "--force").code == 1
    assert [attempt for _, attempt in rig.tries()] == [1, 2, 3, 4, 5, 6]
    assert rig.record("runs", "bd-1")["max_retries"] == 6
    assert len(list((rig.repo / "state" / "attempts").glob("*.run.json"))) == 6
    assert {run["run_id"] for run in rig.orc("list", "--json").json["runs"]} == {"bd-1", "bd-1~1"}


def test_a_bead_that_is_done_or_runs_is_refused_unless_forced(rig: SwarmRig) -> None:
    assert rig.dispatch("bd-1").code == 0
    refused = rig.dispatch("bd-1")
    assert (refused.code, "is done" in refused.err) == (2, True)
    rig.hold("bd-2")
    running = rig.start_dispatch("bd-2")
    wait_until(lambda: ("bd-2", 1) in rig.tries())
    refused = rig.dispatch("bd-2")
    assert (refused.code, "is running in run bd-2" in refused.err) == (2, True)
    rig.open("go")
    assert running.end().code == 0


def test_force_on_a_bead_that_runs_ends_its_agent_first(rig: SwarmRig) -> None:
    rig.hold("bd-1")
    running = rig.start_dispatch("bd-1")
    wait_until(lambda: rig.launches())
    pid = int(rig.launches()[0].split()[3])
    (rig.side / "hold.bd-1").unlink()
    forced = rig.dispatch("bd-1", "--force")
    assert forced.code == 0, forced
    assert running.end().code == 1
    assert not is_alive(pid)
    first = rig.record("attempts", "bd-1.1.run")
    assert (first["status"], first["failure_reason"], first["exit_code"]) == ("failed", "aborted", None)
    assert (rig.record("runs", "bd-1")["attempt"], rig.record("runs", "bd-1")["status"]) == (2, "done")


def test_a_second_live_bead_in_the_same_tree_is_refused_without_branch_or_force(rig: SwarmRig) -> None:
    rig.commit()
    rig.hold()
    first = rig.start_dispatch("bd-1")
    wait_until(lambda: ("bd-1", 1) in rig.tries())
    refused = rig.dispatch("bd-2")
    assert (refused.code, "Bead bd-1 (run bd-1) works in the same tree" in refused.err) == (2, True)
    assert "--branch" in refused.err
    second = rig.start_dispatch("bd-2", "--branch", "fix/two")
    third = rig.start_dispatch("bd-3", "--force")
    wait_until(lambda: len(rig.tries()) == 3)
    told = rig.prompt("bd-2") + rig.prompt("bd-3")
    assert "Other agents are at work on the same repository: " in told
    assert "bd-1" in told
    rig.open("go")
    assert [running.end().code for running in (first, second, third)] == [0, 0, 0]


def test_a_branch_gives_a_worktree_of_its_own(rig: SwarmRig) -> None:
    rig.commit()
    rig.do("echo two >two.txt; pwd")
    assert rig.dispatch("bd-2", "--branch", "fix/two").code == 0
    assert not (rig.repo / "two.txt").exists()
    assert "fix/two" in rig.git("worktree", "list")
    target = rig.git("branch", "--show-current")
    merged = rig.orc("swarm", "merge", "bd-2").out
    assert re.fullmatch(rf"merged bd-2: fix/two into {target} \([0-9a-f]{{12}}\); no check was run\n", merged)
    assert (rig.repo / "two.txt").read_text() == "two\n"
    assert "fix/two" not in rig.git("worktree", "list") + rig.git("branch")
    assert "Orc-Unit: bd-2" in rig.git("log", "-1", "--format=%B")


def test_a_timeout_is_recorded_as_one(rig: SwarmRig) -> None:
    rig.hold()
    result = rig.dispatch("bd-1", "--timeout", "0.5s", "--max-retries", "1")
    assert result.code == 124, result
    run = rig.record("runs", "bd-1")
    assert (run["status"], run["failure_reason"], run["exit_code"]) == ("timeout", "timeout-0.5s", 124)


def test_a_signal_an_invalid_report_and_a_reported_failure_have_their_reasons(rig: SwarmRig) -> None:
    scripts = {
        "bd-1": ("kill -9 $$", "signal-9"),
        "bd-2": ("""echo '{"status": "maybe"}' >"$REPORT_PATH" """, "report-invalid"),
        "bd-3": ("""echo '{"status": "failed", "reason": "no idea"}' >"$REPORT_PATH" """, "reported-failed"),
    }
    for bead, (script, reason) in scripts.items():
        rig.do(script, bead)
        assert rig.dispatch(bead, "--max-retries", "1").code == 1
        assert rig.record("runs", bead)["failure_reason"] == reason
    assert rig.record("results", "bd-3")["reason"] == "no idea"


def test_a_verification_that_fails_fails_the_attempt_and_is_told(rig: SwarmRig) -> None:
    rig.do("touch right", "bd-1", 2)
    result = rig.dispatch("bd-1", "--verify", "test -e right || { echo it is wrong; exit 3; }")
    assert result.code == 0, result
    first = rig.record("attempts", "bd-1.1.run")
    assert (first["status"], first["failure_reason"], first["exit_code"]) == ("failed", "verification-failed", 0)
    assert "it is wrong" in rig.prompt("bd-1", 2)
    assert rig.record("runs", "bd-1")["status"] == "done"


def test_templates_fill_in_strictly_and_are_recorded(rig: SwarmRig) -> None:
    assert rig.dispatch("bd-1", "bug-fix").code == 0
    run = rig.record("runs", "bd-1")
    assert run["template_name"] == "bug-fix"
    assert "Reproduce the fault first" in run["prompt_full"]
    assert "fix the bug" in run["prompt_full"]
    assert rig.record("results", "bd-1")["reason"] == "Completed: fix the bug", "what was asked for, not the template's head"
    own = rig.repo / "templates" / "mine.md"
    own.parent.mkdir()
    own.write_text("---\nverify: test -e made\n---\n{prompt} for {who}, bead {bead}: {{literally}}\n")
    missing = rig.dispatch("bd-2", "mine")
    assert (missing.code, "uses {who}, which has no value" in missing.err) == (2, True)
    unused = rig.dispatch("bd-2", "bug-fix", "--var", "who=ada")
    assert (unused.code, "has no {who}" in unused.err) == (2, True)
    rig.do("touch made", "bd-2", 2)
    assert rig.dispatch("bd-2", "mine", "--var", "who=ada").code == 0
    run = rig.record("runs", "bd-2")
    assert run["prompt_full"] == "fix the bug for ada, bead bd-2: {literally}\n"
    assert (run["template_name"], run["attempt"]) == ("mine", 2)


def test_detach_prints_the_id_and_goes_on_behind(rig: SwarmRig) -> None:
    rig.hold()
    result = rig.dispatch("bd-1", "--detach")
    assert (result.code, result.run) == (0, "bd-1")
    wait_until(lambda: rig.launches())
    assert rig.record("runs", "bd-1")["status"] == "running"
    rig.open("go")
    assert rig.orc("swarm", "watch", "bd-1").code == 0
    assert rig.record("results", "bd-1")["status"] == "done"


def test_a_file_of_beads_runs_in_dependency_order_by_priority(rig: SwarmRig) -> None:
    rig.beads(
        {"id": "late", "prompt": "x", "depends_on": ["first"]},
        {"id": "low", "prompt": "x", "priority": 4},
        {"id": "first", "prompt": "x", "priority": 0},
        {"id": "high", "prompt": "x", "priority": 1},
    )
    result = rig.swarm("--max-agents", "1")
    assert result.code == 0, result
    assert [bead for bead, _ in rig.tries()] == ["first", "high", "late", "low"]
    again = rig.swarm("--max-agents", "1")
    assert (again.code, "every bead of the file is done" in again.err) == (2, True)


def test_what_waits_for_a_failed_bead_never_starts_and_can_follow_later(rig: SwarmRig) -> None:
    rig.beads({"id": "a", "prompt": "x"}, {"id": "b", "prompt": "x", "depends_on": ["a"]})
    rig.do("exit 1", "a")
    result = rig.swarm("--max-agents", "2", "--stop-after-failures", "5")
    assert result.code == 1
    assert "1 bead never started" in result.out
    assert not rig.has("runs", "b")
    (rig.side / "do.a").unlink()
    retried = rig.orc("swarm", "retry", result.run)
    assert retried.code == 0, retried
    assert rig.tries() == [("a", 1), ("a", 2), ("a", 3), ("b", 1)]


def test_stop_after_failures_begins_no_other_bead(rig: SwarmRig) -> None:
    rig.beads(*({"id": f"b{number}", "prompt": "x", "max_retries": 1} for number in range(5)))
    rig.do("exit 1")
    result = rig.swarm("--max-agents", "1", "--stop-after-failures", "2")
    assert (result.code, len(rig.tries())) == (5, 2)


def test_beads_that_share_a_tree_are_worked_on_one_after_another(rig: SwarmRig) -> None:
    rig.commit()
    rig.beads(*({"id": f"b{number}", "prompt": "x"} for number in range(3)))
    rig.do("""ls "$here"/busy.* 2>/dev/null && exit 1; touch "$here/busy.$STEP_ID"; sleep 0.1; rm "$here/busy.$STEP_ID" """)
    result = rig.swarm("--max-agents", "3")
    assert result.code == 0, result
    assert "one after another" in result.err
    rig.do("pwd")
    apart = rig.swarm("--max-agents", "3", "--branch", "work", "--force")
    assert apart.code == 0, apart
    assert rig.git("branch", "--list", "work/*", "--format=%(refname:short)").split() == ["work/b0", "work/b1", "work/b2"]


def test_an_export_of_a_tracker_runs_only_what_is_ready(rig: SwarmRig) -> None:
    def issue(name: str, status: str = "open", *needs: tuple[str, str]) -> dict[str, object]:
        links = [{"issue_id": name, "depends_on_id": need, "type": kind, "created_by": "ada"} for need, kind in needs]
        more = {"dependencies": links} if links else {}
        return {
            "id": name,
            "title": f"Do {name}",
            "description": "all of it",
            "status": status,
            "priority": 1,
            "issue_type": "task",
            **more,
        }

    rig.beads(
        issue("bd-4", "open", ("bd-2", "blocks"), ("bd-1", "blocks")),
        issue("bd-1", "closed"),
        issue("bd-2", "open", ("bd-3", "related")),
        issue("bd-3", "in_progress"),
        issue("bd-3.1", "in_progress", ("bd-3", "parent-child")),
        issue("bd-5", "open", ("bd-3", "waits-for")),
        issue("bd-6", "open", ("bd-5", "parent-child")),
        issue("bd-7", "open", ("gone-1", "conditional-blocks")),
        {**issue("bd-8", "in_progress", ("bd-8.1", "blocks")), "issue_type": "epic"},
        issue("bd-8.1", "open", ("bd-8", "parent-child")),
    )
    tracker = rig.side / "bin" / "bd"
    tracker.parent.mkdir()
    tracker.write_text(f'#!/bin/sh\necho "$@" >>{rig.side}/bd.log\n[ "$2" != bd-4 ]\n')
    tracker.chmod(0o755)
    path = {"PATH": f"{tracker.parent}:{os.environ['PATH']}"}
    result = rig.orc(*rig.run_arguments("--max-agents", "4", "--bd-close"), env=path)
    assert result.code == 0, result
    assert sorted(bead for bead, _ in rig.tries()) == ["bd-2", "bd-4", "bd-8.1"], "the child, and never the epic"
    assert "bd-5 is held back: it waits for bd-3.1: it is in_progress" in result.err
    assert "bd-6 is held back: bd-5, which it is part of, waits for bd-3.1: it is in_progress" in result.err
    assert "bd-7 is held back: it waits for gone-1: it is not in the file" in result.err
    assert rig.prompt("bd-2").startswith("Do bd-2\n\n## Description\n\nall of it\n")
    assert sorted((rig.side / "bd.log").read_text().splitlines()) == [
        "close bd-2 --reason Completed: Do bd-2",
        "close bd-4 --reason Completed: Do bd-4",
        "close bd-8.1 --reason Completed: Do bd-8.1",
    ]
    assert "was not closed: `bd close` exited with code 1" in result.out


def test_a_workspace_may_be_anywhere_and_the_repository_elsewhere(rig: SwarmRig, tmp_path: Path) -> None:
    workspace, repo = tmp_path / "workspace", tmp_path / "elsewhere"
    workspace.mkdir()
    repo.mkdir()
    rig.do("pwd >here.txt")
    result = rig.orc(
        *("swarm", "dispatch", "bd-1", str(repo), "claude", "x", "--agent-command", str(rig.agent)),
        *("--workspace", str(workspace)),
    )
    assert result.code == 0, result
    assert (repo / "here.txt").read_text().strip() == str(repo)
    assert json.loads((workspace / "state" / "runs" / "bd-1.json").read_text())["repo"] == str(repo)
    assert sorted(file.name for file in repo.iterdir()) == ["here.txt"]
    assert not (rig.repo / "state").exists()


def test_status_logs_and_show_tell_about_a_bead(rig: SwarmRig) -> None:
    rig.do("exit 3")
    rig.dispatch("bd-1", "--max-retries", "1")
    status = rig.orc("swarm", "status", "bd-1", "--json").json
    assert (status["run_id"], status["beads"][0]["standing"], status["beads"][0]["failure_reason"]) == (
        "bd-1",
        "failed",
        "exit-3",
    )
    assert "bd-1  failed  1/1  claude:sonnet" in rig.orc("swarm", "status").out
    assert rig.orc("swarm", "logs", "bd-1").out == "working on bd-1\n"
    assert "step bd-1" in rig.orc("show", "bd-1", "bd-1").out
    assert rig.orc("show", "bd-1", "--json").json["details"]["steps"]["bd-1"]["launches"][0]["exit_code"] == 3
    assert "bd-1" in rig.orc("status", "bd-1").out
    assert rig.orc("swarm", "attach", "bd-1").out == "working on bd-1\n"
    assert rig.orc("swarm", "attach", "bd-1", "--json").json["session"] is None
    assert "attempt 1" in rig.orc("history", "bd-1").out


def test_prune_keeps_the_records_of_beads(rig: SwarmRig) -> None:
    rig.dispatch("bd-1")
    rig.dispatch("bd-2")
    assert rig.orc("prune", "--older-than", "0", "--yes").code == 0
    assert rig.orc("list", "--json").json["runs"] == []
    assert rig.record("runs", "bd-1")["status"] == "done"
    refused = rig.dispatch("bd-1")
    assert (refused.code, "is done by its records" in refused.err) == (2, True)
    assert rig.dispatch("bd-1", "--force").code == 0
    assert rig.record("runs", "bd-1")["attempt"] == 2


def test_a_budget_holds_a_bead_and_a_larger_one_lets_the_same_attempt_go_on(rig: SwarmRig) -> None:
    refused = rig.dispatch("bd-1", "--budget-usd", "1")
    assert (refused.code, "claude does not say what it costs" in refused.err) == (2, True)
    rig.hold()
    stopped = rig.dispatch("bd-1", "--max-time", "0.5s")
    assert stopped.code == 5, stopped
    run = rig.record("runs", "bd-1")
    assert (run["status"], run["failure_reason"], run["attempt"]) == ("failed", "budget-exhausted", 1)
    assert not rig.has("results", "bd-1")
    rig.open("go")
    resumed = rig.orc("resume", "bd-1", "--max-time", "1h")
    assert resumed.code == 0, resumed
    assert (rig.record("runs", "bd-1")["status"], rig.tries()) == ("done", [("bd-1", 1), ("bd-1", 1)])


def test_a_bead_begins_with_the_results_of_those_it_depends_on(rig: SwarmRig) -> None:
    rig.do("echo one >one.txt; git add one.txt; git -c user.name=a -c user.email=a@b commit -qm one; echo more >more.txt", "a")
    rig.do("echo two >two.txt", "b")
    rig.do('test "$(cat one.txt more.txt two.txt | tr "\\n" " ")" = "one more two " && echo c >c.txt', "c")
    ready = ({"id": name, "prompt": "x"} for name in "ab")
    rig.beads(*ready, {"id": "c", "prompt": "x", "depends_on": ["a", "b"]})
    done = rig.swarm("--max-agents", "1", "--branch", "work")
    assert done.code == 0, done
    told = subprocess.run(
        ["git", "ls-tree", "-r", "--name-only", "work/b"], cwd=rig.repo, capture_output=True, text=True, check=True
    )
    assert "two.txt" in told.stdout, "what an agent did not commit is on its branch"
    rig.beads({"id": "b", "prompt": "x"}, {"id": "d", "prompt": "x", "depends_on": ["b"]})
    rig.do("cat two.txt", "d")
    assert rig.swarm("--max-agents", "1", "--branch", "work").code == 0, "also where it was done by an earlier run"


def test_results_that_conflict_are_left_to_a_person(rig: SwarmRig) -> None:
    for bead in ("a", "b"):
        rig.do(f"echo {bead} >same.txt", bead)
    ready = ({"id": name, "prompt": "x"} for name in "ab")
    rig.beads(*ready, {"id": "c", "prompt": "x", "depends_on": ["a", "b"]})
    done = rig.swarm("--max-agents", "1", "--branch", "work")
    assert done.code == 1, done
    assert "work/c would begin with work/b and work/a, and both changed same.txt; merge them, then try again" in done.out
    assert rig.orc("swarm", "merge", "a", "--into", "main").code == 0
    subprocess.run(["git", "merge", "-q", "-X", "ours", "-m", "both", "work/b"], cwd=rig.repo, check=True)
    rig.do('test "$(cat same.txt)" = a', "c")
    assert rig.orc("swarm", "retry", "c").code == 0
