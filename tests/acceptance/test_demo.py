"""`make demo`: the whole story, told once and interrupted once. The script checks its own claims; here the traces are checked."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

from tests.acceptance.rig import ROOT, WAIT_S, is_alive, wait_until

SCRIPT = ROOT / "examples" / "demo" / "run.sh"
STARTS = {
    "plan iteration 0",
    "code iteration 0",
    "review iteration 0",
    "code iteration 1",
    "review iteration 1",
    "approval iteration 1",
}


def _environment(scratch: Path) -> dict[str, str]:
    """The venv first on the PATH, as the Makefile puts it; no pauses for readers."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return {**os.environ, "PATH": path, "TMPDIR": str(scratch), "ORC_DEMO_PAUSE_S": "0", "COLUMNS": "80"}


def _folder(scratch: Path) -> Path:
    (folder,) = scratch.glob("orc-demo.*")
    return folder


def _starts(folder: Path) -> dict[str, int]:
    """Return what the agents wrote about their own starts: step and iteration, and the process."""
    lines = (folder / "launches.log").read_text().splitlines()
    return {start: int(pid) for start, pid in (line.split(" process ") for line in lines)}


def test_the_demonstration_tells_its_story_and_every_fact_of_it_is_true(tmp_path: Path) -> None:
    done = subprocess.run(
        ["bash", str(SCRIPT)],
        cwd=tmp_path,
        env=_environment(tmp_path),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=WAIT_S * 6,
        check=False,
    )
    said = done.stdout
    assert done.returncode == 0, (said, done.stderr)
    assert said.rstrip().endswith("one kill -9, no work lost, nothing done twice."), said
    folder = _folder(tmp_path)

    killed = int(re.findall(r"^\$ kill -9 (\d+)$", said, re.M)[0])
    assert not is_alive(killed)
    assert said.index(f"$ kill -9 {killed}") < said.index("nothing is running it") < said.index("$ orc resume demo")
    assert "check failed with exit code 1" in said
    assert said.index("loops back to code") < said.index("$ orc approve demo") < said.index("run demo completed: 4/4 steps")

    starts = _starts(folder)
    assert set(starts) == STARTS
    assert len((folder / "launches.log").read_text().splitlines()) == len(STARTS)
    assert f"the coder, process {starts['code iteration 0']}, still lives" in said

    printed = said[said.index("$ cat .agents/runs/demo/run_state.json\n") :].split("\n", 1)[1]
    state, _ = json.JSONDecoder().raw_decode(printed)
    assert state == json.loads((folder / "project" / ".agents" / "runs" / "demo" / "run_state.json").read_text())
    assert {step["status"] for step in state["steps"].values()} == {"COMPLETED"}
    assert {unit: step["iteration_count"] for unit, step in state["steps"].items()} == {
        "plan": 0,
        "code": 1,
        "review": 1,
        "approval": 1,
    }
    assert "(items + per_page - 1) // per_page" in (folder / "project" / "pages" / "__init__.py").read_text()


def test_ctrl_c_ends_the_demonstration_and_everything_it_started(tmp_path: Path) -> None:
    with (tmp_path / "said").open("wb") as out:
        process = subprocess.Popen(
            ["bash", str(SCRIPT)],
            cwd=tmp_path,
            env=_environment(tmp_path),
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # a test run in the background ignores it
        )
    wait_until(lambda: "thought 2" in (tmp_path / "said").read_text() or process.poll() is not None)
    os.killpg(process.pid, signal.SIGINT)
    assert process.wait(WAIT_S) == 130, (tmp_path / "said").read_text()
    folder = _folder(tmp_path)
    assert not is_alive(_starts(folder)["code iteration 0"])
    state = json.loads((folder / "project" / ".agents" / "runs" / "demo" / "run_state.json").read_text())
    assert state["steps"]["code"]["last_error"] == "aborted: the demonstration was interrupted"
