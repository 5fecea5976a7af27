"""gemini and opencode, each alive once: a file written, the session known, tokens counted to the last one."""

from __future__ import annotations

import pytest

from agent_orchestrator.testing.model_server import Say, Write
from tests.clients.rig import Rig, charged, counts


@pytest.mark.parametrize("client", ["gemini", "opencode"])
def test_it_writes_a_file_and_what_it_consumed_is_counted(client: str, rig: Rig) -> None:
    lane = rig.lane(client, [Write(str(rig.repo / "hello.txt"), "hi"), Say("It is done.")])
    summary, run = rig.run(agent=client)
    assert summary.status == "completed", rig.state(run)
    assert (rig.repo / "hello.txt").read_text().strip() == "hi"
    assert rig.launches(run)[0]["session"]
    assert counts(rig.usage(run)) == charged(lane)
