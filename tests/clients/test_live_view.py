"""A real client at a real terminal: the view shows the tool that it uses and its tokens, and a key approves its work."""

from __future__ import annotations

import re
import sys

import pytest

from agent_orchestrator.testing.model_server import Reply, Shell
from tests.clients.rig import ROOT, Rig, report, until
from tests.clients.test_transcripts import STRUCTURED, TOOLS
from tests.terminal.tmux import Terminal

ASKED = "name: one\nsteps:\n  - {id: work, agent: coder, prompt: prompt.md, human_in_the_loop: true}\n"
SAID = "The gate is open."


@pytest.mark.parametrize("client", STRUCTURED)
def test_the_view_shows_the_tool_in_use_and_the_tokens_of_a_real_client(client: str, rig: Rig) -> None:
    rig.workflow(ASKED)
    mode = {"claude": "allowed_tools = ['Bash']"}.get(client)
    wait = "while [ ! -e gate ]; do sleep 0.1; done"
    rig.lane(client, [Shell(wait), Reply(report(summary=SAID))], *([mode] if mode else []))
    terminal = Terminal(140, 40)
    try:
        command = [sys.executable, "-m", "agent_orchestrator.cli", "run", "--workflow", "workflow.yaml", "--agent", client]
        terminal.start(command, rig.repo, {**rig.environ, "PYTHONPATH": str(ROOT / "src")})
        tool = re.compile(rf"work  working  coder  ● {TOOLS[client]} while \[ ! -e gate \]; do.* \d[\d,]+ tokens")
        until(lambda: tool.search(terminal.screen()) or "ended with" in terminal.screen())
        assert tool.search(terminal.screen()), terminal.all()
        (rig.repo / "gate").touch()
        until(lambda: "[y] approve" in terminal.screen() or "ended with" in terminal.screen())
        assert f"? work: Approve step work? {SAID}" in terminal.screen()
        until(lambda: "1 file changed" in terminal.screen())
        terminal.press("y")
        terminal.wait_for_end(0)
        assert "work      approved by " in terminal.screen()
    finally:
        (rig.repo / "gate").touch()
        terminal.close()
