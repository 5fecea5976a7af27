"""`orc swarm attach` on a terminal: how tmux is asked to show a bead's session."""

from __future__ import annotations

import os
import pty
import subprocess
from pathlib import Path

import pytest

from tests.acceptance.rig import ORC, WAIT_S
from tests.acceptance.swarm_rig import SwarmRig


@pytest.mark.parametrize(("inside", "asked"), [("", "attach-session"), ("/tmp/tmux-0/default,1,0", "switch-client")])
def test_a_session_is_joined_from_outside_and_from_inside_tmux(repo: Path, inside: str, asked: str) -> None:
    rig = SwarmRig(repo)
    assert rig.dispatch("bd.1").code == 0
    tmux = rig.side / "bin" / "tmux"
    tmux.parent.mkdir()
    tmux.write_text(f'#!/bin/sh\necho "$@" >>{rig.side}/tmux.log\n')
    tmux.chmod(0o755)
    environ = rig.environment({"PATH": f"{tmux.parent}:{os.environ['PATH']}", "TMUX": inside})
    ours, theirs = pty.openpty()
    try:
        command = [*ORC, "swarm", "attach", "bd.1"]
        done = subprocess.run(command, cwd=repo, env=environ, stdin=theirs, stdout=theirs, timeout=WAIT_S, check=False)
    finally:
        os.close(theirs)
        os.close(ours)
    assert done.returncode == 0
    assert (rig.side / "tmux.log").read_text().splitlines() == ["has-session -t =agent-bd_1", f"{asked} -t =agent-bd_1"]
