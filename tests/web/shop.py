"""A repository whose workflow waits for a person, with a plain program as its agent that can be held, and `orc` on it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from tests.acceptance.rig import Rig, wait_until
from tests.conftest import make_repo
from tests.web.page import PageSession

SECRET = "sk-" + "a1b2c3d4" * 4
GATE = """
name: gate
steps:
  - {id: coding, agent: coder, prompt: prompt.md, check: "test -s result.txt"}
  - {id: approval, agent: asker, prompt: prompt.md, needs: [coding], human_in_the_loop: true, loop_back_to: coding}
"""
AGENT = """
import json, os, sys, time
here = os.path.dirname(os.path.realpath(__file__))
step = os.environ["STEP_ID"]
with open(os.path.join(here, "prompts.log"), "a") as log:
    log.write(sys.stdin.read())
print(f"{step} has found SECRET", flush=True)
while os.path.exists(os.path.join(here, f"hold-{step}")):
    time.sleep(0.01)
if step == "coding":
    open("result.txt", "a").write(f"iteration {os.environ['ITERATION']}\\n")
report = {"schema": "run_report@v0", "run_id": os.environ["RUN_ID"], "step_id": step, "agent": os.environ["AGENT_ID"],
          "status": "COMPLETED", "started_at": "2025-01-15T14:30:00Z", "ended_at": "2025-01-15T14:30:01Z"}
json.dump(report, open(os.environ["REPORT_PATH"], "w"))
"""


class Shop(Rig):
    """The repository and its agent."""

    def __init__(self, folder: Path, name: str = "shop") -> None:
        super().__init__(make_repo(folder / name))
        self.side = folder / f"{name}-side"
        self.side.mkdir()
        (self.side / "agent.py").write_text(AGENT.replace("SECRET", SECRET))
        self.workflow(GATE)

    @property
    def agent(self) -> str:
        return f"{sys.executable} {self.side / 'agent.py'}"

    def begin(self, run: str, *more: str) -> None:
        """Start a run in a worktree of its own, in the background."""
        words = ("--git-worktree", "--detach", "--run-id", run, "--agent-command", self.agent, *more)
        begun = self.orc("run", "--workflow", "workflow.yaml", *words)
        assert begun.code == 0, begun

    def hold(self, step: str) -> None:
        """Let agents of a step wait."""
        (self.side / f"hold-{step}").touch()

    def let_go(self, step: str) -> None:
        (self.side / f"hold-{step}").unlink()

    def prompts(self) -> str:
        return (self.side / "prompts.log").read_text()


def wait_for_question(page: PageSession, run: str) -> Any:
    """Return what a run asks, as soon as it does."""
    wait_until(lambda: page.read(f"/api/runs/{run}")["questions"] != [])
    return page.read(f"/api/runs/{run}")["questions"][0]


def wait_for_status(page: PageSession, run: str, status: str) -> None:
    """Wait until a run's status is this."""
    wait_until(lambda: page.read(f"/api/runs/{run}")["run"]["status"] == status)


def wait_for_job(page: PageSession, run: str, reply: Any) -> Any:
    """Return a job that was begun, as soon as it is over."""
    assert reply.status == 202, reply.body
    address = f"/api/runs/{run}/jobs/{reply.json['id']}"
    wait_until(lambda: page.read(address)["status"] != "running")
    return page.read(address)
