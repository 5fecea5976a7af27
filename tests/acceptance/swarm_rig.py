"""Beads as a user dispatches them: `orc swarm` as a program, with an agent that does what scripts beside it say."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

from tests.acceptance.rig import Result, Rig, Running

AGENT = """\
#!/bin/sh
# Logs its launch once it knows whether it is held, keeps its prompt, waits, then does what the script of this bead says.
here=${0%/*}
held=
if [ -e "$here/hold" ] || [ -e "$here/hold.$STEP_ID" ]; then held=yes; fi
echo "$RUN_ID $STEP_ID $STEP_ATTEMPT $$" >>"$here/launches.log"
cat >"$here/prompt.$STEP_ID.$STEP_ATTEMPT"
echo "working on $STEP_ID"
while [ -n "$held" ] && [ ! -e "$here/go" ]; do sleep 0.02; done
for script in "$here/do.$STEP_ID.$STEP_ATTEMPT" "$here/do.$STEP_ID" "$here/do"; do
  if [ -e "$script" ]; then . "$script"; break; fi
done
"""


class SwarmRig(Rig):
    """A workspace, and beside it an agent for beads with its scripts, prompts and log."""

    def __init__(self, repo: Path) -> None:
        super().__init__(repo)
        self.agent = self.side / "agent.sh"
        self.agent.write_text(AGENT)
        self.agent.chmod(0o755)
        for name in ("workflow.yaml", "prompt.md"):
            (repo / name).unlink()

    def do(self, script: str, bead: str | None = None, attempt: int | None = None) -> None:
        """Set what the agent does: for one attempt of a bead, for a bead, or for all others."""
        name = ".".join(["do", *([bead] if bead else []), *([str(attempt)] if attempt else [])])
        (self.side / name).write_text(script)

    def hold(self, bead: str | None = None) -> None:
        """Agents wait until `open("go")`."""
        (self.side / (f"hold.{bead}" if bead else "hold")).touch()

    def arguments(self, bead: str, *more: str, prompt: str = "fix the bug", agent: str = "claude:sonnet") -> tuple[str, ...]:
        """`swarm dispatch` with the agent."""
        return ("swarm", "dispatch", bead, ".", agent, prompt, *more, "--agent-command", str(self.agent))

    def dispatch(self, bead: str, *more: str, **given: str) -> Result:
        """`orc swarm dispatch` to its end."""
        return self.orc(*self.arguments(bead, *more, **given))

    def start_dispatch(self, bead: str, *more: str, **given: str) -> Running:
        """`orc swarm dispatch`, left running."""
        return self.start(*self.arguments(bead, *more, **given))

    def beads(self, *lines: dict[str, Any], name: str = "beads.jsonl") -> str:
        """A file of beads."""
        (self.side / name).write_text("".join(json.dumps(line) + "\n" for line in lines))
        return str(self.side / name)

    def run_arguments(self, *more: str, file: str = "beads.jsonl") -> tuple[str, ...]:
        """`swarm run` of the file with the agent."""
        path = str(self.side / file)
        return ("swarm", "run", path, "--agent", "claude", "--agent-command", str(self.agent), *more)

    def swarm(self, *more: str) -> Result:
        """`orc swarm run` to its end."""
        return self.orc(*self.run_arguments(*more))

    def record(self, folder: str, name: str) -> Any:
        """A record."""
        return json.loads((self.repo / "state" / folder / f"{name}.json").read_text())

    def has(self, folder: str, name: str) -> bool:
        """Return True if there is such a record."""
        return (self.repo / "state" / folder / f"{name}.json").exists()

    def prompt(self, bead: str, attempt: int = 1) -> str:
        """Return the agent's prompt."""
        return (self.side / f"prompt.{bead}.{attempt}").read_text()

    def tries(self) -> list[tuple[str, int]]:
        """Bead and attempt of every launch, by the agents' own log."""
        return [(line.split()[1], int(line.split()[2])) for line in self.launches()]

    def git(self, *arguments: str, cwd: Path | None = None) -> str:
        """Git in the repository."""
        who = ("-c", "user.name=a", "-c", "user.email=a@b.c")
        done = subprocess.run(["git", *who, *arguments], cwd=cwd or self.repo, check=True, capture_output=True, text=True)
        return done.stdout.strip()

    def commit(self) -> None:
        """A first commit, so that there can be branches."""
        self.git("commit", "--quiet", "--allow-empty", "-m", "first")
