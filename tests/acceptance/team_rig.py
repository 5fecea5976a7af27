"""Teams as a user runs them: `orc team` as a program, with one small program that plays every role as scripts beside it say."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

from tests.acceptance.rig import Result, Rig, Running
from tests.scenarios.team_world import REQUIREMENTS, document_faults

AGENT = """\
#!/bin/sh
# Logs its launch, keeps its prompt, waits while it is held, then does what the script for this turn says.
here=${0%/*}
echo "$STEP_ID $AGENT_ID $TEAM_TURN $ITERATION $$" >>"$here/launches.log"
cat >"$here/prompt.$STEP_ID.$TEAM_TURN.$ITERATION"
report() { cat >"$REPORT_PATH"; }
if [ -e "$here/hold.$STEP_ID.$TEAM_TURN" ]; then
  while [ ! -e "$here/go" ]; do sleep 0.02; done
fi
for script in "$STEP_ID.$TEAM_TURN.$ITERATION" "$STEP_ID.$TEAM_TURN" "$TEAM_TURN"; do
  if [ -e "$here/do.$script" ]; then . "$here/do.$script"; break; fi
done
echo "end $STEP_ID $TEAM_TURN $ITERATION $$" >>"$here/ended.log"
"""

DEFAULTS = {
    "plan": 'report <"$here/plan.json"',
    "final": 'echo \'{"status": "DONE"}\' | report',
    "confirm": 'echo \'{"status": "APPROVED", "feedback": "all of it works"}\' | report',
    "develop": (
        'name=$(echo "$STEP_ID" | tr A-Z a-z); echo "$STEP_ID $ITERATION" >>"$name.py"; git add -A; '
        'git -c user.name=Dev -c user.email=dev@example.com commit -q -m "Work on $STEP_ID, round $ITERATION"; '
        'echo \'{"status": "READY_FOR_QA", "summary": "Did it", "notes": "All unit tests passing.", '
        '"unit_tests": {"total": 12, "passed": 12, "failed": 0}}\' | report'
    ),
    "qa": (
        'echo \'{"status": "PASS", "test_results": {"integration_tests": {"total": 8, "passed": 8, "failed": 0}, '
        '"contract_tests": {"total": 5, "passed": 5, "failed": 0}, '
        '"e2e_tests": {"total": 3, "passed": 3, "failed": 0}}}\' | report'
    ),
    "review": (
        'echo \'{"status": "APPROVED", "feedback": "Clean implementation, well tested", '
        '"quality": {"code_quality_score": 9.0, "security_issues_count": 0}}\' | report'
    ),
    "consult": 'echo \'{"status": "UNBLOCKED", "feedback": "Use the mock mailer", "actionable_items": ["mock it"]}\' | report',
}


class TeamRig(Rig):
    """A repository, and beside it an agent that plays all roles with its scripts, prompts and log."""

    def __init__(self, repo: Path) -> None:
        super().__init__(repo)
        for name in ("workflow.yaml", "prompt.md"):
            (repo / name).unlink()
        self.program = self.side / "agent.sh"
        self.program.write_text(AGENT)
        self.program.chmod(0o755)
        for turn, script in DEFAULTS.items():
            self.do(turn, script)

    def do(self, turn: str, script: str) -> None:
        """Set what the agent does in `TURN`, `UNIT.TURN` or `UNIT.TURN.ITERATION`."""
        (self.side / f"do.{turn}").write_text(script + "\n")

    def says(self, turn: str, **report: Any) -> None:
        """The agent only reports in this turn."""
        (self.side / f"said.{turn}.json").write_text(json.dumps(report))
        self.do(turn, f'report <"$here/said.{turn}.json"')

    def plan(self, *groups: dict[str, Any], **more: Any) -> None:
        """Set what the project manager plans."""
        tasks = [
            {"id": task, "description": f"Do {task}", "group_id": group["id"]}
            for group in groups
            for task in group.get("tasks", ())
        ]
        report = {"status": "PLANNING_COMPLETE", "mode": "parallel", "mode_reasoning": "independent", "tasks": tasks}
        (self.side / "plan.json").write_text(json.dumps({**report, "groups": list(groups), **more}))

    def hold(self, unit: str, turn: str) -> None:
        """The agent waits in this turn until `open("go")`."""
        (self.side / f"hold.{unit}.{turn}").touch()

    def team_arguments(self, *more: str, requirements: str = REQUIREMENTS) -> tuple[str, ...]:
        """`team run` with the agent."""
        check = () if "--check" in more or "--no-check" in more else ("--check", "true")
        return ("team", "run", requirements, "--agent-command", str(self.program), *check, *more)

    def team(self, *more: str, requirements: str = REQUIREMENTS) -> Result:
        """`orc team run` to its end."""
        return self.orc(*self.team_arguments(*more, requirements=requirements))

    def start_team(self, *more: str, requirements: str = REQUIREMENTS) -> Running:
        """`orc team run`, left running."""
        return self.start(*self.team_arguments(*more, requirements=requirements))

    def file(self, name: str) -> Any:
        """A file of `coordination/`, valid against the seed's schema."""
        path = self.repo / "coordination" / name
        document = json.loads(path.read_text())
        assert document_faults(name, document) == []
        return document

    def turns(self) -> list[str]:
        """Return what the agents logged: unit, turn and iteration of each launch."""
        log = self.side / "launches.log"
        lines = [line.split() for line in log.read_text().splitlines()] if log.exists() else []
        return [f"{unit} {turn} {number}" for unit, _, turn, number, _ in lines]

    def prompt(self, unit: str, turn: str, iteration: int) -> str:
        """Return an agent's prompt."""
        return (self.side / f"prompt.{unit}.{turn}.{iteration}").read_text()

    def decisions(self) -> list[str]:
        """The story in orchestrator_state.json."""
        return [one["decision"] for one in self.file("orchestrator_state.json")["decisions_log"]]

    def git(self, *arguments: str) -> str:
        """Git in the repository."""
        return subprocess.run(["git", *arguments], cwd=self.repo, check=True, capture_output=True, text=True).stdout.strip()


def team_of(result: Result | Running) -> str:
    """The team that the first line names."""
    text = result.out if isinstance(result, Result) else result.wait_for("team v4_")
    return next(line for line in text.splitlines() if line.startswith("team v4_")).split()[1]
