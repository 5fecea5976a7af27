"""The commands that only look: list, status, show, logs, watch, history. None of them changes anything."""

from __future__ import annotations

import json
import re

import pytest

from tests.acceptance.rig import HUMAN, Rig, wait_until


@pytest.fixture
def ended(rig: Rig) -> str:
    """A run that looped back once and failed in the end."""
    rig.play(
        {
            "planning": {"report": {"artifacts": ["PLAN.md"], "metrics": {"points": 3}, "logs": ["Created the plan"]}},
            "code_review@0": {"report": {"gate_failure": "found P0 issues"}},
            "code_review": {"exit": 2, "report": None},
        }
    )
    done = rig.run("--max-attempts", "1")
    assert done.code == 1, done
    return done.run


def test_without_a_name_the_newest_run_is_looked_at_when_all_are_finished(rig: Rig, ended: str) -> None:
    rig.play({})
    newest = rig.run().run
    assert newest != ended
    for command in ("show", "diff"):
        assert rig.ask(command, "--json").json["run_id"] == newest
    for command in ("history", "logs"):
        assert rig.ask(command).out == rig.ask(command, newest).out != rig.ask(command, ended).out
    refused = rig.ask("abort")
    assert (refused.code, "no unfinished run" in refused.err) == (2, True), refused
    rig.workflow(HUMAN)
    waiting = rig.run("--no-wait", "--shared-tree").run
    assert rig.ask("show", "--json").json["run_id"] == waiting


def test_list_and_status_are_tables_that_fit_80_columns(rig: Rig, ended: str) -> None:
    rig.workflow(f"name: {'long' * 30}\nsteps: [{{id: {'step' * 20}, agent: coder, prompt: prompt.md}}]")
    assert rig.run().code == 0
    for command in (["list"], ["status"], ["status", ended], ["show", ended]):
        shown = rig.ask(*command)
        assert shown.code == 0, shown
        assert ended in shown.out
        assert max(len(line) for line in shown.out.splitlines() if "state:" not in line) <= 80, shown
    newest, oldest = rig.ask("list", "--json").json["runs"]
    assert (oldest["run_id"], oldest["status"], oldest["done"], oldest["total"], oldest["failed"]) == (ended, "failed", 2, 3, 1)
    assert newest["status"] == "completed"
    assert len(rig.ask("list", "--limit", "1", "--json").json["runs"]) == 1


def test_status_puts_unfinished_runs_first_and_says_who_drives_them(rig: Rig) -> None:
    rig.workflow(HUMAN)
    waiting = rig.run("--no-wait").run
    rig.workflow("name: later\nsteps: [{id: one, agent: coder, prompt: prompt.md}]")
    later = rig.run("--shared-tree").run
    status = rig.ask("status")
    assert [line.split()[0] for line in status.out.splitlines()] == ["RUN", waiting, later], status
    assert f"not running: orc resume {waiting}" in status.out
    one = rig.ask("status", waiting[:4])
    assert f"approval is waiting for an answer: orc approve {waiting} approval" in one.out
    steps = {step["id"]: step for step in rig.ask("status", waiting, "--json").json["steps"]}
    assert (steps["approval"]["status"], steps["approval"]["waits_for"]) == ("WAITING_ON_HUMAN", "a person")


def test_show_has_the_state_document_and_what_it_does_not_carry(rig: Rig, ended: str) -> None:
    shown = rig.ask("show", ended, "--json").json
    assert shown["state"] == rig.state(ended)
    assert shown["details"]["steps"]["code_review"]["feedback"][0]["error"] == "Gate failure: found P0 issues"
    assert [launch["exit_code"] for launch in shown["details"]["steps"]["coding"]["launches"]] == [0, 0]
    assert shown["usage"] == []
    step = rig.ask("show", ended, "planning")
    for said in ("COMPLETED", "PLAN.md", "points = 3", "Created the plan", "i0.a1.l1.agent", "exit code 0"):
        assert said in step.out, step
    assert rig.ask("show", ended, "planning", "--json").json["state"]["artifacts"] == ["PLAN.md"]
    assert rig.ask("show", ended, "nowhere").code == 2


def test_logs_print_what_the_agents_wrote(rig: Rig, ended: str) -> None:
    assert rig.ask("logs", ended, "coding").out == "coding at work\n"
    assert rig.ask("logs", ended, "coding", "--err").out == "coding complains\n"
    every = rig.ask("logs", ended).out
    assert re.findall(r"^==> (\w+)", every, re.M) == ["planning", "coding", "code_review"]
    facts = rig.ask("logs", ended, "code_review", "--json").json["launches"]
    assert [(one["step"], one["iteration"], one["kind"], one["out"]) for one in facts] == [
        ("code_review", 1, "agent", "code_review at work\n")
    ]
    missing = rig.ask("logs", ended, "coding", "--attempt", "7")
    assert (missing.code, "no output" in missing.err) == (2, True), missing


def test_logs_print_the_newest_attempt_alone_after_a_failed_step_was_tried_again(rig: Rig, ended: str) -> None:
    assert rig.orc("resume", ended).code == 1
    assert rig.ask("logs", ended, "code_review").out == "code_review at work\n"
    (facts,) = rig.ask("logs", ended, "code_review", "--json").json["launches"]
    assert facts["effect"].endswith(".l4.agent")


def test_logs_leave_out_what_a_check_has_judged_before_the_step_was_tried_again(rig: Rig) -> None:
    (rig.repo / "do.sh").write_text("echo work\n")
    rig.workflow("{name: judged, steps: [{id: only, agent: shell, prompt: do.sh, check: 'echo no; false'}]}")
    run = rig.run().run
    assert rig.orc("resume", run).code == 1
    assert rig.ask("logs", run, "only").out == "work\nno\n"


def test_logs_of_a_script_around_a_client_are_its_transcript_and_raw_its_very_bytes(rig: Rig) -> None:
    used = {"id": "1", "type": "command_execution", "command": "make \x1b[2J", "aggregated_output": "xy", "status": "completed"}
    lines = [
        "a warning \x1b]0;title\x07above",
        json.dumps({"type": "thread.started", "thread_id": "t"}),
        json.dumps({"type": "item.completed", "item": used}),
        json.dumps({"type": "item.completed", "item": {"id": "2", "type": "agent_message", "text": "It is built."}}),
        '{"type": "turn.comp',
    ]
    (rig.repo / "stream").write_text("\n".join(lines))
    (rig.repo / "do.sh").write_text("cat stream\n")
    rig.workflow("{name: wrapped, steps: [{id: only, agent: shell, prompt: do.sh}]}")
    run = rig.run().run
    assert rig.ask("logs", run, "only").out.splitlines() == [
        *("a warning above", "session t", "● exec_command make · ok · 2 B", "", "It is built.", ""),
        *('? {"type": "turn.comp', "ended without a result"),
    ]
    assert rig.ask("logs", run, "only", "--raw").out == (rig.repo / "stream").read_text()


def test_a_watched_run_that_has_ended_was_updated_when_it_ended(rig: Rig, ended: str) -> None:
    watched = rig.ask("watch", ended, "--json").json
    assert watched["updated_at"] == rig.ask("status", ended, "--json").json["updated_at"] == rig.state(ended)["updated_at"]


def test_logs_follow_a_run_to_its_end(rig: Rig) -> None:
    rig.play({"coding": {"until": "go"}})
    running = rig.start_run()
    running.wait_for("coding    started")
    following = rig.start("logs", "--follow")
    following.wait_for("coding at work")
    rig.open("go")
    assert running.end().code == 0
    followed = following.end()
    assert followed.code == 0, followed
    assert re.findall(r"^(\w+) at work$", followed.out, re.M) == ["planning", "coding", "code_review"]


def test_watch_exits_with_the_code_of_the_run_and_says_when_nobody_drives_it(rig: Rig, ended: str) -> None:
    watched = rig.orc("watch", ended, "--json")
    assert (watched.code, watched.json["exit_code"], watched.json["status"]) == (1, 1, "failed"), watched
    rig.workflow(HUMAN)
    waiting = rig.run("--no-wait").run
    watching = rig.start("watch")
    watching.wait_for("approval")
    assert rig.ask("approve", waiting).code == 0
    assert rig.orc("resume", waiting).code == 0
    done = watching.end()
    assert done.code == 0, done
    assert "approval  approved by " in done.out
    assert f"nothing is running {waiting}" in done.err


def test_history_tells_every_fact_in_words_or_as_json_lines(rig: Rig, ended: str) -> None:
    told = rig.ask("history", ended)
    assert told.code == 0, told
    for said in ("workflow line, 3 steps", "resumed by process", "loops back to coding", "failed: code_review"):
        assert said in told.out, told
    lines = [json.loads(line) for line in rig.ask("history", ended, "--json").out.splitlines()]
    assert lines[0]["event"] == {"event": "run_began", "workflow": "line", "steps": 3}
    assert lines[-1]["event"]["event"] == "ended"
    assert [line["seq"] for line in lines] == sorted(line["seq"] for line in lines)
    assert len(lines) == len(told.out.splitlines())


def test_colour_and_control_characters_do_not_reach_a_pipe(rig: Rig) -> None:
    rig.play({"planning": {"report": {"status": "FAILED", "summary": "\x1b[31mred\x07"}}})
    failed = rig.run("--max-attempts", "1")
    for shown in (failed, rig.ask("status", failed.run), rig.ask("show", failed.run, "planning"), rig.ask("history", failed.run)):
        assert "\x1b" not in shown.out, shown
        assert "\x07" not in shown.out, shown


def test_looking_creates_nothing_where_there_are_no_runs(rig: Rig) -> None:
    before = sorted(rig.repo.rglob("*"))
    for command in (["list"], ["status"], ["list", "--json"]):
        assert rig.ask(*command).code == 0
    assert rig.ask("show", "abc").code == 2
    assert sorted(rig.repo.rglob("*")) == before


def test_a_run_may_be_named_by_the_start_of_its_id(rig: Rig) -> None:
    for run in ("abc-1", "abc-2"):
        assert rig.run("--run-id", run).code == 0
    wait_until(lambda: len(rig.launches()) == 6)
    assert rig.ask("show", "abc-2", "--json").json["run_id"] == "abc-2"
    both = rig.ask("show", "abc")
    assert (both.code, "abc-2, abc-1" in both.err) == (2, True), both
