"""A person takes over the session of a real client at a terminal, and hands it back."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent_orchestrator.testing.model_server import Broken, Reply, Say, Write
from tests.clients.rig import MODELS, ROOT, Rig, charged, counts, report, until
from tests.terminal.tmux import Terminal, child_of

WORDS = "The fault is in the lexer"
SCREENS = {
    "claude": ("accept edits on", "/exit"),
    "codex": ("for shortcuts", "/exit"),
    "gemini": ("Type your message", "/quit"),
    "opencode": ("ctrl+p", "/exit"),
}
"""The words on a client's screen when one can type, and the command that leaves it."""
WHOLE = ("claude", "codex")
"""Their figures are those of the whole session."""


@pytest.fixture
def terminals() -> Iterator[list[Terminal]]:
    made = [Terminal(120, 40), Terminal(120, 40)]
    yield made
    for one in made:
        one.close()


def attach(rig: Rig, terminal: Terminal, client: str) -> None:
    """Start `orc attach`, and wait for the client's own screen."""
    words = [sys.executable, "-m", "agent_orchestrator.cli", "attach", "one", "work"]
    terminal.start(words, rig.repo, {**rig.environ, "PYTHONPATH": str(ROOT / "src")})
    ready, _ = SCREENS[client]
    until(lambda: ready in terminal.screen() or "ended with" in terminal.screen())
    assert ready in terminal.screen(), terminal.all()


def kill_attach(rig: Rig, terminal: Terminal) -> None:
    """Kill `orc attach` and its client: the unit stays held, and that is said."""
    ours = child_of(terminal.pid())
    client = child_of(ours)
    os.kill(ours, signal.SIGKILL)
    with contextlib.suppress(ProcessLookupError):  # It may have ended with its terminal's shell.
        os.kill(client, signal.SIGKILL)
    until(lambda: not Path(f"/proc/{client}").exists())
    held = json.loads(rig.orc("status", "one", "--json"))
    assert (held["status"], held["taken_over"]) == ("waiting", ["work"])
    assert "orc attach one work" in held["steps"][0]["waits_for"]


def greet(rig: Rig, client: str) -> None:
    """Answer beforehand what the client asks everybody who starts it for the first time."""
    if client == "claude":
        del rig.environ["CLAUDE_CODE_OAUTH_TOKEN"]
        file = rig.home / ".claude.json"
        known = {"hasCompletedOnboarding": True, "theme": "dark", "projects": {str(rig.repo): {"hasTrustDialogAccepted": True}}}
        known["customApiKeyResponses"] = {"approved": [rig.environ["ANTHROPIC_API_KEY"][-20:]], "rejected": []}
        file.write_text(json.dumps(known))
    elif client == "codex":
        known_to_codex = f'[projects."{rig.repo}"]\ntrust_level = "trusted"\n'
        known_to_codex += f'[notice.model_migrations]\n"{MODELS["codex"]}" = "gpt-6-sol"\n'
        (rig.home / ".codex" / "config.toml").write_text(known_to_codex)


@pytest.mark.parametrize("client", SCREENS)
def test_the_words_of_a_person_are_in_the_session_that_goes_on(client: str, rig: Rig, terminals: list[Terminal]) -> None:
    greet(rig, client)
    lane = rig.lane(client, [Write("hello.txt", "hi"), Broken("silent"), Say("I look at the lexer."), Reply(report())])
    rig.orc("run", "--workflow", "workflow.yaml", "--agent", client, "--run-id", "one", "--detach")
    until(lambda: len(lane.requests) == 2)
    killed, terminal = terminals
    if client in WHOLE:
        attach(rig, killed, client)
        kill_attach(rig, killed)
    attach(rig, terminal, client)
    terminal.type(WORDS)
    until(lambda: WORDS in terminal.screen())
    terminal.press("Enter")
    until(lambda: "I look at the lexer." in terminal.screen())
    assert "attached already" in rig.orc("attach", "one", "work", "--hand-back", code=2)
    _, leave = SCREENS[client]
    terminal.type(leave)
    until(lambda: leave in terminal.screen())
    terminal.press("Enter")
    until(lambda: "Hand work back" in terminal.screen())
    terminal.press("Enter")
    terminal.wait_for_end(0)
    until(lambda: rig.state("one")["steps"]["work"]["status"] == "COMPLETED")
    first, last = rig.launches("one")
    assert first["session"] == last["session"]
    assert rig.state("one")["steps"]["work"]["attempts"] == 1
    told = json.dumps(lane.requests[-1])
    assert WORDS in told
    assert "hello.txt" in told, "the session remembers what it did"
    if client in WHOLE:
        assert counts(rig.usage("one")) == charged(lane), "the person's part is counted, too"
