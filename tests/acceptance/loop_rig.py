"""Loops as a user runs them: `orc loop` and `aiwg` as programs, with an agent that does what scripts beside it say."""

from __future__ import annotations

import gzip
import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.acceptance.rig import Result, Rig, Running

AGENT = """\
#!/bin/sh
# Logs its launch, keeps its prompt, waits while it is held, then does what the script of this iteration says.
here=${0%/*}
echo "$RUN_ID $ITERATION $$" >>"$here/launches.log"
cat >"$here/prompt.$RUN_ID.$ITERATION"
echo "working on $ITERATION"
if [ -e "$here/hold" ] || [ -e "$here/hold.$ITERATION" ]; then
  while [ ! -e "$here/go" ]; do sleep 0.02; done
fi
for script in "$here/do.$ITERATION" "$here/do"; do
  if [ -e "$script" ]; then . "$script"; break; fi
done
"""


class LoopRig(Rig):
    """A repository, and beside it an agent for loops with its scripts, prompts and log."""

    def __init__(self, repo: Path) -> None:
        super().__init__(repo)
        self.agent = self.side / "agent.sh"
        self.agent.write_text(AGENT)
        self.agent.chmod(0o755)
        for name in ("workflow.yaml", "prompt.md"):
            (repo / name).unlink()

    def do(self, script: str, iteration: int | None = None) -> None:
        """Set what the agent does, in one iteration or in all others."""
        (self.side / ("do" if iteration is None else f"do.{iteration}")).write_text(script)

    def hold(self, iteration: int | None = None) -> None:
        """The agent waits until `open("go")`."""
        (self.side / ("hold" if iteration is None else f"hold.{iteration}")).touch()

    def loop_arguments(self, *more: str, task: str = "make it so", until: str | None = "test -f done") -> tuple[str, ...]:
        """`loop run` with the agent."""
        check = ("--until", until) if until is not None else ()
        return ("loop", "run", task, *check, "--agent-command", str(self.agent), *more)

    def loop(self, *more: str, task: str = "make it so", until: str | None = "test -f done") -> Result:
        """`orc loop run` to its end."""
        return self.orc(*self.loop_arguments(*more, task=task, until=until))

    def start_loop(self, *more: str, task: str = "make it so", until: str | None = "test -f done") -> Running:
        """`orc loop run`, left running."""
        return self.start(*self.loop_arguments(*more, task=task, until=until))

    def aiwg(self, *arguments: str) -> Result:
        """The command `aiwg`."""
        code = "import sys; from agent_orchestrator.surfaces.cli.loop.aiwg import main; sys.exit(main())"
        done = subprocess.run(
            [sys.executable, "-c", code, *arguments],
            cwd=self.repo,
            env=self.environment(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        return Result(arguments, done.returncode, done.stdout, done.stderr)

    @property
    def ralph(self) -> Path:
        """`.aiwg/ralph`."""
        return self.repo / ".aiwg" / "ralph"

    def registry(self) -> Any:
        """registry.json."""
        return json.loads((self.ralph / "registry.json").read_text())

    def state(self, run: str) -> Any:
        """state.json of a loop."""
        return json.loads((self.ralph / "loops" / run / "state.json").read_text())

    def analytics(self, run: str) -> Any:
        """analytics.json of a loop."""
        return json.loads((self.ralph / "loops" / run / "analytics" / "analytics.json").read_text())

    def checkpoint(self, run: str, iteration: int) -> Any:
        """A checkpoint of a loop."""
        path = self.ralph / "loops" / run / "checkpoints" / f"iteration-{iteration:03d}.json.gz"
        return json.loads(gzip.decompress(path.read_bytes()))

    def prompt(self, run: str, iteration: int) -> str:
        """Return the agent's prompt."""
        return (self.side / f"prompt.{run}.{iteration}").read_text()

    def git(self, *arguments: str) -> str:
        """Git in the repository."""
        found = shutil.which("git")
        assert found is not None
        return subprocess.run([found, *arguments], cwd=self.repo, check=True, capture_output=True, text=True).stdout.strip()


def loop_of(result: Result | Running) -> str:
    """The loop id that the first line names."""
    text = result.out if isinstance(result, Result) else result.wait_for("loop ralph-")
    word, loop = next(line for line in text.splitlines() if line.startswith("loop ralph-")).split()[:2]
    assert word == "loop", result
    return loop
