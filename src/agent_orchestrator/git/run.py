"""Runs git, with nothing of the caller's environment but what it needs, and turns its failures into a sentence."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterable, Mapping
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
    code, out = _run(where, arguments, env, answers)
    return code, out.decode("utf-8", "replace").rstrip("\n")


def list_names(where: Path, *arguments: str, env: Mapping[str, str] | None = None) -> list[str]:
    """The file names that a git command with `-z` answers with, whatever their bytes; raises GitFailed."""
    return [os.fsdecode(name) for name in _run(where, arguments, env)[1].split(b"\0") if name]


def give_names(where: Path, *arguments: str, names: Iterable[str], env: Mapping[str, str] | None = None) -> None:
    """Gives file names, or lines about them, to a git command that reads them with `-z --stdin`; raises GitFailed."""
    _run(where, arguments, env, given=b"".join(os.fsencode(name) + b"\0" for name in names))


def _run(
    where: Path,
    arguments: tuple[str, ...],
    env: Mapping[str, str] | None,
    answers: tuple[int, ...] = (0,),
    given: bytes = b"",
) -> tuple[int, bytes]:
    base = {"PATH": "/usr/local/bin:/usr/bin:/bin:/opt/homebrew/bin", "LC_ALL": "C", "GIT_OPTIONAL_LOCKS": "0"}
    try:
        done = subprocess.run(
            ["git", "-C", str(where), *arguments],
            env={**base, **(env or {})},
            input=given,
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
    return done.returncode, done.stdout
