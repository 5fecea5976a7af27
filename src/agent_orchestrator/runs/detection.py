"""Finds out by its files how a project runs its tests."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import msgspec

from agent_orchestrator.bounded import read_bounded
from agent_orchestrator.core.limits import REPORT_LIMIT_BYTES

PYTEST = "python -m pytest -q"
NO_TESTS = "no test specified"
"""The words of the script that `npm init` writes where there are no tests."""


class Detected(NamedTuple):
    """A command that runs a project's tests, and the reason why it does."""

    command: str
    why: str


def _scripts_of(text: str) -> str | None:
    try:
        script = msgspec.json.decode(text)["scripts"]["test"]
    except (msgspec.DecodeError, LookupError, TypeError):
        return None
    return "its package.json has a test script" if isinstance(script, str) and NO_TESTS not in script else None


def _target(name: str) -> Callable[[str], str | None]:
    pattern = re.compile(rf"^(?:[\w./-]+[ \t]+)*{name}(?:[ \t]+[\w./-]+)*[ \t]*:(?!=)", re.M)
    return lambda text: f"its Makefile has a target `{name}`" if pattern.search(text) else None


def _mentions(word: str, why: str) -> Callable[[str], str | None]:
    return lambda text: why if word in text else None


RULES: tuple[tuple[str, Callable[[str], str | None], str], ...] = (
    ("package.json", _scripts_of, "npm test --silent"),
    ("Cargo.toml", _mentions("", "it has a Cargo.toml"), "cargo test"),
    ("go.mod", _mentions("", "it has a go.mod"), "go test ./..."),
    ("pyproject.toml", _mentions("pytest", "its pyproject.toml names pytest"), PYTEST),
    ("pytest.ini", _mentions("", "it has a pytest.ini"), PYTEST),
    ("tox.ini", _mentions("[pytest]", "its tox.ini configures pytest"), PYTEST),
    ("setup.cfg", _mentions("[tool:pytest]", "its setup.cfg configures pytest"), PYTEST),
    ("pom.xml", _mentions("", "it has a pom.xml"), "mvn -q test"),
    ("mix.exs", _mentions("", "it has a mix.exs"), "mix test"),
    ("Makefile", _target("test"), "make test"),
    ("Makefile", _target("check"), "make check"),
)
"""A file, what it says about tests, and the command that runs them then."""


def detect_check(home: Path) -> Detected | None:
    """Return the command that runs the project's tests, by the files it has; None when nothing is recognised."""
    for name, look, command in RULES:
        file = home / name
        try:
            text = read_bounded(file, REPORT_LIMIT_BYTES).decode("utf-8", "replace")
        except OSError:
            continue
        why = look(text)
        if why is not None and (found := _runnable(command)) is not None:
            return Detected(found, why)
    return None


def detect_tests(home: Path) -> str | None:
    """Return the same command alone."""
    found = detect_check(home)
    return found.command if found is not None else None


def _runnable(command: str) -> str | None:
    """Return the command with a program that is there; some machines have Python only as `python3`."""
    program, _, rest = command.partition(" ")
    names = (program, "python3") if program == "python" else (program,)
    return next((f"{name} {rest}" for name in names if shutil.which(name) is not None), None)
