"""Processes that agents leave behind. What carries the mark of the launch is stopped with it; what took it off lives on,
and is still known to come from there."""

from __future__ import annotations

import shlex
import sys
import time
from pathlib import Path

import agent_orchestrator
from tests.unit.process.rig import PATIENCE_S, name, run_to_end, sh

SOURCE = Path(agent_orchestrator.__file__).parents[1]
LEFT_BEHIND = """
import os, sys, time
from pathlib import Path
folder, said = Path(sys.argv[1]), Path(sys.argv[2])
os.closerange(3, 256)
os.write(os.open(str(said) + ".begun", os.O_WRONLY | os.O_CREAT), b"x")
os.closerange(3, 256)
limit = time.monotonic() + 60
while time.monotonic() < limit and not said.with_suffix(".go").exists():
    time.sleep(0.01)
from agent_orchestrator.core.who import Surface
from agent_orchestrator.engine.sender import find_sender
said.with_suffix(".new").write_text(str(find_sender(folder, {}, Surface.CLI).launch))
said.with_suffix(".new").rename(said)
"""


def test_a_process_without_marks_that_an_agent_left_behind_is_known_by_its_session(tmp_path: Path) -> None:
    program, said = tmp_path / "left.py", tmp_path / "said"
    program.write_text(LEFT_BEHIND)
    words = shlex.join(["env", "-i", f"PYTHONPATH={SOURCE}", sys.executable, str(program), str(tmp_path), str(said)])
    wait = f"until [ -e {shlex.quote(str(said))}.begun ]; do sleep 0.01; done"
    ending = run_to_end(tmp_path, sh(tmp_path, f"{words} >/dev/null 2>&1 & {wait}; exit 0"))
    assert ending.exit_code == 0
    said.with_suffix(".go").touch()
    deadline = time.monotonic() + PATIENCE_S
    while not said.exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    assert said.read_text() == name()
