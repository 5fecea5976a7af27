"""The tools of all four agents: running a program, running the tests, and the report that every agent owes."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parent.parent
"""The scratch folder of the demonstration."""

_FAILED = re.compile(r"^FAILED (\S+)", re.M)


def run(*command: str) -> tuple[int, str]:
    """Exit code and output of a program, started in the working tree."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


def run_tests(*which: str) -> tuple[int, str]:
    """Runs these tests, or all of them."""
    return run(sys.executable, "-m", "pytest", "-q", *which)


def failed_tests(output: str) -> list[str]:
    """The tests that failed, by what pytest printed."""
    return _FAILED.findall(output)


def say(text: str) -> None:
    """A line of the agent's output, at once: `orc logs` shows it while we work."""
    print(text, flush=True)


def report(**fields: Any) -> None:
    """Writes the one JSON object with which an agent answers, whole or not at all."""
    path = Path(os.environ["REPORT_PATH"])
    draft = path.with_suffix(".draft")
    draft.write_text(json.dumps({"status": "COMPLETED", **fields}, indent=2), "utf-8")
    draft.replace(path)
