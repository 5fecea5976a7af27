"""`orc` alone: what needs the person, what is going on, and help where there is nothing."""

from __future__ import annotations

from tests.acceptance.rig import HUMAN, Rig

PARALLEL = """
name: both
steps:
  - {id: slow, agent: coder, prompt: prompt.md}
  - {id: approval, agent: asker, prompt: prompt.md, human_in_the_loop: true}
"""


def test_orc_alone_is_the_help_where_there_are_no_runs(rig: Rig) -> None:
    shown = rig.orc()
    assert (shown.code, shown.err) == (0, "")
    assert shown.out == rig.orc("--help").out


def test_orc_alone_shows_what_needs_the_person_and_the_command_for_it(rig: Rig) -> None:
    assert rig.run("--run-id", "over").code == 0
    rig.workflow(HUMAN)
    assert rig.run("--no-wait", "--run-id", "waits").code == 4
    shown = rig.orc()
    assert shown.code == 0, shown
    lines = shown.out.splitlines()
    assert lines[0] == "Needs you"
    assert lines[2].split()[:3] == ["waits", "human", "1/2"]
    assert lines[2].endswith("orc resume waits  asks you: approval")
    ended = lines.index("Ended last")
    assert lines[ended + 2].split()[:4] == ["over", "line", "completed", "3/3"]
    assert "orc resume waits   look, then answer or continue" in shown.out


def test_a_run_that_asks_while_others_work_is_among_those_that_need_the_person(rig: Rig) -> None:
    rig.play({"slow": {"until": "go"}})
    rig.workflow(PARALLEL)
    driven = rig.start_run("--run-id", "both")
    driven.wait_for("approval  waiting for approval")
    shown = rig.orc()
    assert "Needs you" in shown.out
    assert "orc watch both" in shown.out
    assert "asks you: approval" in shown.out
    assert rig.orc("list", "--json").json["runs"][0]["asks"] == ["approval"]
    assert rig.orc("approve", "both").code == 0
    going = rig.orc().out
    assert going.startswith("Running\n")
    assert "orc watch both" in going
    rig.open("go")
    assert driven.end().code == 0


def test_a_run_that_nobody_drives_needs_the_person(rig: Rig) -> None:
    rig.play({"coding": {"until": "go"}})
    driven = rig.start_run("--run-id", "killed")
    driven.wait_for("coding    started")
    driven.process.kill()
    driven.process.wait()
    shown = rig.orc()
    assert "orc resume killed  not running" in shown.out
    rig.open("go")
    assert rig.orc("resume", "killed").code == 0
