"""A reader that goes away is no error: `orc history RUN | head -1` in a script with pipefail."""

from __future__ import annotations

import os
import subprocess

import pytest

from tests.acceptance.rig import ORC, WAIT_S, Rig


@pytest.mark.parametrize("arguments", [["history", "one"], ["status", "one"], ["list", "--json"], ["show", "one"], ["--help"]])
def test_a_command_whose_reader_went_away_ends_quietly_and_well(rig: Rig, arguments: list[str]) -> None:
    assert rig.run("--run-id", "one").code == 0
    reader, writer = os.pipe()
    os.close(reader)
    try:
        done = subprocess.run(
            [*ORC, *arguments],
            cwd=rig.repo,
            env=rig.environment(),
            stdin=subprocess.DEVNULL,
            stdout=writer,
            stderr=subprocess.PIPE,
            timeout=WAIT_S,
            check=False,
        )
    finally:
        os.close(writer)
    assert (done.returncode, done.stderr) == (0, b"")
