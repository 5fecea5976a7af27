"""Runs of phases as a user has them: `orc phases` as a program, one small program as every agent, scripts beside it."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

from agent_orchestrator.systems.phases.parse import parse_document
from tests.acceptance.rig import Result, Rig, Running
from tests.scenarios.phases_world import agent_state_schema

AGENT = """\
#!/bin/sh
# Logs its launch, keeps its prompt, waits while it is held, then does what the script for its role, unit and iteration says.
here=${0%/*}
name="$AGENT_ID.$STEP_ID.$ITERATION"
cat >"$here/prompt.$name.$STEP_ATTEMPT"
echo "start $name $STEP_ATTEMPT" >>"$here/launches.log"
if [ -e "$here/hold.$AGENT_ID.$STEP_ID" ]; then
  while [ ! -e "$here/go" ]; do sleep 0.02; done
fi
for script in "$here/do.$name" "$here/do.$AGENT_ID.$STEP_ID" "$here/do.$AGENT_ID"; do
  if [ -e "$script" ]; then . "$script"; break; fi
done
echo "end $name $STEP_ATTEMPT" >>"$here/launches.log"
"""

WORKS = """\
echo "$ITERATION" >>"work-$STEP_ID"
echo "{\\"status\\": \\"SUCCESS\\", \\"summary\\": \\"did $STEP_ID\\", \\"criteria\\": {\\"it_is_good\\": true}}" >"$REPORT_PATH"
"""

SMALL = """\
# Task: Small thing

## Goal

Something small.

## Phases & Tasks

### Phase 1: Only

#### Task 1.1: First

**Success Criteria**:
- [ ] Written `test -f work-1.1`
- [ ] It is good

#### Task 1.2: Second

**Success Criteria**:
- [ ] It is good
**Dependencies**: 1.1
"""

FOUR_PHASES = """\
# Task: User auth

## Goal

Users can log in.

## Context

The code is in files named work-*.

## Success Criteria (Global)

- [ ] Everything is there `test -f work-4.1`
- [ ] It reads well

## Safety Bounds

- **Maximum iterations per task**: 5
- **Maximum cost**: $10
- **Maximum time**: 2h

## Phases & Tasks

### Phase 1: Foundation

#### Task 1.1: Update the model

**Description**: The model gets new fields.

**Success Criteria**:
- [ ] Twice written `test "$(wc -l <work-1.1)" -ge 2`
- [ ] It is good

**Agents Needed**: task-executor
**Complexity**: Medium
**Dependencies**: None
**Estimated Effort**: 30 minutes
**Files**: work-1.1

#### Task 1.2: Tokens

**Success Criteria**:
- [ ] It is good
**Dependencies**: 1.1

### Phase 2: Endpoints

#### Task 2.1: Create endpoints

**Success Criteria**:
- [ ] Written `test -f work-2.1`

#### Task 2.2: Roles

**Success Criteria**:
- [ ] It is good

### Phase 3: Integration

#### Task 3.1: Protect endpoints

**Success Criteria**:
- [ ] Tidy `test ! -f untidy`
- [ ] It is good

### Phase 4: Polish

#### Task 4.1: Documentation

**Success Criteria**:
- [ ] Written `test -f work-4.1`

## Supervisor Checks

- **Enable**: yes
- **Frequency**: every task
- **Auto-fix**: yes

## Outer Ralph Loop

- **Enable**: yes
- **Maximum iterations**: 3
"""


class PhasesRig(Rig):
    """A repository with one commit, and beside it an agent for all roles with its scripts, prompts and log."""

    def __init__(self, repo: Path, document: str = SMALL) -> None:
        super().__init__(repo)
        for name in ("workflow.yaml", "prompt.md"):
            (repo / name).unlink()
        self.agent = self.side / "agent.sh"
        self.agent.write_text(AGENT)
        self.agent.chmod(0o755)
        self.do("task-executor", WORKS)
        self.report("supervisor", {"status": "PASS"})
        self.report("code-improvement-scanner", {"status": "CLEAN"})
        self.write(document)
        if not (repo / ".git").exists():
            self.git("init", "--quiet", "--initial-branch", "main")
        (repo / "README").write_text("here\n")
        self.git("add", "README")
        self.git("-c", "user.name=ada", "-c", "user.email=ada@localhost", "commit", "--quiet", "-m", "init")

    def write(self, document: str) -> None:
        """Writes the task document."""
        parse_document(document, "task.md")
        (self.repo / "task.md").write_text(document)

    def do(self, who: str, script: str) -> None:
        """Set what an agent does: `ROLE`, `ROLE.UNIT` or `ROLE.UNIT.ITERATION`."""
        (self.side / f"do.{who}").write_text(script)

    def report(self, who: str, report: dict[str, Any], also: str = "") -> None:
        """An agent that does `also` something and reports this."""
        self.do(who, f"{also}\ncat >\"$REPORT_PATH\" <<'END'\n{json.dumps(report)}\nEND\n")

    def hold(self, role: str, unit: str) -> None:
        """Agents of that role and unit wait until `open("go")`."""
        (self.side / f"hold.{role}.{unit}").touch()

    def arguments(self, *more: str) -> tuple[str, ...]:
        """`phases run` with the agent."""
        return ("phases", "run", "task.md", "--agent-command", str(self.agent), "--allow-unmetered", *more)

    def phases(self, *more: str) -> Result:
        """`orc phases run` to its end."""
        return self.orc(*self.arguments(*more))

    def start_phases(self, *more: str) -> Running:
        """`orc phases run`, left running."""
        return self.start(*self.arguments(*more))

    def state(self, run: str = "") -> Any:
        """agent-state.json, valid."""
        document = json.loads((self.repo / ".claude" / "agent-state.json").read_text())
        faults = [f"{error.instance_path}: {error.message}" for error in agent_state_schema().iter_errors(document)]
        assert not faults, faults
        return document

    def checkpoint(self, number: int) -> Any:
        """checkpoint-NNN.json."""
        return json.loads((self.repo / ".claude" / f"checkpoint-{number:03d}.json").read_text())

    def started(self, who: str = "") -> list[str]:
        """Return what agents logged about their starts: role.unit.iteration, attempt."""
        log = self.side / "launches.log"
        lines = log.read_text().splitlines() if log.exists() else []
        return [line.removeprefix("start ") for line in lines if line.startswith(f"start {who}")]

    def prompt(self, who: str, attempt: int = 1) -> str:
        """Return an agent's prompt: role.unit.iteration."""
        return (self.side / f"prompt.{who}.{attempt}").read_text()

    def git(self, *arguments: str) -> str:
        """Git in the repository."""
        found = shutil.which("git")
        assert found is not None
        return subprocess.run([found, *arguments], cwd=self.repo, check=True, capture_output=True, text=True).stdout.strip()

    def commits(self) -> list[str]:
        """The subjects on the current branch, oldest first."""
        return self.git("log", "--reverse", "--format=%s").splitlines()

    def check_numbers(self) -> None:
        """The numbers of the state file agree with git: every checkpoint exists, its files are what its task changed."""
        state = self.state()
        done = {entry["task"]: entry for entry in state["completed_tasks"]}
        before = self.git("rev-list", "--reverse", "--first-parent", "HEAD").splitlines()
        start = next(sha for sha in before if self.git("log", "-1", "--format=%s", sha).startswith(("Begin: ", "init")))
        for sha in before:
            if self.git("log", "-1", "--format=%s", sha).startswith("Begin: "):
                start = sha
        for entry in state["checkpoints"]:
            assert self.git("cat-file", "-t", entry["git_sha"]) == "commit"
            changed = self.git("diff", "--name-only", "--no-renames", start, entry["git_sha"]).splitlines()
            assert sorted(done[entry["task"]]["files_modified"]) == sorted(changed), entry
            start = entry["git_sha"]
        assert len(state["checkpoints"]) == len(done)
