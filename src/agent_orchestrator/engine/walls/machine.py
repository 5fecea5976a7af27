"""The walls that this machine can build, found by building each once."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from functools import cache

from agent_orchestrator.core.sandbox import Sandbox, Wall
from agent_orchestrator.engine.walls import confine
from agent_orchestrator.errors import Shortage, is_shortage, says_shortage

BWRAP = "bwrap"
AS_IT_IS = ("--unshare-pid", "--unshare-ipc", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc")
"""The whole system, read-only, with processes of its own."""
TRIAL_TIMEOUT_S = 10.0


def find_walls(path: str | None) -> dict[Wall, str | None]:
    """Return for each wall why it cannot stand here; None where it can. The best comes first."""
    return {Wall.BWRAP: _try_bwrap(path or os.defpath), Wall.LANDLOCK: _try_landlock()}


def choose_wall(path: str | None) -> Wall | None:
    """Return the best wall that stands here; None without any."""
    return next((wall for wall, fault in find_walls(path).items() if fault is None), None)


def find_fault(sandbox: Sandbox, path: str | None) -> str | None:
    """Say why the wall of a run cannot stand here; None when it can."""
    if sandbox.wall is Wall.COMMAND:
        program = sandbox.command[0]
        found = shutil.which(program, path=path)
        return None if found else f"the sandbox command {program} was not found on the PATH"
    fault = find_walls(path)[sandbox.wall]
    return None if fault is None else f"the sandbox {sandbox.wall} cannot be used here: {fault}"


@cache
def _try_bwrap(path: str) -> str | None:
    program = shutil.which(BWRAP, path=path)
    if sys.platform != "linux":
        return "it is for Linux only"
    if program is None:
        return "bwrap was not found on the PATH; install the package bubblewrap"
    return _try([program, *AS_IT_IS, "--", "/bin/true"])


@cache
def _try_landlock() -> str | None:
    if sys.platform != "linux":
        return "it is for Linux only"
    if confine.version() == 0:
        return "this kernel has no Landlock (5.13 or newer, switched on)"
    return None


def _try(command: list[str]) -> str | None:
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=TRIAL_TIMEOUT_S, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        if is_shortage(error):
            raise  # It says nothing about the wall, and must not be remembered.
        return str(error)
    said = done.stderr.decode("utf-8", "replace").strip().splitlines()
    if done.returncode and said and says_shortage(said[-1]):
        raise Shortage(detail=f"the sandbox cannot be tried: {said[-1][:200]}")
    return None if done.returncode == 0 else (said[-1][:200] if said else f"exit code {done.returncode}")
