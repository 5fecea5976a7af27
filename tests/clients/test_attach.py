"""A person takes over the session of a real client at a terminal, and hands it back."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from agent_orchestrator.core.sandbox import Wall
from agent_orchestrator.testing.model_server import Behaviour, Broken, Reply, Say, Shell, Write
from tests.clients.modes import ModeRig
from tests.clients.rig import MODELS, ROOT, Rig, charged, counts, report, until
from tests.clients.test_sandbox import commit
from tests.clients.test_team_mode import MET, PLAN
from tests.terminal.tmux import Terminal, child_of
from tests.walls import WALLS, need

WORDS = "The fault is in the lexer"
SCREENS = {
    "claude": ("accept edits on", "/exit"),
    "codex": ("for shortcuts", "/exit"),
    "gemini": ("Type your message", "/quit"),
    "opencode": ("ctrl+p", "/exit"),
}
"""The words on a client's screen when one can type, and the command that leaves it."""
Play = Callable[[ModeRig], tuple[list[str], str, list[Behaviour], list[Behaviour]]]
BUSY = ("esc to cancel", "esc to interrupt")
"""The words on a client's screen while it works: a command that is typed then may be taken for a message."""
LISTED = {"gemini": "exit the cli"}
"""The words beside that command once the client knows its commands: before, it takes one for a message."""
WHOLE = ("claude", "codex")
"""Their figures are those of the whole session."""


@pytest.fixture
def terminals() -> Iterator[list[Terminal]]:
    made = [Terminal(120, 40), Terminal(120, 40)]
    yield made
    for one in made:
        one.close()


def attach(rig: Rig, terminal: Terminal, client: str, run: str = "one", unit: str = "work", *, yolo: bool = False) -> None:
    """Start `orc attach`, and wait for the client's own screen."""
    words = [sys.executable, "-m", "agent_orchestrator.cli", "attach", run, unit]
    terminal.start(words, rig.repo, {**rig.environ, "PYTHONPATH": str(ROOT / "src")})
    ready = "bypass permissions on" if yolo else SCREENS[client][0]
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


def greet(rig: Rig, client: str, tree: str = "") -> None:
    """Answer beforehand what the client asks everybody who starts it for the first time, in a tree of the repository."""
    if client == "claude":
        del rig.environ["CLAUDE_CODE_OAUTH_TOKEN"]
        file = rig.home / ".claude.json"
        trees = {str(place): {"hasTrustDialogAccepted": True} for place in (rig.repo, rig.repo / tree)}
        known = {
            "hasCompletedOnboarding": True,
            "theme": "dark",
            "projects": trees,
            "bypassPermissionsModeAccepted": True,
            "fullscreenUpsellSeenCount": 9,
        }
        known["customApiKeyResponses"] = {"approved": [rig.environ["ANTHROPIC_API_KEY"][-20:]], "rejected": []}
        file.write_text(json.dumps(known))
    elif client == "codex":
        known_to_codex = f'[projects."{rig.repo}"]\ntrust_level = "trusted"\n'
        known_to_codex += f'[notice.model_migrations]\n"{MODELS["codex"]}" = "gpt-6-sol"\n'
        (rig.home / ".codex" / "config.toml").write_text(known_to_codex)


def talk(terminal: Terminal) -> None:
    """Type the words into the client, and wait for the model's answer."""
    terminal.type(WORDS)
    until(lambda: WORDS in terminal.screen())
    terminal.press("Enter")
    until(lambda: (shown := terminal.screen()) and "I look at the lexer." in shown and not any(one in shown for one in BUSY))


def leave(terminal: Terminal, client: str, unit: str) -> None:
    """Leave the client, and hand the unit back."""
    _, way = SCREENS[client]
    terminal.type(way)
    until(lambda: (shown := terminal.screen()) and way in shown and LISTED.get(client, "") in shown.lower())
    terminal.press("Enter")
    until(lambda: f"Hand {unit} back" in terminal.screen())
    terminal.press("Enter")
    terminal.wait_for_end(0)


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
    talk(terminal)
    assert "attached already" in rig.orc("attach", "one", "work", "--hand-back", code=2)
    leave(terminal, client, "work")
    until(lambda: rig.state("one")["steps"]["work"]["status"] == "COMPLETED")
    first, last = rig.launches("one")
    assert first["session"] == last["session"]
    assert rig.state("one")["steps"]["work"]["attempts"] == 1
    told = json.dumps(lane.requests[-1])
    assert WORDS in told
    assert "hello.txt" in told, "the session remembers what it did"
    if client in WHOLE:
        assert counts(rig.usage("one")) == charged(lane), "the person's part is counted, too"


@pytest.mark.parametrize("wall", WALLS)
def test_the_client_that_a_person_uses_stands_behind_the_wall_of_the_run(rig: Rig, terminals: list[Terminal], wall: Wall) -> None:
    need(wall)
    greet(rig, "claude", ".agents/worktrees/one")
    outside = f"touch {rig.repo}/planted; touch inside"
    lane = rig.lane("claude", [Broken("silent"), Shell(outside), Say("I look at the lexer."), Reply(report())])
    commit(rig)
    wallwords = ("--sandbox", wall, "--yolo", "--git-worktree")
    rig.orc("run", "--workflow", "workflow.yaml", "--agent", "claude", "--run-id", "one", "--detach", *wallwords)
    until(lambda: len(lane.requests) == 1)
    _, terminal = terminals
    attach(rig, terminal, "claude", yolo=True)
    talk(terminal)
    leave(terminal, "claude", "work")
    until(lambda: rig.state("one")["steps"]["work"]["status"] == "COMPLETED")
    assert WORDS in json.dumps(lane.requests[-1])
    assert (rig.repo / ".agents" / "worktrees" / "one" / "inside").exists()
    assert not (rig.repo / "planted").exists()


def loop(rig: ModeRig) -> tuple[list[str], str, list[Behaviour], list[Behaviour]]:
    """A loop of one iteration: its command, its unit, and what the model answers before and after the takeover."""
    words = ["loop", "run", "write the greeting", "--until", "test -s greeting.txt"]
    return words, "loop", [], [Reply({"status": "OK", "summary": "I wrote it"})]


def phases(rig: ModeRig) -> tuple[list[str], str, list[Behaviour], list[Behaviour]]:
    """A task document with one task."""
    off = "## Supervisor Checks\n\n- **Enable**: no\n\n## Outer Ralph Loop\n\n- **Enable**: no\n"
    task = "### Phase 1: Only\n\n#### Task 1.1: Write it\n\n**Success Criteria**:\n- [ ] It is there `test -s greeting.txt`\n"
    (rig.repo / "task.md").write_text(f"# Task: Greeting\n\n## Goal\n\nGreet.\n\n## Phases & Tasks\n\n{task}\n{off}")
    return (
        ["phases", "run", "task.md", "--yes"],
        "1.1",
        [],
        [Reply({"status": "SUCCESS", "summary": "It is written", "criteria": None})],
    )


def team(rig: ModeRig) -> tuple[list[str], str, list[Behaviour], list[Behaviour]]:
    """A team with one group."""
    plan = {**PLAN, "mode": "simple", "tasks": PLAN["tasks"][:1], "groups": PLAN["groups"][:1]}
    ready: dict[str, Any] = {
        "status": "READY_FOR_QA",
        "summary": "I wrote it",
        "unit_tests": {"total": 1, "passed": 1, "failed": 0},
    }
    after = [ready, {"status": "PASS", "summary": "I tested it"}, {"status": "APPROVED", "summary": "Read", "feedback": "Good."}]
    final = {"status": "DONE", "summary": "All of it", "requirements": MET[:1]}
    confirmed = {"status": "APPROVED", "summary": "All of it", "requirements": MET[:1]}
    words = ["team", "run", "People are greeted (check: `test -s greeting.txt`)"]
    return words, "A", [Reply(plan)], [Reply(one) for one in (*after, final, confirmed)]


def swarm(rig: ModeRig) -> tuple[list[str], str, list[Behaviour], list[Behaviour]]:
    """A bead."""
    (rig.repo / "beads.jsonl").write_text(json.dumps({"id": "b1", "prompt": "greet", "verify": "test -s greeting.txt"}) + "\n")
    return ["swarm", "run", "beads.jsonl", "--max-agents", "1"], "b1", [], [Reply({"status": "DONE", "summary": "It is written"})]


def status_of(rig: Rig, run: str) -> str:
    """The run's status, asked in this process."""
    with rig.orchestrator() as orchestrator:
        return orchestrator.find(run).summary.status


@pytest.mark.parametrize("play", [loop, phases, team, swarm])
def test_a_unit_of_every_other_mode_is_taken_over_and_completes(mode: ModeRig, terminals: list[Terminal], play: Play) -> None:
    greet(mode, "claude")
    words, unit, before, after = play(mode)
    lane = mode.lane("claude", [*before, Write("greeting.txt", "hi"), Broken("silent"), Say("I look at the lexer."), *after])
    mode.git("add", "--all")
    mode.git("commit", "--quiet", "-m", "first")
    mode.orc(*words, "--agent", "claude", "--detach")
    until(lambda: len(lane.requests) == len(before) + 2)
    (run,) = [one["run_id"] for one in json.loads(mode.orc("list", "--json"))["runs"]]
    _, terminal = terminals
    attach(mode, terminal, "claude", run, unit)
    talk(terminal)
    leave(terminal, "claude", unit)
    until(lambda: status_of(mode, run) == "completed")
    told = json.dumps(lane.requests[len(before) + 3])
    assert WORDS in told
    assert "greeting.txt" in told, "the session remembers what it did"
