"""Lets another process of ours drive a run in the background, and makes sure that it really does before saying so."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from agent_orchestrator.beneath import open_own
from agent_orchestrator.errors import Unavailable
from agent_orchestrator.runs.facts import run_facts
from agent_orchestrator.runs.orchestrator import Orchestrator
from agent_orchestrator.store.port import StoredRun
from agent_orchestrator.surfaces.cli.drive import Manner
from agent_orchestrator.surfaces.cli.screen import Screen, print_json
from agent_orchestrator.systems import about

POLL_S = 0.05
POLLS_MAX = 1_200
LOG_SHOWN_CHARS = 2_000
HANDED_ON = (
    *("max_parallel", "max_attempts", "max_iterations", "timeout", "interactive", "auto_test", "test_command"),
    *("checkpoint_interval", "execution_mode", "allow_fewer_tests", "protect", "agent", "agent_command", "rehearse"),
    *("budget_usd", "budget_tokens", "max_time", "day_budget_usd", "allow_unmetered", "publish", "allow_tools"),
    *("permission_mode", "adopt_changes", "adopt_edits", "shared_tree"),
)
"""Options of going on that the process in the background is given, too, where a command has them."""
SWITCHES = ("interactive", "auto_test", "publish", "adopt_edits")
"""Those of them that can be said yes and no to."""


def resume_arguments(run: StoredRun, manner: Manner, given: Mapping[str, Any] | None = None) -> list[str]:
    """Return the command line of `resume`, with what this command was given."""
    arguments = ["resume", run.id, "--repo", run.context.home]
    arguments += ["--no-wait"] if manner.no_wait else []
    for flag, value in (("--on-wait", manner.on_wait), ("--on-end", manner.on_end)):
        arguments += [flag, value] if value is not None else []
    for name in HANDED_ON:
        arguments += _words(name, (given or {}).get(name))
    return arguments


def _words(name: str, value: Any) -> list[str]:
    """Return an option as words of a command line; none when it was not given."""
    flag = f"--{name.removesuffix('s') if isinstance(value, tuple) else name}".replace("_", "-")
    if isinstance(value, tuple):
        return [word for one in value for word in (flag, one)]
    if isinstance(value, bool):
        return [flag] if value else [f"--no-{flag[2:]}"] if name in SWITCHES else []
    return [flag, str(value)] if value is not None else []


def again_arguments(run: StoredRun, arguments: Sequence[str]) -> list[str]:
    """The same command line in the foreground, for this very run: the last --run-id counts."""
    return [*(one for one in arguments if one not in ("--detach", "--json")), "--run-id", run.id]


def detach(orchestrator: Orchestrator, run: StoredRun, arguments: Sequence[str], manner: Manner) -> int:
    """Starts the driver in a session of its own and waits until it owns the run, or failed to."""
    log = orchestrator.settings.folder / "runs" / f"{run.id}.log"
    before = orchestrator.fold(run).seq
    folder = orchestrator.settings.folder
    with os.fdopen(open_own(folder, log, os.O_WRONLY | os.O_CREAT | os.O_APPEND), "ab") as out:
        start = out.tell()
        child = subprocess.Popen(
            [sys.executable, "-m", "agent_orchestrator.cli", *arguments],
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            env=dict(orchestrator.settings.environ),
            start_new_session=True,
        )
    code = _wait_until_driven(orchestrator, run, child, before)
    if code is not None:
        with os.fdopen(open_own(folder, log, os.O_RDONLY), "rb") as written:
            written.seek(start)
            said = written.read(LOG_SHOWN_CHARS).decode("utf-8", "replace").strip() or f"it exited with code {code}"
        raise Unavailable(detail=f"Run {run.id} could not be started in the background: {said}")
    if manner.as_json:
        fresh = orchestrator.store.run(run.id) or run
        print_json({**run_facts(fresh, orchestrator.owner(run)), "log": str(log), "pid": child.pid})
        return 0
    screen = Screen(orchestrator.settings.environ)
    screen.line(f"{about(run.system).noun} {run.id}")
    if manner.quiet:
        return 0
    screen.line(f"running in the background in process {child.pid}; its log: {log}")
    screen.line(f"watch: orc watch {run.id}   stop: orc pause {run.id}")
    return 0


def _wait_until_driven(orchestrator: Orchestrator, run: StoredRun, child: subprocess.Popen[bytes], before: int) -> int | None:
    """None when the run is driven (or was, to its end); else the child's exit code."""
    for _ in range(POLLS_MAX):
        if orchestrator.owner(run) is not None and orchestrator.store.rows(run.id, before):
            return None
        try:
            code = child.wait(POLL_S)
        except subprocess.TimeoutExpired:
            continue
        # A short run may be over by now: the journal shows that it was driven.
        return None if orchestrator.store.rows(run.id, before) else code
    child.kill()
    return child.wait()
