"""Real clients behind each wall: they do their work with all their tools, and reach nothing else."""

from __future__ import annotations

import subprocess

import pytest

from agent_orchestrator.core.sandbox import Wall
from agent_orchestrator.testing.model_server import Behaviour, Reply, Say, Shell, Write
from tests.clients.rig import Rig, report
from tests.walls import WALLS, need

INTRUSION = (
    "cp ~/.ssh/id stolen; touch ~/planted; echo 'echo x' > {repo}/.git/hooks/post-checkout; echo x > {repo}/planted; "
    "head -c 16 {repo}/.git/orc/orc.db > journal; echo by hand > made.txt"
)


def commit(rig: Rig) -> None:
    git = ["git", "-C", str(rig.repo), "-c", "user.name=anna", "-c", "user.email=anna@example.org"]
    subprocess.run([*git, "add", "-A"], check=True, env=rig.environ)
    subprocess.run([*git, "commit", "-qm", "begin"], check=True, env=rig.environ)


def ending(client: str) -> list[Behaviour]:
    """The end of a turn: a report by schema, or a few words where the client has none and the report is a file."""
    return [Reply(report())] if client in ("claude", "codex") else [Say("done")]


@pytest.mark.parametrize("client", ["claude", "codex", "gemini", "opencode"])
@pytest.mark.parametrize("wall", WALLS)
def test_a_client_with_all_its_tools_works_in_its_tree_and_reaches_nothing_else(rig: Rig, client: str, wall: Wall) -> None:
    need(wall)
    (rig.home / ".ssh").mkdir()
    (rig.home / ".ssh" / "id").write_text("the key")
    rig.lane(client, [Write("code.txt", "written"), Shell(INTRUSION.format(repo=rig.repo)), *ending(client)])
    rig.workflow("name: one\nsteps:\n  - {id: work, agent: coder, prompt: prompt.md, check: test -s made.txt}\n")
    commit(rig)
    said = rig.orc("run", "--workflow", "workflow.yaml", "--agent", client, "--sandbox", wall, "--yolo", "--git-worktree")
    run = said.splitlines()[0].split()[-1]
    tree = rig.repo / ".agents" / "worktrees" / run
    assert (tree / "code.txt").read_text().strip() == "written"
    assert (tree / "made.txt").read_text() == "by hand\n"
    assert not (tree / "stolen").exists() or not (tree / "stolen").read_text()
    assert not (tree / "journal").read_text()
    assert not (rig.home / "planted").exists()
    assert not (rig.repo / "planted").exists()
    assert not (rig.repo / ".git" / "hooks" / "post-checkout").exists()
    assert rig.state(run)["steps"]["work"]["status"] == "COMPLETED"
