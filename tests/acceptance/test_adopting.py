"""A workflow file, or a task document, that was edited while its run rested: said when the run goes on, taken when asked to."""

from __future__ import annotations

import os
import signal
from pathlib import Path

from tests.acceptance.phases_rig import PhasesRig
from tests.acceptance.rig import Rig, wait_until

FLOW = """\
name: flow
steps:
  - {id: one, agent: worker, prompt: prompt.md}
  - {id: two, agent: worker, prompt: prompt.md, needs: [one]}
  - {id: three, agent: worker, prompt: prompt.md, needs: [two]}
"""
EDITED = """\
name: flow
steps:
  - {id: one, agent: worker, prompt: prompt.md, timeout: 5m}
  - {id: two, agent: worker, prompt: prompt.md, needs: [one], check: touch checked}
  - {id: four, agent: worker, prompt: prompt.md, needs: [two]}
"""
AGENT = """\
#!/bin/sh
cat >/dev/null
echo "$STEP_ID" >>"${0%/*}/did"
if [ -e "${0%/*}/hang.$STEP_ID" ]; then echo $$ >"${0%/*}/pid.$STEP_ID"; exec sleep 100; fi
[ ! -e "${0%/*}/fail.$STEP_ID" ]
"""


def begun(repo: Path) -> Rig:
    """A run that failed in its second step, its file edited since."""
    rig = Rig(repo)
    rig.workflow(FLOW)
    agent = rig.side / "agent.sh"
    agent.write_text(AGENT)
    agent.chmod(0o755)
    (rig.side / "fail.two").touch()
    arguments = ("run", "--workflow", "workflow.yaml", "--agent-command", str(agent), "--max-attempts", "1", "--run-id", "f1")
    assert rig.orc(*arguments).code == 1
    rig.workflow(EDITED)
    return rig


def test_a_changed_file_is_said_and_taken_only_when_asked_to(repo: Path) -> None:
    rig = begun(repo)
    told = "step one: timeout (it is done); step two: check; new step four; step three removed"
    again = rig.orc("resume", "f1")
    assert again.code == 1
    assert f"workflow.yaml changed since the run began: {told}." in again.err
    assert "The run continues as it was begun; `orc resume f1 --adopt-changes` takes the changes" in again.err
    assert list(rig.state("f1")["steps"]) == ["one", "two", "three"]
    (rig.side / "fail.two").unlink()
    done = rig.orc("resume", "f1", "--adopt-changes")
    assert done.code == 0, done
    assert "workflow.yaml is adopted: step two: check (begins anew); new step four; step three removed." in done.err
    assert "Not adopted, because it is done: step one: timeout; `orc run --workflow " in done.err
    assert (repo / "checked").exists()
    assert (rig.side / "did").read_text().split() == ["one", "two", "two", "two", "four"]
    assert "the workflow file was read again: changed: two; new: four; dropped: three" in rig.orc("history", "f1").out


def test_a_file_that_is_broken_or_gone_keeps_no_run_from_going_on(repo: Path) -> None:
    rig = begun(repo)
    rig.workflow("steps: [")
    broken = rig.orc("resume", "f1")
    assert "workflow.yaml is not usable now; the run continues as it was begun." in broken.err
    refused = rig.orc("resume", "f1", "--adopt-changes")
    assert (refused.code, "this is not YAML" in refused.err) == (2, True), refused
    (repo / "workflow.yaml").unlink()
    (rig.side / "fail.two").unlink()
    gone = rig.orc("resume", "f1")
    assert f"{repo / 'workflow.yaml'} is gone; the run continues as it was begun." in gone.err
    assert gone.code == 0, gone


def test_what_was_adopted_survives_a_kill_and_nothing_is_adopted_beside_living_agents(repo: Path) -> None:
    rig = begun(repo)
    (rig.side / "fail.two").unlink()
    (rig.side / "hang.four").touch()
    started = rig.start("resume", "f1", "--adopt-changes")
    mark = rig.side / "pid.four"
    wait_until(lambda: mark.exists() and mark.read_text().strip())
    driven = rig.orc("resume", "f1", "--adopt-changes")
    assert (driven.code, "stop it with `orc pause f1 --now`" in driven.err) == (2, True), driven
    started.signal(signal.SIGKILL)
    started.end()
    rig.workflow(EDITED.replace("id: four", "id: five"))
    alive = rig.orc("resume", "f1", "--adopt-changes")
    assert (alive.code, "still alive (four); stop them with `orc pause f1 --now` first" in alive.err) == (2, True), alive
    rig.workflow(EDITED)
    os.kill(int(mark.read_text()), signal.SIGKILL)
    (rig.side / "hang.four").unlink()
    done = rig.orc("resume", "f1", "--max-attempts", "2")
    assert done.code == 0, done
    assert "step four" not in done.err
    assert list(rig.state("f1")["steps"]) == ["one", "two", "four"]


def test_what_a_detached_resume_leaves_out_is_said_before_it_goes(repo: Path) -> None:
    rig = begun(repo)
    (rig.side / "fail.two").unlink()
    behind = rig.orc("resume", "f1", "--detach")
    assert "workflow.yaml changed since the run began" in behind.err, behind
    wait_until(lambda: rig.state("f1")["steps"]["three"]["status"] == "COMPLETED")


def test_a_changed_task_document_is_said_too(repo: Path) -> None:
    rig = PhasesRig(repo)
    assert rig.phases("--no-wait", "--run-id", "p1").code == 4
    document = repo / "task.md"
    document.write_text(document.read_text().replace("Something small.", "Something else."))
    again = rig.orc("resume", "p1", "--no-wait")
    assert "task.md changed since the run began (goal). It continues as it was begun" in again.err, again
    refused = rig.orc("resume", "p1", "--adopt-changes")
    assert (refused.code, refused.err.count("\n")) == (2, 1), refused
    assert "--adopt-changes is for workflows; tasks of a run of phases are changed in its state file" in refused.err
