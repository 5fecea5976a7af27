"""A little of `make cluster`: hosts on networks of their own, faults by chance, and the agents' own word on what ran."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.acceptance.rig import ROOT


def missing_namespaces() -> str:
    """Say why there can be no hosts on networks of their own; '' where there can."""
    if os.getuid() != 0:
        return "network namespaces need root"
    probe = f"orc-probe-{os.getpid()}"
    made = subprocess.run(["ip", "netns", "add", probe], capture_output=True, text=True, check=False)
    subprocess.run(["ip", "netns", "del", probe], capture_output=True, check=False)
    return made.stderr.strip()


def test_runs_get_through_faults_drawn_by_chance() -> None:
    if why := missing_namespaces():
        pytest.skip(why)
    words = ("--runs", "3", "--faults", "5", "--seed", "4")
    done = subprocess.run(
        [sys.executable, "-m", "tests.cluster.show", *words], cwd=ROOT, capture_output=True, text=True, timeout=900, check=False
    )
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-2000:]
    assert "through 5 faults" in done.stdout
    assert "nothing ran twice or side by side" in done.stdout
