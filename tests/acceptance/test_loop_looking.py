"""The commands for all systems on loops, hand edits, pruning, and what the modes do."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.acceptance.loop_rig import LoopRig, loop_of
from tests.acceptance.rig import wait_until


@pytest.fixture
def rig(repo: Path) -> LoopRig:
    return LoopRig(repo)


def test_commands_for_all_runs_show_loops_too(rig: LoopRig) -> None:
    rig.do("touch done")
    loop = loop_of(rig.loop())
    for command in ("list", "status", "show", "history", "logs", "watch"):
        arguments = (command,) if command == "list" else (command, loop)
        shown = rig.ask(*arguments)
        assert shown.code == 0, shown
    assert rig.ask("show", loop, "loop").code == 0
    assert rig.ask("show", loop, "nothing").code == 2
    facts = rig.ask("list", "--json").json["runs"][0]
    assert (facts["system"], facts["state_file"]) == ("loop", str(rig.ralph / "loops" / loop / "state.json"))
    assert "iteration 1 met the criterion" in rig.ask("history", loop).out
    assert "working on 1" in rig.ask("loop", "logs", loop).out
    assert rig.ask("loop", "logs", loop, "--json").json["launches"][0]["kind"] == "agent"
    assert rig.ask("loop", "logs", loop, "--iteration", "7").code == 2
    assert rig.ask("validate", str(rig.ralph / "loops" / loop / "state.json")).code == 0
    assert json.loads(rig.ask("schema", "loop-state").out)["$id"] == "https://aiwg.io/schemas/ralph-loop-state/v2"
    assert "running" not in rig.ask("loop", "status", loop).out


def test_an_edited_configuration_is_adopted_on_resume_and_an_invalid_one_put_aside(rig: LoopRig) -> None:
    rig.do("echo $ITERATION > n")
    script = rig.side / "script.yaml"
    script.write_text("- {write: {n: one}, cost_usd: 1}\n")
    paused = rig.orc("loop", "run", "x", "--until", "false", "--rehearse", str(script), "--budget-usd", "0.5")
    loop = loop_of(paused)
    path = rig.ralph / "loops" / loop / "state.json"
    document = rig.state(loop)
    path.write_text(json.dumps({**document, "configuration": {**document["configuration"], "max_iterations": 0}}))
    refused = rig.orc("loop", "resume", loop, "--budget-usd", "9")
    assert refused.code == 2
    assert "configuration.max_iterations: must be a whole number" in refused.err
    path.write_text(json.dumps({**document, "configuration": {**document["configuration"], "max_iterations": 2}}))
    assert rig.orc("loop", "resume", loop, "--budget-usd", "9").code == 4
    adopted = rig.orc("loop", "resume", loop, "--budget-usd", "9", "--adopt-edits")
    assert adopted.code == 5, adopted
    assert rig.state(loop)["configuration"]["max_iterations"] == 2
    assert rig.state(loop)["error_context"]["error_message"].startswith("2 of 2 iterations")


def test_most_of_the_budget_spent_is_warned_of(rig: LoopRig) -> None:
    script = rig.side / "script.yaml"
    script.write_text("- {iteration: '5', write: {done: x}, cost_usd: 0.2}\n- {append: {n: more}, cost_usd: 0.2}\n")
    arguments = ("loop", "run", "x", "--until", "test -f done", "--rehearse", str(script))
    done = rig.orc(*arguments, "--budget-usd", "1")
    assert done.code == 0, done
    assert "80 % of the run's budget is spent ($0.80 of $1.00)" in done.out
    assert "all of the run's budget is spent ($1.00 of $1.00)" in done.out


def test_pruning_takes_the_refs_and_files_of_a_loop_unless_its_mode_keeps_them(rig: LoopRig) -> None:
    rig.do("touch done")
    plain = loop_of(rig.loop(task="plain"))
    (rig.repo / "done").unlink()
    logged = loop_of(rig.loop("--execution-mode", "logged", task="logged"))
    pruned = rig.orc("prune", "--older-than", "0", "--yes", "--json").json
    assert pruned["deleted"] == [plain]
    assert list(pruned["kept"]) == [logged]
    assert rig.git("for-each-ref", "--format=%(refname)", f"refs/orc/{plain}/") == ""
    assert rig.git("for-each-ref", "--format=%(refname)", f"refs/orc/{logged}/") != ""
    assert not (rig.ralph / "loops" / plain).exists()


def test_a_seeded_loop_hands_its_seed_on(rig: LoopRig) -> None:
    rig.do("echo $LOOP_SEED > seed; touch done")
    assert rig.loop("--execution-mode", "seeded", "--seed", "42").code == 0
    assert (rig.repo / "seed").read_text() == "42\n"


def test_nothing_of_a_loop_is_ever_committed_or_counted(rig: LoopRig) -> None:
    rig.do("git add -A; git -c user.name=a -c user.email=a@b commit -qm all; touch done")
    loop = loop_of(rig.loop())
    assert rig.git("ls-files", ".aiwg", ".agents") == ""
    assert rig.git("ls-tree", "-r", "--name-only", f"refs/orc/{loop}/1").split() == ["README.md", "done"]


def test_without_an_active_loop_the_last_one_is_shown_and_said_to_be_that(rig: LoopRig) -> None:
    assert "No loop is active" in rig.ask("loop", "status").err
    rig.loop(until="true", task="the first")
    last = loop_of(rig.loop(until="true", task="the second"))
    shown = rig.ask("loop", "status")
    assert (shown.code, f"loop {last}  completed" in shown.out) == (0, True), shown
    assert f"no loop is active; the last one was {last}" in shown.err
    assert rig.ask("loop", "status", last).err == ""
    assert rig.ask("loop", "status", "--json").json["run_id"] == last
    assert rig.ask("loop", "logs").code == 0
    assert "No loop is active" in rig.ask("loop", "pause").err


def test_the_output_of_an_agent_that_failed_is_shown_with_that_of_its_check(rig: LoopRig) -> None:
    rig.do("echo 'the disk is full'; exit 3")
    loop = loop_of(rig.loop("--max-iterations", "1", until="echo 'checked it'; false"))
    for command in (("logs", loop), ("loop", "logs", loop)):
        told = rig.ask(*command).out
        assert ("working on 1\nthe disk is full" in told, "checked it" in told) == (True, True), told


def test_a_loop_and_its_run_tell_one_count_of_tokens(rig: LoopRig) -> None:
    script = rig.side / "script.yaml"
    script.write_text("- {write: {done: x}, tokens: {input: 100, output: 20, cache_read: 3000, cache_write: 400}}\n")
    done = rig.orc("loop", "run", "x", "--until", "test -f done", "--rehearse", str(script))
    loop = loop_of(done)
    for told in (done.out, rig.ask("loop", "status", loop).out, rig.ask("show", loop).out):
        assert "3520 tokens" in told, told


def test_a_quiet_loop_that_is_detached_says_only_its_name(rig: LoopRig) -> None:
    rig.do("touch done")
    started = rig.loop("--detach", "--quiet")
    assert started.out == f"loop {loop_of(started)}\n"
    wait_until(lambda: rig.ask("loop", "status", loop_of(started), "--json").json["status"] == "completed")


def test_only_active_loops_are_listed_unless_all_are_asked_for(rig: LoopRig) -> None:
    assert "No loop is active" in rig.ask("loop", "list").out
    loop = loop_of(rig.loop(until="true"))
    assert loop not in rig.ask("loop", "list").out
    assert loop in rig.ask("loop", "list", "--all").out
    assert rig.ask("loop", "status", "ralph-nobody-00000000").code == 2
    assert rig.ask("loop", "nonsense").code == 2
