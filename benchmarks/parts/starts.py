"""Many `orc run` at the same moment on one store: none may be refused."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks.bench import Bench
from benchmarks.measure import Figure, Row

STARTS, STARTS_ALONE = 200, 40
PATIENCE_S = 120.0
WORKFLOW = "name: one\nsteps:\n  - {id: only, agent: coder, prompt: prompt.md}\n"


def measure(bench: Bench) -> Iterator[Figure]:
    """Start them all, wait for all, and count those that did not complete."""
    repo = bench.folder / "repo"
    repo.mkdir()
    (repo / "prompt.md").write_text("Work.\n")
    (repo / "workflow.yaml").write_text(WORKFLOW)
    (repo / "script.yaml").write_text("[]\n")
    count = bench.size(STARTS if bench.peers else STARTS_ALONE)
    orc = str(Path(sys.executable).with_name("orc"))
    command = [orc, "run", "--workflow", "workflow.yaml", "--rehearse", "script.yaml", "--shared-tree", "--quiet"]
    began_s = time.monotonic()
    running = [
        subprocess.Popen([*command, "--run-id", f"r{n}"], cwd=repo, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        for n in range(count)
    ]
    try:
        said = [one.communicate(timeout=PATIENCE_S)[1].strip() for one in running]
    finally:
        for one in running:
            if one.poll() is None:
                one.kill()
    refused = [text for one, text in zip(running, said, strict=True) if one.returncode != 0]
    why = refused[0].splitlines()[-1][:200] if refused and refused[0] else ""
    note = f"all over after {time.monotonic() - began_s:.0f} s"
    yield Row(
        what=f"{count} simultaneous `orc run` on one store: refused", value=len(refused), unit="", target=0, why=why, note=note
    )
