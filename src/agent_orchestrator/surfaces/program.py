"""A command of ours as a program of its own: what it starts outlives the server or the watch that asked for it."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import msgspec

from agent_orchestrator.errors import OrcError, Refused, RunExists, Unavailable
from agent_orchestrator.runs.orchestrator import Orchestrator

STARTED_MAX_S = 300
SHOWN_CHARS = 2_000


def run_orc(orchestrator: Orchestrator, verb: str, *words: str) -> Any:
    """Run a command of `orc` to its end and return what it printed; raise its error, in its own words."""
    settings = orchestrator.settings
    place = () if any(word.startswith("--repo=") for word in words) else (f"--repo={settings.home}",)
    try:
        done = subprocess.run(
            [sys.executable, "-m", "agent_orchestrator.cli", verb, "--json", *place, *words],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            env=dict(settings.environ),
            cwd=settings.home,
            start_new_session=True,
            timeout=STARTED_MAX_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Unavailable(detail=f"orc {verb} could not be run: {error}.") from error
    try:
        printed: Any = msgspec.json.decode(done.stdout)
    except msgspec.DecodeError:
        printed = None
    if isinstance(printed, dict) and isinstance(error_said := printed.get("error"), dict):
        raise _find_error(error_said, verb)
    if done.returncode != 0 or printed is None:
        said = done.stderr.decode("utf-8", "replace").strip()[-SHOWN_CHARS:]
        raise Unavailable(detail=f"orc {verb} ended with code {done.returncode}: {said or 'it said nothing'}")
    return printed


def _find_error(said: dict[str, Any], verb: str) -> OrcError:
    if said.get("kind") == RunExists.__name__:
        return RunExists(run=verb, status="there")
    return Refused(why=str(said.get("message", "")))
