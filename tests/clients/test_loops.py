"""A loop with a real client: fresh context in every iteration, or one session when that is asked for."""

from __future__ import annotations

import json

import pytest

from agent_orchestrator.testing.model_server import Answer, Write
from tests.clients.rig import Rig, charged, counts, report

LOOP = "ralph-write-two-files-0a1b2c3d"


@pytest.mark.parametrize("client", ["claude", "codex"])
@pytest.mark.parametrize("continued", [False, True])
def test_iterations_share_a_session_only_when_asked(client: str, continued: bool, rig: Rig) -> None:
    said = report(quality_score=50, done=False)
    lane = rig.lane(client, [Write("one.txt", "1"), Answer(said), Write("two.txt", "2"), Answer(said)])
    more = ["--continue-session"] if continued else []
    told = rig.orc(
        *("loop", "run", "write two files", "--until", "test -f two.txt", "--agent", client, "--loop-id", LOOP, *more),
    )
    assert "completed: 2 iterations" in told
    state = json.loads((rig.repo / ".aiwg" / "ralph" / "loops" / LOOP / "state.json").read_text())
    assert (state["status"], state["iteration"]) == ("completed", 2)
    sessions = [usage.session for usage in rig.usage(LOOP)]
    assert len(sessions) == 2
    assert len(set(sessions)) == (1 if continued else 2)
    assert counts(rig.usage(LOOP)) == charged(lane)
