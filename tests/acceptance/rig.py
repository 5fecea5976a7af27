"""Runs `orc` as a user does: as a program, with real agents that are small programs and log each of their launches."""

from __future__ import annotations

import contextlib
import io
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from agent_orchestrator.config import choose_store
from agent_orchestrator.surfaces.cli.main import main
from tests.acceptance.loaded import loaded_orc

ROOT = Path(__file__).resolve().parents[2]
ORC = [sys.executable, "-m", "agent_orchestrator.cli"]
WAIT_S = float(os.environ.get("ORC_PATIENCE_S", "30"))

WRAPPER = """
import argparse, json, os, sys, time
here = os.path.dirname(os.path.realpath(__file__))
parser = argparse.ArgumentParser()
for name in ("run-id", "step-id", "agent", "prompt", "repo", "report"):
    parser.add_argument("--" + name, required=True)
given, extra = parser.parse_known_args()
step, iteration = given.step_id, os.environ["ITERATION"]
with open(os.path.join(here, "launches.log"), "a") as log:
    log.write(f"{given.run_id} {step} {iteration} {os.environ['STEP_ATTEMPT']}\\n")
with open(os.path.join(here, "parts.json")) as file:
    parts = json.load(file)
part = parts.get(f"{step}@{iteration}", parts.get(step, {}))
print(f"{step} at work", *extra, flush=True)
print(f"{step} complains", file=sys.stderr, flush=True)
while "until" in part and not os.path.exists(os.path.join(here, part["until"])):
    time.sleep(0.01)
for name, text in part.get("writes", {}).items():
    open(os.path.join(given.repo, name), "w").write(text)
if "raw" in part:
    open(given.report, "w").write(part["raw"])
elif "report" not in part or part["report"] is not None:
    report = {"schema": "run_report@v0", "run_id": given.run_id, "step_id": step, "agent": given.agent,
              "status": "COMPLETED", "started_at": "2025-01-15T14:30:00Z", "ended_at": "2025-01-15T14:30:01Z"}
    report.update(part.get("report") or {})
    json.dump(report, open(given.report, "w"))
sys.exit(part.get("exit", 0))
"""

LINE = """
name: line
steps:
  - {id: planning, agent: planner, prompt: prompt.md}
  - {id: coding, agent: coder, prompt: prompt.md, needs: [planning]}
  - {id: code_review, agent: reviewer, prompt: prompt.md, needs: [coding], loop_back_to: coding}
"""

HUMAN = """
name: human
steps:
  - {id: coding, agent: coder, prompt: prompt.md}
  - {id: approval, agent: asker, prompt: prompt.md, needs: [coding], human_in_the_loop: true}
"""


class Answer(dict[str, Any]):
    """An object that a command printed; what it lacks is told with all that the command said, as an error is one, too."""

    def __init__(self, answer: dict[str, Any], result: Result) -> None:
        super().__init__(answer)
        self._result = result

    def __missing__(self, key: str) -> Any:
        raise AssertionError(f"there is no {key!r} in the answer of {self._result}")


class Result:
    """The result of one command."""

    def __init__(self, arguments: tuple[str, ...], code: int, out: str, err: str) -> None:
        self.arguments, self.code, self.out, self.err = arguments, code, out, err

    @property
    def json(self) -> Any:
        """The one object on standard output."""
        answer = json.loads(self.out)
        return Answer(answer, self) if isinstance(answer, dict) else answer

    @property
    def run(self) -> str:
        """The run id that the first line names."""
        word, run = self.out.splitlines()[0].split()
        assert word == "run", self
        return run

    def __repr__(self) -> str:
        return f"orc {' '.join(self.arguments)}\nexit code {self.code}\n--- out\n{self.out}\n--- err\n{self.err}"


class Rig:
    """A repository with a wrapper, beside each other, and `orc` on it."""

    command = ORC

    def __init__(self, repo: Path) -> None:
        self.repo = repo
        self.side = repo.parent / "side"
        self.side.mkdir(exist_ok=True)
        (self.side / "wrapper.py").write_text(WRAPPER)
        self.play({})
        (repo / "prompt.md").write_text("Do {run_id}.\n")
        self.workflow(LINE)

    def workflow(self, text: str, name: str = "workflow.yaml") -> None:
        """Writes the workflow file."""
        (self.repo / name).write_text(text)

    def play(self, parts: Mapping[str, Any]) -> None:
        """Set what the wrapper does, by step or step@iteration."""
        (self.side / "parts.json").write_text(json.dumps(parts))

    def open(self, name: str) -> None:
        """Lets agents go on that wait `until` this."""
        (self.side / name).touch()

    def launches(self, step: str | None = None) -> list[str]:
        """Return what agents logged about themselves: run, step, iteration, attempt."""
        log = self.side / "launches.log"
        lines = log.read_text().splitlines() if log.exists() else []
        return [line for line in lines if step is None or line.split()[1] == step]

    def orc(self, *arguments: str, env: Mapping[str, str] | None = None, cwd: Path | None = None, **more: Any) -> Result:
        """Runs one command to its end; a plain one by a fork of a loaded `orc`."""
        if self.command is ORC and env is None and not more:
            ended = loaded_orc().run(arguments, cwd or self.repo, self.environment(), WAIT_S * 2)
            if ended is not None:
                return Result(arguments, *ended)
        done = subprocess.run(
            [*self.command, *arguments],
            cwd=cwd or self.repo,
            env=self.environment(env),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=WAIT_S * 2,
            check=False,
            **more,
        )
        return Result(arguments, done.returncode, done.stdout, done.stderr)

    def at_terminal(self, *arguments: str, typed: str) -> Result:
        """Runs one command for a person who types this; standard error is what the terminal shows."""
        ours, theirs = os.openpty()
        try:
            os.write(ours, typed.encode())
            done = subprocess.run(
                [*self.command, *arguments],
                cwd=self.repo,
                env=self.environment(None),
                stdin=theirs,
                stdout=subprocess.PIPE,
                stderr=theirs,
                timeout=WAIT_S * 2,
                check=False,
            )
        finally:
            os.close(theirs)
            shown = b"".join(iter(lambda: _read_shown(ours), b""))
            os.close(ours)
        return Result(arguments, done.returncode, done.stdout.decode(), shown.decode())

    def ask(self, *arguments: str) -> Result:
        """Runs a command that drives nothing inside this process: the same program without the start of an interpreter."""
        out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True) for _ in range(2))
        with contextlib.chdir(self.repo), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = main(arguments)
        choose_store(None)  # A store that this command line named is not the next test's.
        texts = [stream.buffer.getvalue().decode() for stream in (out, err)]
        return Result(arguments, code, *texts)

    def ask_run(self, *arguments: str) -> Result:
        """`orc run` with the wrapper, for a command line that is refused before anything is driven."""
        return self.ask("run", "--workflow", "workflow.yaml", "--wrapper", str(self.side / "wrapper.py"), *arguments)

    def run(self, *arguments: str, **more: Any) -> Result:
        """`orc run` with the wrapper."""
        return self.orc("run", "--workflow", "workflow.yaml", "--wrapper", str(self.side / "wrapper.py"), *arguments, **more)

    def start(self, *arguments: str) -> Running:
        """Starts a command and returns at once."""
        return Running(self, arguments)

    def start_run(self, *arguments: str) -> Running:
        """Starts `orc run` with the wrapper."""
        return self.start("run", "--workflow", "workflow.yaml", "--wrapper", str(self.side / "wrapper.py"), *arguments)

    def environment(self, more: Mapping[str, str] | None = None) -> dict[str, str]:
        """Ours, plus where the package is."""
        return {**os.environ, "PYTHONPATH": str(ROOT / "src"), "COLUMNS": "80", **(more or {})}

    def state(self, run: str) -> Any:
        """The run's state file."""
        return json.loads((self.repo / ".agents" / "runs" / run / "run_state.json").read_text())


class Running:
    """A command that is still going on."""

    def __init__(self, rig: Rig, arguments: tuple[str, ...]) -> None:
        self.arguments = arguments
        self._out = rig.side / f"out-{len(list(rig.side.glob('out-*')))}"
        self._err = self._out.with_name(self._out.name.replace("out", "err"))
        with self._out.open("wb") as out, self._err.open("wb") as err:
            self.process = subprocess.Popen(
                [*rig.command, *arguments], cwd=rig.repo, env=rig.environment(), stdin=subprocess.DEVNULL, stdout=out, stderr=err
            )

    def said(self) -> str:
        """Return its output so far."""
        return self._out.read_text()

    def complained(self) -> str:
        """Return its error output so far."""
        return self._err.read_text()

    def wait_for(self, text: str) -> str:
        """Waits until it has written this."""
        wait_until(lambda: text in self.said() or self.process.poll() is not None)
        assert text in self.said(), (self.said(), self._err.read_text())
        return self.said()

    def signal(self, number: signal.Signals) -> None:
        """Sends it a signal."""
        self.process.send_signal(number)

    def end(self) -> Result:
        """Waits for its end."""
        code = self.process.wait(WAIT_S)
        return Result(self.arguments, code, self.said(), self._err.read_text())


def _read_shown(terminal: int) -> bytes:
    """Read a part of what a terminal that everybody has closed still shows; nothing when that was all."""
    try:
        return os.read(terminal, 65536)
    except OSError:
        return b""


def wait_until(condition: Callable[[], object], seconds: float = WAIT_S) -> None:
    """Polls until the condition holds."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.02)


def is_alive(pid: int) -> bool:
    """Return True if a process runs."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False
