"""Single blows, each at a chosen moment: agents killed, an orchestrator frozen, an answer nobody took, files cleaned away."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from pathlib import Path

from agent_orchestrator.core.events import StopReason
from agent_orchestrator.core.who import Surface
from agent_orchestrator.engine.process.folder import read_pid
from agent_orchestrator.systems.workflow.events import AgentFinished, HumanJudged
from tests.crash.rig import Orc, Rig, wait_until

LINE = """
name: line
steps:
  - {id: one, agent: coder, prompt: prompt.md}
  - {id: two, agent: coder, prompt: prompt.md, needs: [one]}
"""
ASKING = LINE.replace("needs: [one]", "needs: [one], human_in_the_loop: true")


def at_work(rig: Rig, step: str) -> int:
    """The process id of the step's agent, once it works."""
    wait_until(lambda: rig.log("start", step) or all(orc.ended for orc in Orc.started))
    assert rig.log("start", step), Orc.started
    return int(rig.log("start", step)[-1][4])


def shim_of(rig: Rig, run: str, step: str) -> int:
    (launch,) = (rig.repo / ".git" / "orc" / "launches" / run).glob(f"{step}~*")
    pid = read_pid(launch)
    assert pid is not None
    return pid


def test_an_agent_that_lived_on_is_adopted_and_its_report_used(repo: Path) -> None:
    rig = Rig(repo, LINE)
    rig.hold("one")
    orc = rig.run("adopted")
    agent = at_work(rig, "one")
    orc.kill()
    resumed = rig.start("resume", "adopted")
    resumed.wait_for("run adopted")
    rig.let_go()
    assert resumed.end() == 0, resumed
    assert [line[4] for line in rig.log("end", "one")] == [str(agent)]
    state, _ = rig.fold("adopted")
    assert state.works["one"].summary.startswith("one of launch ")
    assert state.steps["one"].attempts == 1


def test_an_agent_that_ended_meanwhile_is_collected(repo: Path) -> None:
    rig = Rig(repo, LINE)
    rig.hold("one")
    orc = rig.run("collected")
    at_work(rig, "one")
    orc.kill()
    rig.let_go()
    wait_until(lambda: rig.log("end", "one") and not rig.living("collected"))
    resumed = rig.start("resume", "collected")
    assert resumed.end() == 0, resumed
    assert rig.starts() == {("one", "0"): 1, ("two", "0"): 1}
    assert rig.steps("collected")["one"]["attempts"] == 1


def test_an_agent_killed_with_its_shim_is_lost_and_tried_again(repo: Path) -> None:
    rig = Rig(repo, LINE)
    rig.hold("one")
    orc = rig.run("lost")
    agent = at_work(rig, "one")
    os.kill(shim_of(rig, "lost", "one"), signal.SIGKILL)
    os.kill(agent, signal.SIGKILL)
    rig.let_go()
    assert orc.end() == 0, orc
    _, events = rig.fold("lost")
    ends = [event for event in events if isinstance(event, AgentFinished) and event.step == "one"]
    assert [event.failure.kind.value if event.failure else None for event in ends] == ["lost", None]
    assert [line[3] for line in rig.log("start", "one")] == ["1", "2"]
    assert rig.living("lost") == []


def test_an_agent_killed_while_nobody_drives_is_lost_and_tried_again(repo: Path) -> None:
    rig = Rig(repo, LINE)
    rig.hold("one")
    orc = rig.run("alone")
    agent = at_work(rig, "one")
    orc.kill()
    os.kill(shim_of(rig, "alone", "one"), signal.SIGKILL)
    os.kill(agent, signal.SIGKILL)
    rig.let_go()
    resumed = rig.start("resume", "alone")
    assert resumed.end() == 0, resumed
    assert rig.starts() == {("one", "0"): 2, ("two", "0"): 1}
    assert rig.steps("alone")["one"]["attempts"] == 2


def test_a_frozen_orchestrator_keeps_its_run_and_goes_on_when_it_wakes(repo: Path) -> None:
    rig = Rig(repo, LINE)
    rig.hold("one")
    orc = rig.run("frozen")
    at_work(rig, "one")
    orc.signal(signal.SIGSTOP)
    second = rig.start("resume", "frozen")
    assert second.end() == 3, second
    assert "is already running in another process" in second.said
    rig.let_go()
    wait_until(lambda: rig.log("end", "one"))
    orc.signal(signal.SIGCONT)
    assert orc.end() == 0, orc
    assert rig.starts() == {("one", "0"): 1, ("two", "0"): 1}


def test_an_answer_that_the_killed_orchestrator_never_took_counts_once(repo: Path) -> None:
    rig = Rig(repo, ASKING)
    orc = rig.run("asked")
    orc.wait_for("orc approve")
    # A process frozen in the middle of a transaction keeps the store locked; one that has printed everything does not.
    wait_until(lambda: rig.steps("asked")["two"]["status"] == "WAITING_ON_HUMAN")
    orc.signal(signal.SIGSTOP)
    approve = rig.start("approve", "asked", "--comments", "fine")
    assert approve.end() == 0, approve
    assert "has not taken it yet" in approve.said
    orc.kill()
    again = rig.start("approve", "asked")
    assert again.end() == 2, again
    resumed = rig.start("resume", "asked")
    assert resumed.end() == 0, resumed
    _, events = rig.fold("asked")
    judged = [event for event in events if isinstance(event, HumanJudged)]
    assert [(one.step, one.approved, one.comments) for one in judged] == [("two", True, "fine")]
    assert [one.who.surface for one in judged if one.who is not None] == [Surface.CLI]


def test_git_clean_in_the_middle_of_a_run_changes_nothing(repo: Path) -> None:
    rig = Rig(repo, LINE)
    rig.hold("one")
    orc = rig.run("cleaned")
    at_work(rig, "one")
    wait_until(rig.state_file("cleaned").exists)
    subprocess.run(["git", "clean", "-fdxq"], cwd=repo, check=True)
    assert not (repo / ".agents").exists()
    rig.let_go()
    assert orc.end() == 0, orc
    assert {step["status"] for step in rig.steps("cleaned").values()} == {"COMPLETED"}
    assert rig.starts() == {("one", "0"): 1, ("two", "0"): 1}
    status = subprocess.run(["git", "status", "--porcelain"], cwd=repo, check=True, capture_output=True)
    assert status.stdout == b""


def test_a_deleted_run_directory_is_rebuilt_by_resume(repo: Path) -> None:
    rig = Rig(repo, LINE)
    rig.hold("one")
    orc = rig.run("deleted")
    at_work(rig, "one")
    orc.kill()
    shutil.rmtree(rig.state_file("deleted").parent)
    rig.let_go()
    resumed = rig.start("resume", "deleted")
    assert resumed.end() == 0, resumed
    assert {step["status"] for step in rig.steps("deleted").values()} == {"COMPLETED"}
    assert rig.starts() == {("one", "0"): 1, ("two", "0"): 1}


def test_resume_prints_a_completed_run_again_though_there_is_nothing_to_resume(repo: Path) -> None:
    rig = Rig(repo, LINE)
    assert rig.run("done").end() == 0
    shutil.rmtree(rig.state_file("done").parent)
    resumed = rig.start("resume", "done")
    assert resumed.end() == 2, resumed
    assert {step["status"] for step in rig.steps("done").values()} == {"COMPLETED"}


def test_a_run_whose_directory_was_deleted_makes_way_and_its_journal_is_kept(repo: Path) -> None:
    rig = Rig(repo, LINE)
    assert rig.run("again").end() == 0
    refused = rig.run("again")
    assert refused.end() == 2, refused
    shutil.rmtree(rig.state_file("again").parent)
    fresh = rig.run("again")
    assert fresh.end() == 0, fresh
    assert rig.starts() == {("one", "0"): 2, ("two", "0"): 2}
    assert [line[3] for line in rig.log()] == ["1"] * 4
    for run in ("again", "again~1"):
        state, _ = rig.fold(run)
        assert state.lifecycle.stop is StopReason.COMPLETED
