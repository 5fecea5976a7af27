"""The package as a library: the page's code is run as it stands, and two programs run, watch and approve a workflow."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time

import pytest

from agent_orchestrator import JournalEntry, Orchestrator, RunBusy, Start, WorkflowOptions
from tests.acceptance.examples import DOCS
from tests.acceptance.rig import HUMAN, ROOT, WAIT_S, Rig

PROGRAMS = ROOT / "examples" / "library"
CODE = re.compile(r"^```python\n(.*?)^```$(?:\n\n^```text\n(.*?)^```$)?", re.M | re.S)
ASKING = "name: asking\nsteps:\n  - {id: code, agent: coder, prompt: prompts/code.md, human_in_the_loop: true}\n"
PLAYED = '- step: plan\n  write: {PLAN.md: "1. Read.\\n"}\n- step: "*"\n'


@pytest.fixture
def starter(rig: Rig) -> Rig:
    """A repository with the files of `orc init`, committed, and agents that lose no time."""
    (rig.repo / "workflow.yaml").unlink()
    assert rig.orc("init").code == 0
    rig.workflow(PLAYED, "rehearsal.yaml")
    rig.workflow(ASKING, "asking.yaml")
    rig.workflow("echo hello > greeting.txt\n", "greet.sh")
    subprocess.run(["git", "add", "--all"], cwd=rig.repo, check=True)
    subprocess.run(["git", "commit", "--quiet", "--message", "Starter"], cwd=rig.repo, check=True)
    return rig


def test_the_code_of_the_page_does_what_it_says(starter: Rig) -> None:
    found = CODE.findall((DOCS / "library.md").read_text("utf-8"))
    assert len(found) >= 9
    assert all(printed for _, printed in found), "every piece of code is followed by what it prints"
    whole = "\n".join(f"{code}\nprint('···', flush=True)" for code, _ in found)
    done = subprocess.run(
        [sys.executable, "-c", whole],
        cwd=starter.repo,
        env=starter.environment(None),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split("···\n")[:-1] == [printed for _, printed in found]


class Program:
    """One of the two programs, at work."""

    def __init__(self, rig: Rig, name: str, *arguments: str) -> None:
        self.out = rig.side / f"{name}.{time.monotonic_ns()}.out"
        with self.out.open("wb") as out:
            self.process = subprocess.Popen(
                [sys.executable, str(PROGRAMS / name), str(rig.repo), *arguments],
                cwd=rig.repo,
                env=rig.environment(None),
                stdout=out,
                stderr=subprocess.STDOUT,
            )

    def await_text(self, text: str) -> None:
        """Wait until it has said this."""
        deadline = time.monotonic() + WAIT_S
        while text not in self.out.read_text():
            assert time.monotonic() < deadline, self.out.read_text()
            time.sleep(0.02)

    def end(self) -> int:
        """Wait for its end and return its exit code."""
        return self.process.wait(WAIT_S)


def test_one_program_runs_a_workflow_is_killed_and_goes_on_and_another_watches_and_approves(starter: Rig) -> None:
    rehearsal = '- {step: plan, write: {PLAN.md: "1. Read.\\n"}}\n- {step: code, takes: 2s}\n- {step: "*"}\n'
    starter.workflow(rehearsal, "rehearsal.yaml")
    text = (starter.repo / "workflow.yaml").read_text()
    starter.workflow(text.replace("# human_in_the_loop: true", "human_in_the_loop: true"))
    first = Program(starter, "run_workflow.py", "workflow.yaml", "rehearsal.yaml")
    first.await_text("code step_started")
    watching = Program(starter, "watch_and_approve.py")
    watching.await_text("step_started")
    os.kill(first.process.pid, signal.SIGKILL)
    assert first.end() == -signal.SIGKILL
    again = Program(starter, "run_workflow.py", "workflow.yaml", "rehearsal.yaml")
    assert again.end() == 0, again.out.read_text()
    assert watching.end() == 0, watching.out.read_text()
    assert "approved: Approve step review?" in watching.out.read_text()
    assert "is completed: 3 of 3 steps are done" in again.out.read_text()
    (run,) = starter.ask("list", "--json").json["runs"]
    assert (run["status"], run["done"]) == ("completed", 3)


def wrapped(rig: Rig) -> WorkflowOptions:
    rig.workflow(HUMAN)
    return WorkflowOptions(workflow=str(rig.repo / "workflow.yaml"), wrapper=str(rig.side / "wrapper.py"))


def test_a_run_is_decided_about_from_a_function_that_drive_calls(rig: Rig) -> None:
    with Orchestrator(rig.repo) as orchestrator:
        run = orchestrator.start(wrapped(rig)).run

        def approve(entry: JournalEntry) -> None:
            if entry.event == "human_asked":
                assert not orchestrator.approve(run).taken

        assert orchestrator.drive(run, approve).status == "completed"


def test_a_function_that_raises_lets_go_of_the_run(rig: Rig) -> None:
    with Orchestrator(rig.repo) as orchestrator:
        run = orchestrator.start(wrapped(rig)).run

        def fail(entry: JournalEntry) -> None:
            if entry.event == "step_started":
                raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            orchestrator.drive(run, fail)
        assert orchestrator.owner(run) is None
        assert orchestrator.drive(run, wait=False).status == "waiting"
    assert rig.launches("coding") == [f"{run.id} coding 0 1"]


def test_a_run_that_was_started_belongs_to_its_orchestrator_until_it_is_closed(rig: Rig) -> None:
    with Orchestrator(rig.repo) as other:
        with Orchestrator(rig.repo) as orchestrator:
            run = orchestrator.start(wrapped(rig), Start(run_id="mine")).run
            with pytest.raises(RunBusy):
                other.drive(run)
        assert other.drive(run, wait=False).status == "waiting"
