"""From an empty git repository to a real agent's merged change, in three commands and with no file written by hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.acceptance.stages import Home
from tests.clients.rig import Rig
from tests.clients.test_examples import Installed

CHECK = "test -f fixed.txt"


@pytest.mark.parametrize(("client", "other"), [("claude", "codex"), ("codex", "claude")])
def test_three_commands_lead_from_an_empty_repository_to_a_merged_change(
    client: str, other: str, tmp_path: Path, rig: Rig
) -> None:
    home = Home(tmp_path / "person")
    home.furnish()
    Installed(rig.model, f"task-{client}").move_in(home)
    (home.bin / other).unlink()
    home.more["TMPDIR"] = rig.environ["TMPDIR"]
    home.repo = tmp_path / "empty"
    home.repo.mkdir()
    home.git("init", "--quiet", "--initial-branch=main")
    said = home.do(f'orc run "write fixed.txt" --check "{CHECK}"')
    assert f"orc: agent: {client} (the only one that is installed and logged in)" in said
    assert "check     check passed" in said
    assert not (home.repo / "fixed.txt").exists()
    run = next(line.split()[1] for line in said.splitlines() if line.startswith("run "))
    assert "+yes" in home.do(f"orc diff {run}")
    assert f"orc merge {run}" in home.do("orc report")
    home.do(f"orc merge {run}")
    assert (home.repo / "fixed.txt").read_text().strip() == "yes"
    assert "fixed.txt" in home.do("git show --stat --format=%s HEAD")
    assert home.do("git status --porcelain") == ""
    told = home.do("orc report")
    assert f"`{CHECK}` passed" in told
    assert f"orc show {run}" in told
