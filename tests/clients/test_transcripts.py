"""`orc logs` shows what a real client said and did, and with --raw the stream that it wrote."""

from __future__ import annotations

import json
import re

import pytest

from agent_orchestrator.testing.model_server import Reply, Say, Shell
from tests.clients.rig import Rig, report

TOOLS = {"claude": "Bash", "codex": "exec_command", "gemini": "run_shell_command", "opencode": "bash"}
TIMED = ("claude", "gemini", "opencode")
"""Those that say when a call began and ended."""
STRUCTURED = ("claude", "codex")
"""Those that answer with a report by its schema, and not with words."""


@pytest.mark.parametrize("client", TOOLS)
def test_the_log_of_a_real_run_shows_its_words_and_its_tool_call(client: str, rig: Rig) -> None:
    words = "The file lists \x1b[2J three things."
    answer = Reply(report(summary=words)) if client in STRUCTURED else Say(words)
    mode = {"claude": "allowed_tools = ['Bash']", "gemini": "permission_mode = 'yolo'"}.get(client)
    rig.lane(client, [Shell("echo one two three"), answer], *([mode] if mode else []))
    summary, run = rig.run(agent=client)
    shown = rig.orc("logs", run, "work")
    assert summary.status == "completed", shown
    took = r"\d+\.\ds · " if client in TIMED else ""
    assert re.search(rf"^● {TOOLS[client]} echo one two three · {took}ok · 1[34] B$", shown, re.M), shown
    assert re.search(r"^(report: COMPLETED: )?The file lists +three things\.$", shown, re.M), shown
    assert re.search(r"^done · [\d,]+ tokens( · \$0\.\d+)?( in this session)?$", shown, re.M), shown
    assert not re.search(r"^\?", shown, re.M), shown
    raw = rig.orc("logs", run, "work", "--raw").splitlines()
    assert [json.loads(line) for line in raw if line.startswith("{")]
