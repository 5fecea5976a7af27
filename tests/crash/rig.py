"""Real `orc` processes driving real programs that keep a log of their own, and the means to end any of them at once.

Only processes that were started here, or by what was started here, are ever signalled, each by its own id.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, ClassVar

import jsonschema_rs
import msgspec

import agent_orchestrator.systems.workflow as workflow
from agent_orchestrator.core.events import Event
from agent_orchestrator.core.ids import RunId
from agent_orchestrator.engine.journal import decode_events
from agent_orchestrator.engine.process.folder import read_birth
from agent_orchestrator.runs.orchestrator import Orchestrator
from agent_orchestrator.store.port import StoredRun
from agent_orchestrator.systems.workflow.state import WorkflowState
from agent_orchestrator.systems.workflow.system import WORKFLOW

ROOT = Path(__file__).resolve().parents[2]
PATIENCE_S = float(os.environ.get("ORC_PATIENCE_S", "60"))
"""The time after which a program counts as hanging; the proof, which runs on busy machines, gives more."""
LOOK_S = 0.003

AGENT = """\
#!/bin/sh
# Appends one line when it starts and one when it ends; works for 50 to 290 ms, or until the file it is told to wait for.
here=${0%/*}
echo "start $STEP_ID $ITERATION $STEP_ATTEMPT $$" >>"$here/agents.log"
gate=false
[ "$STEP_ID.$ITERATION" = review.0 ] && gate='"found P0 issues"'
printf '{"status": "COMPLETED", "run_id": "%s", "step_id": "%s", "gate_failure": %s, "summary": "%s of launch %s"}' \\
  "$RUN_ID" "$STEP_ID" "$gate" "$STEP_ID" "$ORC_LAUNCH" >"$REPORT_PATH"
if [ -e "$here/hold.$STEP_ID" ]; then
  while [ ! -e "$here/go" ]; do sleep 0.02; done
else
  word=$(printf %s "$STEP_ID$ITERATION$RUN_ID" | cksum)
  sleep "$(printf '0.%02d' $((${word%% *} % 25 + 5)))"
fi
echo "end $STEP_ID $ITERATION $STEP_ATTEMPT $$" >>"$here/agents.log"
"""


class Rig:
    """A repository, and beside it the agent, its log, the workflow and the prompt."""

    made: ClassVar[list[Rig]] = []
    """All of a test, so that no agent goes on waiting after it."""

    def __init__(self, repo: Path, text: str, side: Path | None = None) -> None:
        self.repo, self.side = repo, side or repo.parent / "side"
        self.side.mkdir()
        self.agent = self.side / "agent.sh"
        self.agent.write_text(AGENT)
        self.agent.chmod(0o755)
        (self.side / "prompt.md").write_text("Work.\n")
        (self.side / "workflow.yaml").write_text(text)
        self._said = 0
        Rig.made.append(self)

    def start(self, *arguments: str) -> Orc:
        """An `orc` process."""
        self._said += 1
        return Orc(self.repo, self.side / f"said.{self._said}", arguments)

    def run(self, run: str, *more: str) -> Orc:
        """`orc run` of the workflow under that id."""
        agent = ("--agent-command", str(self.agent), "--max-attempts", "5")
        return self.start("run", "--workflow", str(self.side / "workflow.yaml"), *agent, "--run-id", run, *more)

    def hold(self, step: str) -> None:
        """From now on the step's agent waits until `let_go`."""
        (self.side / f"hold.{step}").touch()

    def let_go(self) -> None:
        """Agents that wait go on."""
        (self.side / "go").touch()

    def log(self, word: str = "start", step: str | None = None) -> list[list[str]]:
        """The agents' own log: word, step, iteration, attempt, pid."""
        try:
            lines = [line.split() for line in (self.side / "agents.log").read_text().splitlines()]
        except FileNotFoundError:
            return []
        return [line for line in lines if line[0] == word and step in (None, line[1])]

    def starts(self) -> dict[tuple[str, str], int]:
        """Count the starts of each step and iteration, by the agents' own log."""
        return dict(Counter((line[1], line[2]) for line in self.log()))

    def state_file(self, run: str) -> Path:
        """The run's state file."""
        return self.repo / ".agents" / "runs" / run / "run_state.json"

    def steps(self, run: str) -> dict[str, Any]:
        """The steps in the state file, which is checked."""
        return read_state(self.state_file(run).read_bytes())

    def stored(self, run: str) -> StoredRun | None:
        """The run as the store has it."""
        with Orchestrator(str(self.repo)) as orchestrator:
            return next((known for known in orchestrator.runs() if known.id == run), None)

    def fold(self, run: str) -> tuple[WorkflowState, list[Event]]:
        """The run as its journal has it, and the journal."""
        with Orchestrator(str(self.repo)) as orchestrator:
            found = orchestrator.find(run)
            events = [event for _, _, body in orchestrator.store.rows(RunId(run)) for event in decode_events(WORKFLOW, body)]
            state: WorkflowState = orchestrator.fold(found).state
            return state, events

    def living(self, run: str) -> list[int]:
        """Processes that carry the nonce of one of the run's launches."""
        folders = (self.repo / ".git" / "orc" / "launches" / run).glob("*~*")
        nonces = [birth.nonce.encode() for folder in folders if (birth := read_birth(folder)) is not None]
        return [pid for pid, environ in processes() if any(nonce in environ for nonce in nonces)]


class Orc:
    """One `orc` process; what it says goes to a file, so that it never waits for a reader."""

    started: ClassVar[list[Orc]] = []
    """All of a test, so that none outlives it."""

    def __init__(self, repo: Path, said: Path, arguments: tuple[str, ...], env: Mapping[str, str] | None = None) -> None:
        self.arguments, self._said = arguments, said
        with said.open("wb") as out:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "agent_orchestrator.cli", *arguments],
                cwd=repo,
                env={**os.environ, "PYTHONPATH": str(ROOT / "src"), **(env or {})},
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
            )
        Orc.started.append(self)

    @property
    def pid(self) -> int:
        """Return its process id."""
        return self._process.pid

    @property
    def said(self) -> str:
        """Return its output so far."""
        return self._said.read_text()

    @property
    def ended(self) -> bool:
        """Return True if it is over."""
        return self._process.poll() is not None

    def wait_for(self, text: str) -> None:
        """Waits until it said this."""
        wait_until(lambda: text in self.said or self.ended)
        assert text in self.said, self

    def signal(self, number: signal.Signals) -> None:
        """Sends it a signal."""
        self._process.send_signal(number)

    def kill(self) -> None:
        """kill -9, now."""
        self._process.kill()
        self._process.wait(PATIENCE_S)

    def end(self) -> int:
        """Its exit code."""
        return self._process.wait(PATIENCE_S)

    def __repr__(self) -> str:
        return f"orc {' '.join(self.arguments)} ({self._process.poll()})\n{self.said}"


class Watcher:
    """Reads a state file all the time, as a reader with no manners would, and checks every reading."""

    def __init__(self, path: Path) -> None:
        self._path, self._over = path, threading.Event()
        self._thread = threading.Thread(target=self._watch)
        self.readings = 0
        self.faults: list[str] = []

    def __enter__(self) -> Watcher:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _watch(self) -> None:
        last = b""
        while not self._over.wait(LOOK_S):
            try:
                content = self._path.read_bytes()
            except FileNotFoundError:
                if last:
                    self.faults.append("it vanished")
                continue
            if content != last:
                last = content
                self._check(content)

    def _check(self, content: bytes) -> None:
        self.readings += 1
        try:
            read_state(content)
        except (AssertionError, msgspec.DecodeError) as error:
            self.faults.append(f"reading {self.readings}: {error}")


@cache
def run_state_schema() -> Any:
    """The published schema, compiled."""
    path = Path(workflow.__file__).parent / "schema" / "run_state.schema.json"
    return jsonschema_rs.validator_for(msgspec.json.decode(path.read_bytes()))


def read_state(content: bytes) -> dict[str, Any]:
    """The steps of a state file that keeps the schema."""
    document = msgspec.json.decode(content)
    faults = [f"{error.instance_path}: {error.message}" for error in run_state_schema().iter_errors(document)]
    assert not faults, faults
    steps: dict[str, Any] = document["steps"]
    return steps


def processes() -> Iterator[tuple[int, bytes]]:
    """Every process whose environment can be read, with it."""
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                yield int(entry.name), (entry / "environ").read_bytes()
            except OSError:
                continue


def wait_until(condition: Callable[[], object], patience_s: float = PATIENCE_S) -> None:
    """Polls until the condition holds."""
    deadline = time.monotonic() + patience_s
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(LOOK_S)
