"""`orc loop run`: real programs as agents, every file, every way a loop ends."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema_rs
import pytest

import agent_orchestrator.systems.loop as package
from tests.acceptance.loop_rig import LoopRig, loop_of

SUITE = """
import unittest, calc
class Calc(unittest.TestCase):
    def test_one(self): self.assertEqual(calc.f(1), 2)
    def test_two(self): self.assertEqual(calc.f(2), 4)
    def test_three(self): self.assertEqual(calc.f(3), 9)
"""
UNITTEST = "python3 -B -m unittest -q test_calc"


@pytest.fixture
def rig(repo: Path) -> LoopRig:
    return LoopRig(repo)


def with_suite(rig: LoopRig) -> None:
    (rig.repo / "test_calc.py").write_text(SUITE)
    (rig.repo / "calc.py").write_text("def f(x): return 0\n")
    rig.git("add", "--all")
    rig.git("commit", "--quiet", "--message", "A suite that fails")
    rig.do("echo 'def f(x): return {1: 2}.get(x)' > calc.py", 1)
    rig.do("echo 'def f(x): return {1: 2, 2: 4}.get(x)' > calc.py", 2)
    report = '{"status": "whatever", "summary": "the last one", "learnings": [{"type": "fact", "lesson": "nine"}]}'
    rig.do(f"echo 'def f(x): return {{1: 2, 2: 4, 3: 9}}.get(x)' > calc.py; echo '{report}' > $REPORT_PATH", 3)


def check_schema(document: object) -> None:
    schema = json.loads((Path(package.__file__).parent / "schema" / "loop_state.schema.json").read_text("utf-8"))
    faults = [error.message for error in jsonschema_rs.validator_for(schema).iter_errors(document)]
    assert not faults, faults


def test_a_failing_suite_passes_after_three_iterations_and_every_file_is_where_the_seed_says(rig: LoopRig) -> None:
    with_suite(rig)
    done = rig.loop(task="fix the failing tests", until=UNITTEST)
    assert done.code == 0, done
    loop = loop_of(done)
    assert loop.startswith("ralph-fix-the-failing-tests-")
    state = rig.state(loop)
    check_schema(state)
    assert (state["status"], state["iteration"], state["pid"]) == ("completed", 3, None)
    assert state["last_checkpoint"] == f".aiwg/ralph/loops/{loop}/checkpoints/iteration-003.json.gz"
    assert (rig.repo / state["last_checkpoint"]).is_file()
    assert [check["passed"] for check in state["progress"]["completion_checks"]] == [False, False, False, True, True]
    assert rig.checkpoint(loop, 3)["state"]["iteration"] == {"current": 3, "max": 200, "failures": 0}
    scores = [one["quality_score"] for one in rig.analytics(loop)["iterations"]]
    assert scores == [33.3, 66.7, 100.0]
    assert rig.registry()["active_loops"] == []
    assert "changed since the start: 1 file (M calc.py)" in done.out
    assert rig.git("status", "--porcelain") == "M calc.py"
    assert [line.split()[1] for line in rig.launches()] == ["1", "2", "3"]


def test_a_new_loop_is_told_what_earlier_ones_learned(rig: LoopRig) -> None:
    report = '{"status": "ok", "learnings": [{"type": "fact", "lesson": "use LC_ALL=C"}, {"type": "fact", "lesson": "no net"}]}'
    rig.do(f"touch done; echo '{report}' > $REPORT_PATH")
    first = loop_of(rig.loop())
    for most, told in (("20", "- no net\n- use LC_ALL=C\n"), ("1", "- no net\n\n")):
        (rig.repo / "done").unlink()
        assert f"Learned by earlier loops here\n\n{told}" in rig.prompt(loop_of(rig.loop("--memory", most)), 1)
    assert "Learned" not in rig.prompt(first, 1)
    assert "from 0 to 50" in rig.loop("--memory", "51").err


def test_the_third_prompt_has_the_task_what_was_tried_the_last_output_and_the_diff(rig: LoopRig) -> None:
    with_suite(rig)
    loop = loop_of(rig.loop(task="fix the failing tests,\nall of them", until=UNITTEST))
    prompt = rig.prompt(loop, 3)
    assert "fix the failing tests,\nall of them" in prompt
    assert "- iteration 2 (the check failed: FAILED (failures=1)" in prompt
    assert "AssertionError: None != 9" in prompt
    assert "+def f(x): return {1: 2, 2: 4}.get(x)" in prompt
    assert len(prompt) < 60_000


def test_a_check_that_passes_before_the_first_iteration_completes_at_once_and_says_so(rig: LoopRig) -> None:
    done = rig.loop(until="true")
    assert done.code == 0, done
    assert "the check passed before the first iteration" in done.out
    assert rig.state(loop_of(done))["iteration"] == 0
    assert rig.launches() == []


def test_an_agent_that_says_done_ends_nothing(rig: LoopRig) -> None:
    rig.do("""echo $ITERATION > n; echo '{"status": "DONE", "done": true, "quality_score": 100}' > $REPORT_PATH""")
    done = rig.loop("--max-iterations", "2")
    assert done.code == 5, done
    state = rig.state(loop_of(done))
    assert (state["status"], state["iteration"]) == ("failed", 2)
    assert state["error_context"]["error_message"].startswith("2 of 2 iterations were made")


def test_the_limit_reached_on_the_very_iteration_that_passes_is_completed(rig: LoopRig) -> None:
    rig.do("echo $ITERATION > n")
    rig.do("touch done", 2)
    done = rig.loop("--max-iterations", "2")
    assert done.code == 0, done
    assert rig.state(loop_of(done))["status"] == "completed"


def test_a_criterion_that_passes_once_and_fails_twice_when_verified_fails_the_loop(rig: LoopRig) -> None:
    rig.do("touch ../side/once")
    done = rig.loop(until="rm ../side/once", task="flaky")
    assert done.code == 1, done
    state = rig.state(loop_of(done))
    assert state["status"] == "failed"
    assert "failed twice when the loop was completing" in state["error_context"]["error_message"]
    passed = [check["passed"] for check in state["progress"]["completion_checks"]]
    assert passed == [False, True, False, False]


def test_auto_test_runs_the_test_command_before_completing(rig: LoopRig) -> None:
    rig.do("touch done")
    failed = rig.loop("--test-command", "echo tests >> ../side/tests; false")
    assert failed.code == 1, failed
    assert (rig.side / "tests").read_text() == "tests\ntests\n"
    (rig.repo / "done").unlink()
    without = rig.loop("--test-command", "false", "--no-auto-test")
    assert without.code == 0, without


def test_fewer_tests_are_pointed_out_and_do_not_complete_unless_allowed(rig: LoopRig) -> None:
    with_suite(rig)
    weaker = "import unittest, calc\nclass Calc(unittest.TestCase):\n    def test_none(self): pass\n"
    for number in (1, 2, 3):
        rig.do(f"printf '{weaker}' > test_calc.py; echo $ITERATION > n".replace("\n", "\\n"), number)
    done = rig.loop("--max-iterations", "2", until=UNITTEST)
    assert done.code == 5, done
    loop = loop_of(done)
    assert "1 test ran where 3 ran before" in rig.state(loop)["error_context"]["error_message"]
    assert "1 test ran where 3 ran before" in rig.prompt(loop, 2)
    rig.git("checkout", "--quiet", ".")
    allowed = rig.loop("--allow-fewer-tests", until=UNITTEST)
    assert allowed.code == 0, allowed


def test_a_changed_protected_file_does_not_complete(rig: LoopRig) -> None:
    rig.do("touch done; echo more >> README.md")
    done = rig.loop("--protect", "README.md", "--max-iterations", "1")
    assert done.code == 5, done
    assert "protected files were changed: README.md" in done.out


def test_a_loop_that_changes_nothing_is_steered_then_stopped_with_its_evidence(rig: LoopRig) -> None:
    rig.do(":")
    done = rig.loop()
    assert done.code == 1, done
    loop = loop_of(done)
    assert "stuck" in done.out
    assert rig.state(loop)["iteration"] == 3
    assert "iteration 3 changed nothing" in rig.state(loop)["error_context"]["error_message"]
    assert "you seem to be stuck" in rig.prompt(loop, 2)


def test_the_same_error_three_times_is_told_to_the_agent(rig: LoopRig) -> None:
    rig.do("echo $ITERATION > n")
    done = rig.loop("--max-iterations", "4", until="echo it is broken; test -f done")
    assert "the same error 3 times: it is broken" in rig.prompt(loop_of(done), 4)


def test_an_agent_that_cannot_start_fails_the_loop_at_once(rig: LoopRig) -> None:
    (rig.repo / "agent").write_text("#!/no/such/interpreter\n")
    (rig.repo / "agent").chmod(0o755)
    done = rig.orc("loop", "run", "x", "--until", "false", "--agent-command", "./agent")
    assert done.code == 1, done
    assert rig.state(loop_of(done))["status"] == "failed"


def test_a_failing_agent_is_a_failed_iteration_and_the_check_still_speaks(rig: LoopRig) -> None:
    rig.do("touch done; exit 3")
    done = rig.loop()
    assert done.code == 0, done
    assert rig.state(loop_of(done))["metrics"]["failed_iterations"] == 1


def test_the_budget_pauses_the_loop_and_a_higher_one_lets_it_go_on(rig: LoopRig) -> None:
    script = rig.side / "script.yaml"
    script.write_text(
        "- {iteration: '1', write: {n: one}, cost_usd: 0.6, tokens: {input: 10, output: 5}}\n"
        "- {iteration: '2', write: {done: 'yes'}, cost_usd: 0.6}\n"
    )
    arguments = ("loop", "run", "x", "--until", "test -f done", "--rehearse", str(script))
    first = rig.orc(*arguments, "--budget-usd", "0.5")
    assert first.code == 5, first
    loop = loop_of(first)
    state = rig.state(loop)
    assert (state["status"], state["metrics"]["total_cost_usd"], state["metrics"]["total_tokens"]) == ("paused", 0.6, 15)
    unraised = rig.orc("loop", "resume", loop)
    assert unraised.code == 5
    assert f"raise it with: orc resume {loop} --budget-usd N" in unraised.out
    again = rig.orc("loop", "resume", loop, "--budget-usd", "$5", "--detach")
    assert again.code == 0, again
    assert rig.orc("loop", "attach", loop).code == 0
    assert rig.state(loop)["iteration"] == 2


def test_a_budget_is_refused_for_an_agent_that_does_not_say_its_cost(rig: LoopRig) -> None:
    refused = rig.loop("--budget-usd", "5")
    assert refused.code == 2
    assert "unknown is not zero" in refused.err


def test_an_iteration_that_takes_too_long_is_a_failed_one(rig: LoopRig) -> None:
    script = rig.side / "script.yaml"
    script.write_text("- {hang: true}\n")
    spec = ("loop", "run", "x", "--until", "false", "--rehearse", str(script), "--iteration-timeout", "1s")
    done = rig.orc(*spec, "--max-iterations", "1")
    assert done.code == 5, done
    assert "Timed out after 1 s" in done.out
    assert rig.state(loop_of(done))["metrics"]["failed_iterations"] == 1


def test_without_git_the_loop_works_and_says_that_there_are_no_diffs(tmp_path: Path) -> None:
    plain = tmp_path / "plain"
    plain.mkdir()
    rig = LoopRig(plain)
    rig.do("touch done", 2)
    done = rig.loop()
    assert done.code == 0, done
    assert "the working tree is not in a git repository" in done.out
    assert rig.state(loop_of(done))["iteration"] == 2


def test_an_agent_of_the_configuration_file_works_in_a_loop(rig: LoopRig) -> None:
    rig.do("touch done")
    (rig.repo / ".orc.toml").write_text(f'[agents.mine]\ncommand = ["{rig.agent}"]\n')
    done = rig.orc("loop", "run", "x", "--until", "test -f done", "--agent", "mine")
    assert done.code == 0, done
    assert len(rig.launches()) == 1
