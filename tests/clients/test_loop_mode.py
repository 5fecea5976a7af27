"""A loop with real clients: a red check, a refused tool that is told on, the orchestrator killed, and a green check."""

from __future__ import annotations

import pytest

from agent_orchestrator.testing.model_cast import Cast, Part
from agent_orchestrator.testing.model_server import Behaviour, Held, Reply, Write
from tests.clients.modes import CLIENTS, OTHERS, ModeRig

LOOP = "ralph-write-the-greeting-0a1b2c3d"
OUTSIDE = "/etc/orc-test"
REFUSED = {"claude": ("Write", f"- Write: {OUTSIDE}"), "codex": ("apply_patch", "- apply_patch")}
"""The tool, and how the next iteration is told of it."""
RUN = ("loop", "run", "write the greeting", "--until", "test -s greeting.txt", "--loop-id", LOOP)
SAID = Reply({"status": "OK", "summary": "I wrote it"})


def iteration(number: int, *words: str, script: list[Behaviour]) -> Part:
    return Part(str(number), f"This is iteration {number} of", *words, script=script)


def check(mode: ModeRig, cast: Cast, iterations: int) -> None:
    """The loop completed in so many iterations, each of them played once, whoever drove it."""
    mode.check_books(cast, LOOP)
    state = mode.document(f".aiwg/ralph/loops/{LOOP}/state.json")
    assert (state["status"], state["iteration"]) == ("completed", iterations)
    assert mode.git("status", "--short") == "?? greeting.txt\n?? greetnig.txt"


@pytest.mark.parametrize("client", CLIENTS)
def test_a_loop_from_start_to_completed(client: str, mode: ModeRig) -> None:
    tool, told = REFUSED[client]
    cast = mode.begin(
        client,
        iteration(1, script=[Write("greetnig.txt", "hello"), SAID]),
        iteration(2, "the check failed", script=[Write(OUTSIDE, "hello"), SAID]),
        iteration(3, "Tools that were refused before", told, script=[Write("greeting.txt", "hello"), Held(SAID)]),
        files={"README": "here\n"},
    )
    assert f"{client} was refused {tool}" in mode.kill_in(cast, ["3"], *RUN, "--agent", client), "a person is told, too"
    assert "completed: 3 iterations" in mode.orc("loop", "resume")
    check(mode, cast, 3)


@pytest.mark.parametrize("client", OTHERS)
def test_a_loop_with_a_client_that_has_no_schema(client: str, mode: ModeRig) -> None:
    cast = mode.begin(
        client,
        iteration(1, script=[Write(str(mode.repo / "greetnig.txt"), "hello"), SAID]),
        iteration(2, "the check failed", script=[Write(str(mode.repo / "greeting.txt"), "hello"), Held(SAID)]),
        files={"README": "here\n"},
    )
    mode.kill_in(cast, ["2"], *RUN, "--agent", client)
    assert "completed: 2 iterations" in mode.orc("loop", "resume")
    check(mode, cast, 2)
