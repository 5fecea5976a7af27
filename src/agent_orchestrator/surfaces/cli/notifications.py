"""Runs the commands of `--on-wait` and `--on-end`: notifications, started beside the run and never waited for by it.

A command that fails or takes too long is a warning. It gets the run's facts in its environment.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from agent_orchestrator.core.effects import AskHuman
from agent_orchestrator.core.events import Ended, Event
from agent_orchestrator.runs.facts import state_file
from agent_orchestrator.surfaces.cli.progress import new_questions
from agent_orchestrator.surfaces.cli.screen import warn

if TYPE_CHECKING:
    from agent_orchestrator.engine.driver import Driver

TIMEOUT_S = 60.0


class Notifications:
    """The observer that starts the commands."""

    def __init__(self, on_wait: str | None, on_end: str | None, environ: Mapping[str, str]) -> None:
        self._on_wait, self._on_end, self._environ = on_wait, on_end, environ
        self._children: list[tuple[str, subprocess.Popen[bytes]]] = []

    def happened(self, driver: Driver, events: Sequence[Event], at_us: int) -> None:
        """Starts what follows from the events."""
        if self._on_wait is not None and new_questions(driver.state, events):
            waiting = [effect.unit for effect in driver.state.doing if isinstance(effect, AskHuman)]
            self._start(self._on_wait, "--on-wait", driver, waiting)
        if self._on_end is not None and any(isinstance(event, Ended) for event in events):
            self._start(self._on_end, "--on-end", driver, [])

    def noticed(self, driver: Driver, text: str) -> None:
        """Notifications are for facts only."""

    def finish(self) -> None:
        """Waits for what still runs, for a while, and says what went wrong."""
        for flag, child in self._children:
            try:
                code = child.wait(TIMEOUT_S)
            except subprocess.TimeoutExpired:
                _kill(child)
                code = child.wait()
            if code:
                said = f"was stopped after {TIMEOUT_S:g} s" if code < 0 else f"ended with exit code {code}"
                warn(f"the {flag} command {said}; the run is not affected.")

    def _start(self, command: str, flag: str, driver: Driver, waiting: list[str]) -> None:
        summary, run = driver.summary(), driver.run
        facts = {
            "RUN_ID": run.id,
            "RUN_STATUS": summary.status,
            "RUN_REASON": summary.detail,
            "WORKFLOW_NAME": run.name,
            "STATE_FILE": state_file(run),
            "WAITING_STEPS": " ".join(waiting),
        }
        try:
            child = subprocess.Popen(
                ["sh", "-c", command],
                cwd=run.context.home,
                env={**self._environ, **facts},
                stdin=subprocess.DEVNULL,
                stdout=sys.stderr.fileno(),
                start_new_session=True,
            )
        except OSError as error:
            warn(f"the {flag} command could not be started: {error.strerror}; the run is not affected.")
            return
        self._children.append((flag, child))
        driver.engine.loop.call_later(TIMEOUT_S, _kill, child)


def _kill(child: subprocess.Popen[bytes]) -> None:
    if child.poll() is None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)
