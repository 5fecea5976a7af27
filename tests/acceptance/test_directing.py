"""pause, resume, abort, approve and reject, sent from another process than the one that drives."""

from __future__ import annotations

import json
import re
import shlex
import time
from pathlib import Path

import pytest

from agent_orchestrator.core.events import Aborted, Event, Paused
from agent_orchestrator.core.ids import RunId
from agent_orchestrator.core.inputs import Answer
from agent_orchestrator.engine.journal import Folded, encode_events
from agent_orchestrator.engine.process.folder import read_pid
from agent_orchestrator.runs.orchestrator import Orchestrator
from agent_orchestrator.runs.stop import abort_run
from agent_orchestrator.store.port import Append, StoredRun
from agent_orchestrator.surfaces.cli.direct import answer
from agent_orchestrator.surfaces.cli.drive import say_whole_time
from tests.acceptance.rig import HUMAN, ORC, Rig, is_alive, wait_until

LOOPING = HUMAN.replace("human_in_the_loop: true", "human_in_the_loop: true, loop_back_to: coding")


def _agent_pid(rig: Rig, run: str) -> int:
    (launch,) = (rig.repo / ".git" / "orc" / "launches" / run).glob("*~*")
    pid = read_pid(launch)
    assert pid is not None
    return pid


def test_approve_moves_a_run_that_another_process_drives(rig: Rig) -> None:
    rig.workflow(HUMAN)
    running = rig.start_run()
    running.wait_for("orc approve")
    approved = rig.ask("approve", "--comments", "fine", "--json")
    assert approved.code == 0, approved
    assert approved.json["taken"] is True
    assert running.end().code == 0
    twice = rig.ask("approve", approved.json["run_id"])
    assert (twice.code, "no step waits" in twice.err) == (2, True), twice


class Late(Orchestrator):
    """Looks for who drives a run, and finds nobody, a moment before somebody does."""

    looks = 0

    def owner(self, run: StoredRun) -> str | None:
        self.looks += 1
        return super().owner(run) if self.looks > 1 else None


def test_an_abort_reaches_whoever_began_to_drive_the_run_a_moment_ago(rig: Rig) -> None:
    rig.workflow(HUMAN)
    running = rig.start_run()
    running.wait_for("orc approve")
    with Late(str(rig.repo)) as orchestrator:
        (run,) = orchestrator.runs()
        sent = abort_run(orchestrator, run, "enough")
    assert sent.taken
    ended = running.end()
    assert (ended.code, "aborted: enough" in ended.out) == (1, True), ended


class Counting(Orchestrator):
    """Counts how often a journal is folded."""

    folds = 0

    def fold(self, run: StoredRun) -> Folded:
        self.folds += 1
        return super().fold(run)


def test_an_answer_folds_the_journal_once(rig: Rig) -> None:
    rig.workflow(HUMAN)
    assert rig.run("--no-wait", "--run-id", "waits").code == 4
    with Counting(str(rig.repo)) as orchestrator:
        assert answer(orchestrator, orchestrator.find("waits"), Answer(id="yes", approved=True), as_json=False) == 0
        assert orchestrator.folds == 1


def test_a_rejection_loops_back_with_its_comments_and_never_approves(rig: Rig) -> None:
    rig.workflow(LOOPING)
    running = rig.start_run()
    running.wait_for("orc approve")
    assert rig.ask("reject", "--comments", "not yet").code == 0
    wait_until(lambda: len(rig.launches("coding")) == 2)
    wait_until(lambda: running.said().count("orc approve") == 2)
    assert rig.ask("reject").code == 0, "a no needs no reason"
    wait_until(lambda: running.said().count("orc approve") == 3)
    assert rig.ask("approve").code == 0
    done = running.end()
    assert done.code == 0, done
    (feedback,) = (rig.repo / ".git" / "orc" / "launches" / done.run).glob("coding~i1.*/feedback.json")
    assert "not yet" in feedback.read_text()


def test_the_end_tells_the_time_of_the_whole_run_and_not_of_its_last_process(rig: Rig) -> None:
    rig.workflow(HUMAN)
    run = rig.run("--no-wait").run
    began = time.monotonic()
    rig.orc("approve")
    waited_s = time.monotonic() - began
    told = re.search(r"2/2 steps in (?:(\d+)m )?([\d.]+)s", rig.orc("resume", run).out)
    assert told is not None
    assert int(told[1] or 0) * 60 + float(told[2]) >= round(waited_s, 1)


@pytest.mark.parametrize(
    ("elapsed_s", "worked_s", "said"),
    [
        (42.0, 40.0, "42s"),
        (5.0, 0.5, "5.0s"),
        (7_500.0, 42.0, "2h 05m, 42s of it at work"),
        (100.0, 60.0, "1m 40s"),
    ],
)
def test_a_run_that_rested_for_long_says_how_long_it_worked(elapsed_s: float, worked_s: float, said: str) -> None:
    assert say_whole_time(elapsed_s, worked_s) == said


def test_a_rejected_step_without_a_way_back_is_told_why_when_it_is_tried_again(rig: Rig) -> None:
    rig.workflow(HUMAN)
    run = rig.run("--no-wait").run
    assert rig.ask("reject", "--comments", "name the risks").code == 0
    assert rig.orc("resume", run, "--no-wait").code == 1
    assert rig.orc("resume", run, "--no-wait").code == 4
    told = sorted((rig.repo / ".git" / "orc" / "launches" / run).glob("approval~*/feedback.json"))
    assert told
    assert "name the risks" in told[-1].read_text()


def test_an_answer_is_recorded_when_nobody_drives_and_used_by_resume(rig: Rig) -> None:
    rig.workflow(HUMAN)
    run = rig.run("--no-wait").run
    approved = rig.ask("approve")
    assert approved.code == 0, approved
    assert f"orc resume {run}" in approved.out
    twice = rig.ask("approve", run, "approval")
    assert (twice.code, "has an answer already" in twice.err) == (2, True), twice
    assert rig.orc("resume").code == 0
    assert rig.state(run)["steps"]["approval"]["status"] == "COMPLETED"


def test_an_answer_file_moves_a_run_that_is_resumed_without_waiting(rig: Rig) -> None:
    rig.workflow(HUMAN)
    run = rig.run("--no-wait").run
    assert rig.orc("resume", run, "--no-wait").code == 4
    Path(rig.state(run)["steps"]["approval"]["manual_input_path"]).write_text('{"approved": true}')
    done = rig.orc("resume", run, "--no-wait")
    assert done.code == 0, done
    assert rig.state(run)["steps"]["approval"]["status"] == "COMPLETED"


def test_no_wait_leaves_a_run_whose_gates_are_closed_and_goes_on_once_they_are_open(rig: Rig) -> None:
    rig.workflow("{name: gated, steps: [{id: release, agent: shell, prompt: release.sh, gates: [window]}]}")
    (rig.repo / "release.sh").write_text("true\n")
    left = rig.run("--no-wait", "--gate-state-file", "gates.json")
    assert left.code == 4, left
    assert f"waiting for gates: release (0 of 1 steps done). Continue with: orc resume {left.run}" in left.out
    (rig.repo / "gates.json").write_text('{"window": true}')
    done = rig.orc("resume", left.run, "--no-wait")
    assert done.code == 0, done


def test_when_several_steps_wait_the_next_command_has_to_name_one(rig: Rig) -> None:
    rig.workflow(HUMAN.replace("steps:\n", "steps:\n  - {id: other, agent: x, prompt: prompt.md, human_in_the_loop: true}\n"))
    left = rig.run("--no-wait")
    assert (left.code, f"answer with: orc approve {left.run} UNIT " in left.out) == (4, True), left


def test_a_pause_drains_and_resume_tells_the_driver_to_go_on(rig: Rig) -> None:
    rig.play({"planning": {"until": "go"}})
    running = rig.start_run()
    running.wait_for("planning  started")
    paused = rig.orc("pause", "--reason", "lunch")
    assert paused.code == 0, paused
    again = rig.orc("pause")
    assert (again.code, "paused already" in again.err) == (2, True), again
    resumed = rig.orc("resume")
    assert resumed.code == 0, resumed
    assert "continues" in resumed.out
    rig.open("go")
    assert running.end().code == 0
    assert len(rig.launches()) == 3


def test_a_drained_run_ends_its_driver_and_starts_nothing(rig: Rig) -> None:
    rig.play({"planning": {"until": "go"}})
    running = rig.start_run()
    running.wait_for("planning  started")
    assert rig.orc("pause").code == 0
    rig.open("go")
    done = running.end()
    assert done.code == 130, done
    assert [line.split()[1] for line in rig.launches()] == ["planning"]
    assert rig.state(done.run)["steps"]["planning"]["status"] == "COMPLETED"
    idle = rig.orc("pause")
    assert (idle.code, "is not running; continue with" in idle.out) == (0, True), idle
    assert rig.orc("resume").code == 0


def _undriven(rig: Rig) -> tuple[str, int]:
    """A run whose driver was killed while its agent works on, and that agent's pid."""
    rig.play({"planning": {"until": "never"}})
    running = rig.start_run()
    run = running.wait_for("planning  started").split()[1]
    wait_until(lambda: rig.launches("planning"))
    pid = _agent_pid(rig, run)
    running.process.kill()
    running.process.wait()
    return run, pid


def test_pause_now_stops_the_agent_also_when_nobody_drives(rig: Rig) -> None:
    run, pid = _undriven(rig)
    assert is_alive(pid)
    doctor = rig.orc("doctor")
    assert "1 agent is still running without orc (planning)" in doctor.out, doctor
    paused = rig.orc("pause", "--now")
    assert paused.code == 0, paused
    assert not is_alive(pid)
    assert rig.state(run)["steps"]["planning"]["status"] == "PENDING"


def test_abort_stops_everything_also_when_nobody_drives(rig: Rig) -> None:
    run, pid = _undriven(rig)
    aborted = rig.orc("abort", run, "--reason", "wrong branch", "--json")
    assert aborted.code == 0, aborted
    assert (aborted.json["status"], aborted.json["detail"]) == ("aborted", "wrong branch")
    assert not is_alive(pid)
    for command in (["abort", run], ["pause", run], ["resume", run], ["approve", run]):
        refused = rig.orc(*command)
        assert (refused.code, run in refused.err) == (2, True), refused


def _cut_short(rig: Rig, fact: Event) -> tuple[str, int]:
    """A run whose driver was killed when this was a fact, and before it had stopped the agent."""
    run, pid = _undriven(rig)
    with Orchestrator(str(rig.repo)) as orchestrator:
        last = orchestrator.fold(orchestrator.find(run))
        part = Append(run=RunId(run), expected_seq=last.seq, at_us=last.at_us, body=encode_events([fact]))
        owner = orchestrator.own(RunId(run))
        assert orchestrator.store.append([part]) == [None]
        owner.release()
    assert is_alive(pid)
    return run, pid


@pytest.mark.parametrize("command", ["resume", "abort"])
def test_an_abort_that_was_cut_short_is_ended_by_resume_and_by_abort(rig: Rig, command: str) -> None:
    run, pid = _cut_short(rig, Aborted(reason="wrong branch"))
    changed = rig.orc("resume", run, "--max-parallel", "2")
    assert (changed.code, "being aborted" in changed.err) == (2, True), changed
    ended = rig.orc(command, run, "--json")
    assert (ended.code, ended.json["status"]) == (1 if command == "resume" else 0, "aborted"), ended
    assert not is_alive(pid)


def test_a_stop_that_was_cut_short_is_carried_out_by_another_pause(rig: Rig) -> None:
    run, pid = _cut_short(rig, Paused(reason="lunch", now=True))
    paused = rig.orc("pause", run, "--now", "--json")
    assert (paused.code, paused.json["status"], paused.json["detail"]) == (0, "paused", "lunch"), paused
    assert not is_alive(pid)
    again = rig.orc("pause", run, "--now")
    assert (again.code, "paused already" in again.err) == (2, True), again


def test_abort_of_a_driven_run_ends_its_driver_with_1(rig: Rig) -> None:
    rig.play({"planning": {"until": "never"}})
    running = rig.start_run()
    running.wait_for("planning  started")
    aborted = rig.orc("abort")
    assert aborted.code == 0, aborted
    done = running.end()
    assert done.code == 1, done
    assert ": aborted (" in done.out


def test_abort_reaches_the_agents_of_an_orc_that_an_agent_started(rig: Rig) -> None:
    rig.play({"planning": {"until": "never"}})
    inner = [*ORC, "run", "--run-id", "inner", "--workflow", "workflow.yaml", "--wrapper", str(rig.side / "wrapper.py")]
    inner.append("--shared-tree")
    given = ("--run-id", "outer", "--workflow", "workflow.yaml", "--pass-env", "PYTHONPATH")
    running = rig.start("run", *given, "--agent-command", shlex.join(inner))
    wait_until(lambda: rig.launches("planning"))
    pid = _agent_pid(rig, "inner")
    assert is_alive(pid)
    assert rig.orc("abort", "outer").code == 0
    assert running.end().code == 1
    assert not is_alive(pid)


def test_resume_tries_failed_steps_again_and_takes_new_limits(rig: Rig) -> None:
    rig.play({"coding": {"exit": 1, "report": None}})
    run = rig.run("--max-attempts", "1").run
    again = rig.orc("resume", run, "--max-attempts", "2", "--json")
    assert again.code == 1, again
    assert len(rig.launches("coding")) == 3
    rig.play({})
    assert rig.orc("resume", run).code == 0
    over = rig.orc("resume", run)
    assert (over.code, "completed" in over.err) == (2, True), over


def test_an_edited_state_file_is_adopted_by_resume_and_nonsense_is_put_aside(rig: Rig) -> None:
    rig.play({"coding": {"exit": 1, "report": None}})
    run = rig.run("--max-attempts", "1").run
    file = rig.repo / ".agents" / "runs" / run / "run_state.json"
    document = json.loads(file.read_text())
    document["steps"]["coding"]["status"] = "BROKEN"
    file.write_text(json.dumps(document))
    refused = rig.orc("resume", run)
    assert refused.code == 2, refused
    assert "steps.coding.status" in refused.err
    assert list(file.parent.glob("run_state.json.edited-*"))
    document["steps"]["coding"]["status"] = "COMPLETED"
    file.write_text(json.dumps(document))
    asked = rig.orc("resume", run)
    assert asked.code == 4, asked
    assert 'steps.coding.status: "FAILED" -> "COMPLETED"' in asked.err
    assert (json.loads(file.read_text()), len(rig.launches("coding"))) == (document, 1), "nothing was touched"
    adopted = rig.orc("resume", run, "--adopt-edits")
    assert adopted.code == 0, adopted
    assert "was edited by hand" in adopted.err
    assert len(rig.launches("coding")) == 1


def test_edits_that_a_person_does_not_want_are_kept_aside(rig: Rig) -> None:
    rig.play({"coding": {"exit": 1, "report": None}})
    run = rig.run("--max-attempts", "1").run
    file = rig.repo / ".agents" / "runs" / run / "run_state.json"
    document = json.loads(file.read_text())
    document["steps"]["coding"]["status"] = "COMPLETED"
    file.write_text(json.dumps(document))
    rig.play({})
    done = rig.orc("resume", run, "--no-adopt-edits")
    assert (done.code, "left out and kept as" in done.err) == (0, True), done
    (aside,) = file.parent.glob("run_state.json.edited-*")
    assert json.loads(aside.read_text()) == document
    assert len(rig.launches("coding")) == 2


def test_a_person_at_the_terminal_is_asked_about_edits(rig: Rig) -> None:
    rig.play({"coding": {"exit": 1, "report": None}})
    run = rig.run("--max-attempts", "1").run
    file = rig.repo / ".agents" / "runs" / run / "run_state.json"
    document = json.loads(file.read_text())
    document["steps"]["coding"]["status"] = "COMPLETED"
    file.write_text(json.dumps(document))
    for typed, code in (("n", 4), ("y", 0)):
        assert rig.at_terminal("resume", run, typed=f"{typed}\n").code == code, typed
    assert len(rig.launches("coding")) == 1


def test_with_several_unfinished_runs_one_must_be_named(rig: Rig) -> None:
    rig.workflow(HUMAN)
    runs = [rig.run("--no-wait", "--shared-tree").run for _ in range(2)]
    refused = rig.ask("approve")
    assert refused.code == 2, refused
    assert all(run in refused.err for run in runs)
    assert rig.ask("approve", runs[0]).code == 0
