"""Small real runs of all five systems, to be hurt: an agent program that keeps a log, the commands, and what must hold."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

import msgspec

from agent_orchestrator.core.events import StopReason
from agent_orchestrator.engine.process.folder import read_birth
from agent_orchestrator.runs.orchestrator import Orchestrator
from agent_orchestrator.store.port import StoredRun
from tests.acceptance.phases_rig import SMALL
from tests.acceptance.team_rig import DEFAULTS
from tests.conftest import make_repo, pytest_configure
from tests.crash.rig import PATIENCE_S, Orc, Rig, processes
from tests.scenarios.team_world import group

AGENT = """\
#!/bin/sh
# Logs its start and its end, and does in between what the file beside it says.
here=${0%/*}
launch=${REPORT_PATH%/*}
turn="$RUN_ID/$STEP_ID ${TEAM_TURN:-$AGENT_ID} $ITERATION $STEP_ATTEMPT $RUN_ID/${launch##*/} $$"
cat >/dev/null
echo "start $turn" >>"$here/agents.log"
sleep "$(cat "$here/pause")"
report() { cat >"$REPORT_PATH"; }
. "$here/do"
echo "end $turn" >>"$here/agents.log"
"""
PAUSE_S = 0.05
WORKFLOW = """
name: three
steps:
  - {id: one, agent: coder, prompt: prompt.md}
  - {id: two, agent: coder, prompt: prompt.md, needs: [one], check: "true"}
  - {id: three, agent: coder, prompt: prompt.md, needs: [two]}
"""
PHASES_ROLES = {
    "task-executor": 'echo "$ITERATION" >>"work-$STEP_ID"; '
    'echo \'{"status": "SUCCESS", "summary": "did it", "criteria": {"it_is_good": true}}\' | report',
    "supervisor": 'echo \'{"status": "PASS"}\' | report',
    "code-improvement-scanner": 'echo \'{"status": "CLEAN"}\' | report',
}
BEADS = (
    {"id": "one", "prompt": "do one"},
    {"id": "two", "prompt": "do two", "depends_on": ["one"]},
    {"id": "three", "prompt": "do three"},
)
LOOK_S = 0.05
LOOKS_PER_QUESTION = 10
"""A person looks less often: opening the store costs more than the run does meanwhile."""
ATTEMPTS = "9"
"""More than any trial can lose."""


class Subject:
    """A repository, beside it the agent and its log, and `orc` on them."""

    def __init__(self, system: str, repo: Path, side: Path) -> None:
        self.system, self.repo, self.side = system, repo, side
        side.mkdir()
        self.agent = side / "agent.sh"
        self.agent.write_text(AGENT)
        self.agent.chmod(0o755)
        (side / "do").touch()
        self.let_work(PAUSE_S)
        (side / "prompt.md").write_text("Work.\n")
        self._said = 0
        self._run = COMMANDS[system](self)

    def add(self, script: str) -> None:
        """Let the agent do this."""
        with (self.side / "do").open("a") as do:
            do.write(script + "\n")

    def let_work(self, seconds: float) -> None:
        """Let agents take that long."""
        (self.side / "pause").write_text(f"{seconds}\n")

    def begin(self, env: Mapping[str, str] | None = None, *more: str) -> Orc:
        """Start the run."""
        return self.orc(*self._run, *more, env=env)

    def go_on(self, env: Mapping[str, str] | None = None) -> Orc:
        """Resume the run, try again what failed, or start it if there is none yet."""
        stored = self.stored()
        if stored is None:
            return self.orc(*self._run, env=env)
        resume: tuple[str, ...] = ("loop", "resume") if self.system == "loop" else ("resume",)
        if self.system == "swarm" and stored.summary.stop is StopReason.FAILED:
            resume = ("swarm", "retry")  # A swarm ends with the beads that failed, and tries them again when it is told to.
        return self.orc(*resume, stored.id, env=env)

    def orc(self, *arguments: str, env: Mapping[str, str] | None = None) -> Orc:
        """Start any command."""
        self._said += 1
        return Orc(self.repo, self.side / f"said.{self._said}", arguments, env)

    def attend(self, orc: Orc, enough: Callable[[], bool] = lambda: False) -> None:
        """Wait for the end of a process, or until it is enough, as a person who lets the run try again whenever it asks."""
        deadline_s = time.monotonic() + PATIENCE_S
        for look in count():
            if enough() or orc.ended:
                return
            assert time.monotonic() < deadline_s, f"waited in vain: {orc}"
            stored = self.stored() if look % LOOKS_PER_QUESTION == LOOKS_PER_QUESTION - 1 else None
            if stored is not None and stored.summary.asks:
                self.orc("approve", stored.id, stored.summary.asks[0]).end()
            time.sleep(LOOK_S)

    def stored(self) -> StoredRun | None:
        """Return the run as the store has it."""
        with Orchestrator(str(self.repo)) as orchestrator:
            return next(iter(orchestrator.runs()), None)

    def log(self, word: str = "start") -> list[list[str]]:
        """Return the agents' own log: unit, turn, iteration, attempt, launch, process id."""
        file = self.side / "agents.log"
        lines = [line.split() for line in file.read_text().splitlines()] if file.exists() else []
        return [line[1:] for line in lines if line[0] == word]

    def living(self) -> list[int]:
        """Return the processes that carry the nonce of one of the launches."""
        folders = (self.repo / ".git" / "orc" / "launches").glob("*/*~*")
        nonces = [birth.nonce.encode() for folder in folders if (birth := read_birth(folder)) is not None]
        return [pid for pid, environ in processes() if any(nonce in environ for nonce in nonces)]

    def check_started_once(self, *, failed: bool = False) -> None:
        """Check by the agents' own log that no attempt was made twice; those that failed are counted anew after a resume."""
        made = Counter(tuple(line[4:5] if failed else line[:4]) for line in self.log())
        twice = [turn for turn, count in made.items() if count > 1]
        assert not twice, f"started twice: {twice}"

    def check_end(self, last: Orc, *, failed: bool = False) -> None:
        """Check that the run is completed, nothing was done twice, nothing is alive, and the state files are there and whole."""
        self.check_started_once(failed=failed)
        with Orchestrator(str(self.repo)) as orchestrator:
            run = orchestrator.runs()[0]
            assert run.summary.stop is StopReason.COMPLETED, (run.summary, last)
            folded = orchestrator.fold(run)
            for document in folded.system.documents(folded.state, orchestrator.clock.now_us()):
                check_document(Path(run.context.home, document.path), document.body, folded.system)
        assert self.living() == [], "something is left alive"


def check_document(file: Path, body: Any, system: Any) -> None:
    """Check that a state file is there, whole, and valid."""
    if file.suffix != ".json" or callable(body):
        return
    content = file.read_bytes()
    document = msgspec.json.decode(content)
    faults = system.faults(str(file), document) if hasattr(system, "faults") else []
    assert not faults, f"{file}: {faults}"


def _workflow(subject: Subject) -> tuple[str, ...]:
    (subject.side / "workflow.yaml").write_text(WORKFLOW)
    subject.add('echo \'{"status": "COMPLETED", "gate_failure": false}\' | report')
    agent = ("--agent-command", str(subject.agent), "--max-attempts", ATTEMPTS)
    return ("run", "--workflow", str(subject.side / "workflow.yaml"), "--run-id", "run", *agent)


def _loop(subject: Subject) -> tuple[str, ...]:
    subject.add('echo "$ITERATION" >>count')
    check = ("--until", 'test "$(wc -l <count)" -ge 3')
    name = "ralph-count-00000001"
    return ("loop", "run", "count", *check, "--agent-command", str(subject.agent), "--loop-id", name)


def _phases(subject: Subject) -> tuple[str, ...]:
    for role, script in PHASES_ROLES.items():
        subject.add(f'if [ "$AGENT_ID" = {role} ]; then {script}; fi')
    (subject.side / "task.md").write_text(SMALL)
    agent = ("--agent-command", str(subject.agent), "--allow-unmetered")
    return ("phases", "run", str(subject.side / "task.md"), *agent, "--yes", "--run-id", "run")


def _team(subject: Subject) -> tuple[str, ...]:
    for turn, script in DEFAULTS.items():
        subject.add(f'if [ "$TEAM_TURN" = {turn} ]; then {script}; fi')
    one = group("A")
    tasks = [{"id": task, "description": f"Do {task}", "group_id": "A"} for task in one.get("tasks", ())]
    plan = {"status": "PLANNING_COMPLETE", "mode": "simple", "mode_reasoning": "one", "tasks": tasks, "groups": [one]}
    (subject.side / "plan.json").write_text(json.dumps(plan))
    return ("team", "run", "Make it.", "--agent-command", str(subject.agent), "--check", "true")


def _swarm(subject: Subject) -> tuple[str, ...]:
    (subject.side / "beads.jsonl").write_text("".join(json.dumps(bead) + "\n" for bead in BEADS))
    agent = ("--agent", "claude:sonnet", "--agent-command", str(subject.agent), "--max-agents", "2", "--force")
    return ("swarm", "run", str(subject.side / "beads.jsonl"), *agent)


COMMANDS: dict[str, Callable[[Subject], tuple[str, ...]]] = {
    "workflow": _workflow,
    "loop": _loop,
    "phases": _phases,
    "team": _team,
    "swarm": _swarm,
}


@contextmanager
def open_subject(system: str, folder: Path, repo: Path | None = None) -> Iterator[Subject]:
    """Make a run to hurt; at the end no orchestrator of the trial is left."""
    pytest_configure()
    folder.mkdir(parents=True, exist_ok=True)
    try:
        yield Subject(system, repo or make_repo(folder / "repo"), folder / "side")
    finally:
        while Orc.started:
            Orc.started.pop().kill()
        while Rig.made:
            Rig.made.pop().let_go()
