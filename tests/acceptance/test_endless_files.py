"""Files without an end in the places that orc reads: a terabyte of nothing, a pipe that nobody writes to, a link to /dev/zero."""

from __future__ import annotations

import os
import resource
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.acceptance.rig import Rig

TERABYTE = 2**40
MEMORY_BYTES = 2 * 2**30


def _sparse(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(TERABYTE)


def _zero(path: Path) -> None:
    path.symlink_to("/dev/zero")


ENDLESS: dict[str, Callable[[Path], None]] = {"sparse": _sparse, "pipe": os.mkfifo, "zero": _zero}
SHELL = {"sparse": 'truncate -s 1T "%s"', "pipe": 'mkfifo "%s"', "zero": 'ln -s /dev/zero "%s"'}
SAYS = {
    "sparse": ("1,099,511,627,776 bytes", "is larger than"),
    "pipe": ("not a regular file", "is not a file", "is no state file that can be taken over"),
    "zero": ("not a regular file", "through a link", "is a link", "is not a file", "is no state file that can be taken over"),
}

endless = pytest.mark.parametrize("kind", ENDLESS)


def small_memory() -> None:
    """Leave so little memory that reading on and on would end in an error instead of a dead machine."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))


def told(text: str, kind: str) -> bool:
    """Tell whether a text says why the file was not read, and no traceback."""
    return any(words in text for words in SAYS[kind]) and "Traceback" not in text


@endless
def test_an_endless_report_fails_the_attempt(rig: Rig, kind: str) -> None:
    agent = rig.side / "agent.sh"
    agent.write_text(f"#!/bin/sh\n{SHELL[kind] % '$REPORT_PATH'}\n")
    agent.chmod(0o755)
    arguments = ("run", "--workflow", "workflow.yaml", "--agent-command", str(agent), "--max-attempts", "1")
    failed = rig.orc(*arguments, preexec_fn=small_memory)
    assert failed.code == 1, failed
    assert told(rig.state(failed.run)["steps"]["planning"]["last_error"], kind), rig.state(failed.run)


@endless
@pytest.mark.parametrize(
    ("name", "command"),
    [
        ("flow.yaml", ("run", "--workflow", "flow.yaml", "--agent-command", "true")),
        ("flow.yaml", ("validate", "flow.yaml")),
        ("task.md", ("phases", "plan", "task.md")),
        ("task.md", ("loop", "run", "--task-file", "task.md", "--until", "true", "--agent-command", "true")),
        ("script.yaml", ("run", "--workflow", "workflow.yaml", "--rehearse", "script.yaml")),
        ("run_state.json", ("import", "run_state.json")),
    ],
)
def test_an_endless_file_that_a_command_names_is_refused(rig: Rig, kind: str, name: str, command: tuple[str, ...]) -> None:
    ENDLESS[kind](rig.repo / name)
    refused = rig.orc(*command, preexec_fn=small_memory)
    assert refused.code in (1, 2), refused
    assert told(refused.err + refused.out, kind), refused


@endless
def test_an_endless_state_file_is_put_aside_and_written_again(rig: Rig, kind: str) -> None:
    done = rig.run()
    assert done.code == 0, done
    state = rig.repo / ".agents" / "runs" / done.run / "run_state.json"
    state.unlink()
    ENDLESS[kind](state)
    again = rig.run("--run-id", done.run, "--start-at-step", "coding", preexec_fn=small_memory)
    assert (again.code, "Traceback" in again.err) == (2, False), again
    assert told(again.err, kind), again
    assert rig.state(done.run)["run_id"] == done.run


@endless
def test_the_logs_of_an_endless_launch_are_shown_as_none(rig: Rig, kind: str) -> None:
    done = rig.run()
    for out in (rig.repo / ".git" / "orc").rglob("out"):
        out.unlink()
        if kind != "sparse":  # as much as there is may be printed of a regular file
            ENDLESS[kind](out)
    assert rig.orc("logs", done.run, preexec_fn=small_memory).code == 0
    assert rig.orc("logs", done.run, "--json", preexec_fn=small_memory).code == 0
