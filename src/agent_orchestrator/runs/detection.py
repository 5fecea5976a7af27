"""Finds out by its files how a project runs its tests."""

from __future__ import annotations

import shutil
from pathlib import Path

from agent_orchestrator.core.limits import REPORT_LIMIT_BYTES

DETECTED = (
    ("package.json", '"test"', "npm test --silent"),
    ("Cargo.toml", "", "cargo test"),
    ("go.mod", "", "go test ./..."),
    ("pyproject.toml", "pytest", "python -m pytest -q"),
    ("pytest.ini", "", "python -m pytest -q"),
    ("tox.ini", "[pytest]", "python -m pytest -q"),
    ("setup.cfg", "[tool:pytest]", "python -m pytest -q"),
    ("Makefile", "\ntest:", "make test"),
)
"""A file, what must stand in it, and the command that runs the tests then."""


def detect_tests(home: Path) -> str | None:
    """The command that runs the project's tests, by the files it has; None when nothing is recognised."""
    for name, needle, command in DETECTED:
        file = home / name
        try:
            if file.stat().st_size > REPORT_LIMIT_BYTES:
                continue
            text = file.read_text("utf-8", "replace")
        except OSError:
            continue
        if needle in text and shutil.which(command.split()[0]) is not None:
            return command
    return None
