"""gemini and opencode, alive: a file written, the session known, tokens counted; and what refusals make of them."""

from __future__ import annotations

import pytest

from agent_orchestrator.testing.model_server import Refuse, Say, Write
from tests.clients.rig import Rig, charged, counts

REFUSALS = [("gemini", 401, "auth"), ("gemini", 503, "overloaded"), ("opencode", 403, "auth")]


@pytest.mark.parametrize("client", ["gemini", "opencode"])
def test_it_writes_a_file_and_what_it_consumed_is_counted(client: str, rig: Rig) -> None:
    lane = rig.lane(client, [Write(str(rig.repo / "hello.txt"), "hi"), Say("It is done.")])
    summary, run = rig.run(agent=client)
    assert summary.status == "completed", rig.state(run)
    assert (rig.repo / "hello.txt").read_text().strip() == "hi"
    assert rig.launches(run)[0]["session"]
    assert counts(rig.usage(run)) == charged(lane)


def test_a_session_that_grew_too_long_is_not_judged_by_that_when_it_went_on(rig: Rig) -> None:
    rig.lane("opencode", [Refuse(413, "too large"), Write(str(rig.repo / "hello.txt"), "hi"), Say("It is done.")])
    _, run = rig.run(agent="opencode")
    assert (rig.repo / "hello.txt").read_text().strip() == "hi"
    assert rig.launches(run)[0]["failure"] == "exit", "it exits with 1 for having been refused once: that is tried again"


@pytest.mark.parametrize(("client", "status", "kind"), REFUSALS)
def test_a_refusal_is_known_by_its_status(client: str, status: int, kind: str, rig: Rig) -> None:
    rig.lane(client, [Refuse(status)])
    _, run = rig.run(agent=client)
    assert rig.launches(run)[0]["failure"] == kind
