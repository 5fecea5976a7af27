"""The scripted agent: its script, and the same play inside the engine and as a program."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from pathlib import Path

import pytest

from agent_orchestrator.agents.adapter import AgentTask, Verdict
from agent_orchestrator.agents.environment import build_environment
from agent_orchestrator.agents.script import load_script, parse_script
from agent_orchestrator.agents.scripted import ScriptedAgent
from agent_orchestrator.agents.verdict import judge
from agent_orchestrator.core.effects import AgentChoice
from agent_orchestrator.core.failure import FailureKind
from agent_orchestrator.core.inputs import Usage
from agent_orchestrator.errors import InvalidSpec, MissingPath
from agent_orchestrator.testing.agents import make_ending, make_task

AGENT = ScriptedAgent()


def task_of(folder: Path, script: str, *, required: bool = True) -> AgentTask:
    file = folder / "script.yaml"
    file.write_text(script)
    return make_task(folder, AgentChoice(name="scripted", options={"script": str(file)}), required=required)


def play_as_program(task: AgentTask) -> Verdict:
    ending = make_ending(task)
    env = {**build_environment(task), "PYTHONPATH": ":".join(sys.path)}
    argv = [sys.executable, "-m", "agent_orchestrator.agents.scripted", task.effect.agent.options["script"]]
    with ending.out.open("wb") as out, ending.err.open("wb") as err:
        done = subprocess.run(argv, env=env, cwd=task.workdir, stdout=out, stderr=err, check=False, timeout=60)
    return judge(task, make_ending(task, done.returncode))


def test_what_is_not_scripted_is_completed_at_once(tmp_path: Path) -> None:
    task = task_of(tmp_path, "- step: other\n  fail: never\n")
    assert AGENT.delay_s(task) == 0
    verdict = AGENT.act(task)
    assert verdict.failure is None
    assert verdict.report is not None
    assert verdict.report.status == "COMPLETED"
    assert AGENT.act(make_task(tmp_path, AgentChoice(name="scripted"))).failure is None


def test_the_first_rule_that_matches_plays(tmp_path: Path) -> None:
    script = """\
- {step: build, role: tester, fail: wrong role}
- {step: "bui*", iteration: 1, fail: wrong iteration}
- {step: "b?ild", iteration: 2, attempt: 3, report: {summary: this one}}
- {report: {summary: too late}}
"""
    verdict = AGENT.act(task_of(tmp_path, script))
    assert verdict.report is not None
    assert verdict.report.summary == "this one"


SCRIPTS = {
    "success": "- {write: {a.txt: one}, append: {log/b.txt: more}, delete: old.txt, say: done it, report: {artifacts: [a.txt]}}",
    "gate": "- gate_failure: found P0 issues",
    "fail": "- fail: it broke",
    "exit": "- {exit: 9, report: {status: COMPLETED}}",
    "reported": "- report: {status: FAILED, summary: no luck}",
    "missing": "- report: null",
    "malformed": "- malformed_report: '{\"status\": '",
    "foreign": "- report: {run_id: another}",
    "word": "- report: {status: WONDERFUL}",
}


@pytest.mark.parametrize("name", SCRIPTS)
def test_the_engine_and_a_program_play_the_same_script_alike(tmp_path: Path, name: str) -> None:
    verdicts = []
    for way in (AGENT.act, play_as_program):
        folder = tmp_path / way.__name__
        folder.mkdir()
        task = task_of(folder, SCRIPTS[name])
        (task.workdir / "old.txt").touch()
        verdict = way(task)
        failure = verdict.failure
        message = failure.message.replace(str(task.report), "its report") if failure is not None else None
        tree = {path.name: path.read_text() for path in task.workdir.rglob("*") if path.is_file()}
        verdicts.append((failure.kind if failure is not None else None, message, verdict.report, tree))
    assert verdicts[0] == verdicts[1]


def test_success_really_changes_the_tree_and_reports(tmp_path: Path) -> None:
    task = task_of(tmp_path, SCRIPTS["success"])
    (task.workdir / "old.txt").touch()
    verdict = AGENT.act(task)
    assert verdict.report is not None
    assert (verdict.report.artifacts, verdict.report.logs) == (("a.txt",), ("done it",))
    assert (task.workdir / "a.txt").read_text() == "one"
    assert (task.workdir / "log/b.txt").read_text() == "more"
    assert not (task.workdir / "old.txt").exists()


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("fail", FailureKind.EXIT),
        ("exit", FailureKind.EXIT),
        ("reported", FailureKind.REPORTED),
        ("missing", FailureKind.REPORT_MISSING),
        ("malformed", FailureKind.REPORT_INVALID),
        ("foreign", FailureKind.REPORT_INVALID),
        ("word", FailureKind.REPORT_INVALID),
    ],
)
def test_every_way_to_fail_has_its_kind(tmp_path: Path, name: str, kind: FailureKind) -> None:
    verdict = AGENT.act(task_of(tmp_path, SCRIPTS[name]))
    assert verdict.failure is not None
    assert verdict.failure.kind is kind


def test_a_program_says_its_say_and_its_failure(tmp_path: Path) -> None:
    task = task_of(tmp_path, "- {say: working on it, fail: it broke, exit: 4}")
    verdict = play_as_program(task)
    assert verdict.failure is not None
    assert verdict.failure.message == "Agent process exited with code 4: it broke"
    assert make_ending(task).out.read_text() == "working on it\n"


def test_time_cost_and_tokens_are_as_scripted(tmp_path: Path) -> None:
    task = task_of(tmp_path, "- {takes: 1m30s, cost_usd: 0.25, tokens: {input: 10, output: 2}}")
    assert AGENT.delay_s(task) == 90
    assert AGENT.act(task).usage == Usage(cost_usd=0.25, input_tokens=10, output_tokens=2)
    (tmp_path / "two").mkdir()
    assert AGENT.delay_s(task_of(tmp_path / "two", "- hang: true")) == math.inf


def test_a_link_does_not_lead_the_script_out_of_the_tree(tmp_path: Path) -> None:
    task = task_of(tmp_path, "- write: {way/out.txt: x}")
    outside = tmp_path / "outside"
    outside.mkdir()
    (task.workdir / "way").symlink_to(outside)
    verdict = AGENT.act(task)
    assert verdict.failure is not None
    assert verdict.failure.kind is FailureKind.SPEC
    assert not list(outside.iterdir())


def test_a_tree_that_cannot_be_written_is_a_failure_not_an_exception(tmp_path: Path) -> None:
    task = task_of(tmp_path, "- write: {file/below.txt: x}")
    (task.workdir / "file").touch()
    verdict = AGENT.act(task)
    assert verdict.failure is not None
    assert verdict.failure.kind is FailureKind.EXIT


def test_a_script_broken_during_the_run_fails_the_part(tmp_path: Path) -> None:
    task = task_of(tmp_path, "- nonsense: 1")
    assert AGENT.delay_s(task) == 0
    verdict = AGENT.act(task)
    assert verdict.failure is not None
    assert verdict.failure.kind is FailureKind.SPEC


def test_all_faults_of_a_script_are_told_with_their_lines() -> None:
    text = """\
- step: code
  writes: {a: b}
  takes: soon
- just a text
- write: {../out: x, /abs: y}
- {exit: 256, hang: 1, cost_usd: .nan}
- {step: a, step: b}
- {report: {}, malformed_report: x}
- {tokens: {inputs: 1}}
- {gate_failure: 3, delete: ".."}
"""
    with pytest.raises(InvalidSpec) as invalid:
        parse_script(text, "s.yaml")
    lines = [problem.line for problem in invalid.value.problems]
    assert lines == [2, 3, 4, 5, 6, 6, 6, 7, 8, 9, 10, 10]
    assert "s.yaml:2:3: unknown key 'writes'; a rule has: step, role" in str(invalid.value)


@pytest.mark.parametrize("text", ["a: b", "- [}", "- report: !!python/object:os.system {}", "just text", "- a: b: c"])
def test_what_is_no_list_of_rules_is_refused_with_a_place(text: str) -> None:
    with pytest.raises(InvalidSpec, match=r"s\.yaml:1:"):
        parse_script(text, "s.yaml")


def test_an_empty_script_has_no_rules() -> None:
    assert parse_script("", "s.yaml") == ()
    assert parse_script("# nothing\n", "s.yaml") == ()


def test_a_script_is_read_again_only_when_it_changed(tmp_path: Path) -> None:
    file = tmp_path / "s.yaml"
    file.write_text("- step: a\n")
    first = load_script(file)
    assert load_script(file) is first
    file.write_text("- step: another\n")
    assert load_script(file)[0].step == "another"
    with pytest.raises(MissingPath):
        load_script(tmp_path / "gone.yaml")


def test_preflight_refuses_a_bad_script(tmp_path: Path) -> None:
    with pytest.raises(InvalidSpec):
        AGENT.preflight(task_of(tmp_path, "- nonsense: 1").effect.agent)


def test_the_program_writes_its_report_where_it_was_told(tmp_path: Path) -> None:
    task = task_of(tmp_path, "- report: {summary: hello}")
    assert play_as_program(task).failure is None
    report = json.loads(task.report.read_text())
    assert (report["schema"], report["run_id"], report["step_id"], report["agent"]) == ("run_report@v0", "run1", "build", "coder")
