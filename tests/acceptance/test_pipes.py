"""A reader that goes away is no error: `orc history RUN | head -1` in a script with pipefail."""

from __future__ import annotations

import contextlib
import errno
import io
import os
import subprocess

import pytest

from agent_orchestrator.surfaces.cli.main import main
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


@pytest.mark.parametrize("closed", ["<&- >&-", "2>&-", "<&- >&- 2>&-"])
def test_streams_that_were_closed_before_the_start_are_nobody_listening(rig: Rig, closed: str) -> None:
    (rig.repo / "do.sh").write_text("true\n")
    rig.workflow("{name: quiet, steps: [{id: only, agent: shell, prompt: do.sh}]}")
    for arguments in (["run", "--workflow", "workflow.yaml", "--run-id", "one"], ["status", "one", "--json"]):
        shell = ["sh", "-c", f'exec "$@" {closed}', "sh", *ORC, *arguments]
        done = subprocess.run(shell, cwd=rig.repo, env=rig.environment(), capture_output=True, timeout=WAIT_S, check=False)
        assert (done.returncode, done.stderr) == (0, b""), done
    assert rig.state("one")["steps"]["only"]["status"] == "COMPLETED"


class FullDisk(io.StringIO):
    """An output on a disk without space."""

    def write(self, text: str) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")


def test_a_full_disk_under_the_output_is_said_in_a_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    with contextlib.redirect_stdout(FullDisk()):
        assert main(["schema"]) == 3
    assert capsys.readouterr().err == "orc: nothing more can be written: No space left on device; free some space.\n"


@pytest.mark.parametrize("group", ["loop", "phases", "swarm", "team"])
def test_a_group_alone_shows_its_commands(rig: Rig, group: str) -> None:
    shown = rig.orc(group)
    assert (shown.code, shown.err) == (0, "")
    assert shown.out == rig.orc(group, "--help").out
