"""Runs git, with nothing of the caller's environment but what it needs, and turns its failures into a sentence."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from pathlib import Path

from agent_orchestrator.errors import GitFailed
from agent_orchestrator.git.alone import held

TIMEOUT_S = 300.0


def git(where: Path, *arguments: str, env: Mapping[str, str] | None = None) -> str:
    """The trimmed output of a git command; raises GitFailed."""
    return ask_git(where, *arguments, env=env)[1]


def ask_git(
    where: Path, *arguments: str, env: Mapping[str, str] | None = None, answers: tuple[int, ...] = (0,)
) -> tuple[int, str]:
    """The exit code, one of `answers`, and the trimmed output of a git command; raises GitFailed for any other code."""
    base = {"PATH": "/usr/local/bin:/usr/bin:/bin:/opt/homebrew/bin", "LC_ALL": "C", "GIT_OPTIONAL_LOCKS": "0"}
    try:
        done = subprocess.run(
            ["git", "-C", str(where), *arguments],
            env={**base, **(env or {})},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=TIMEOUT_S,
            pass_fds=held(),
            check=False,
        )
    except FileNotFoundError as error:
        raise GitFailed(command=arguments[0], where=where, detail="git is not installed") from error
    except subprocess.TimeoutExpired as error:
        raise GitFailed(command=arguments[0], where=where, detail=f"no answer within {TIMEOUT_S:g} s") from error
    if done.returncode not in answers:
        detail = done.stderr.decode("utf-8", "replace").strip() or f"exit code {done.returncode}"
        raise GitFailed(command=arguments[0], where=where, detail=detail)
    return done.returncode, done.stdout.decode("utf-8", "replace").rstrip("\n")
