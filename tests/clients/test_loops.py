"""A loop with a real client: fresh context in every iteration, or one session when that is asked for."""

from __future__ import annotations

import json

import pytest

from agent_orchestrator.testing.model_server import Behaviour, Reply, Shell, Write
from tests.clients.rig import Rig, charged, counts, report

LOOP = "ralph-write-two-files-0a1b2c3d"


@pytest.mark.parametrize("client", ["claude", "codex"])
@pytest.mark.parametrize("continued", [False, True])
def test_iterations_share_a_session_only_when_asked(client: str, continued: bool, rig: Rig) -> None:
    said = report(quality_score=50, done=False)
    lane = rig.lane(client, [Write("one.txt", "1"), Reply(said), Write("two.txt", "2"), Reply(said)])
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


DENIED: dict[str, tuple[Behaviour, tuple[str, ...], str]] = {
    "claude": (Shell("make deploy"), (), "--allow-tool 'Bash(make deploy:*)'"),
    "codex": (Write("no.txt", "no"), ("--permission-mode", "read-only"), "--permission-mode workspace-write"),
}


@pytest.mark.parametrize("client", DENIED)
def test_a_refused_tool_is_told_once_and_the_check_decides(client: str, rig: Rig) -> None:
    asked, more, allow = DENIED[client]
    said = report(quality_score=50, done=False)
    lane = rig.lane(client, [asked, Reply(said), asked, Reply(said)])
    until = 'echo x >> ../count; test "$(wc -l < ../count)" -gt 2'  # red before the first and after it, green after the second
    told = rig.orc("loop", "run", "deploy", "--until", until, "--agent", client, "--loop-id", LOOP, "--no-auto-test", *more)
    assert "completed: 2 iterations" in told
    assert told.count(f"orc resume {LOOP} {allow}") == 1, told
    first, second = (json.dumps(lane.requests[number]) for number in (0, 2))
    assert "Tools that were refused before" not in first
    assert "Tools that were refused before" in second


def test_a_client_may_run_the_check_itself_and_look_at_the_repository(rig: Rig) -> None:
    said = report(quality_score=50, done=False)
    check = """test -f "two, three.txt" && python3 -c 'print(1, 2)'"""
    rig.lane("claude", [Shell(check), Shell("git log --oneline"), Write("two, three.txt", "2"), Reply(said)])
    told = rig.orc("loop", "run", "write", "--until", check, "--agent", "claude", "--loop-id", LOOP)
    assert "completed: 1 iteration" in told
    assert "refused" not in told


def test_a_tool_that_is_allowed_is_not_refused(rig: Rig) -> None:
    said = report(quality_score=50, done=False)
    rig.lane("claude", [Shell("touch two.txt; python3 -V"), Reply(said)])
    allowed = ("--allow-tool", "Bash(python3:*)", "--allow-tool", "Bash(touch *)")
    told = rig.orc("loop", "run", "write", "--until", "test -f two.txt", "--agent", "claude", "--loop-id", LOOP, *allowed)
    assert "completed: 1 iteration" in told
    assert "refused" not in told
