"""`orc steer`: words of a person for agents, in their next prompt or at once."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.acceptance.rig import Rig, Running, wait_until
from tests.acceptance.swarm_rig import SwarmRig

KEEPS = """#!/bin/sh
here=${0%/*}
echo "$STEP_ID" >>"$here/launches.log"
n=$(grep -c "^$STEP_ID$" "$here/launches.log")
cat >"$here/prompt.$STEP_ID.$n"
while [ "$STEP_ID" = coding ] && [ "$n" = 1 ] && [ ! -e "$here/go" ]; do sleep 0.02; done
echo '{"status": "COMPLETED"}' >"$REPORT_PATH"
"""


@pytest.fixture
def rig(repo: Path) -> Rig:
    rig = Rig(repo)
    agent = rig.side / "keeps.sh"
    agent.write_text(KEEPS)
    agent.chmod(0o755)
    return rig


def start(rig: Rig) -> Running:
    running = rig.start("run", "--workflow", "workflow.yaml", "--agent-command", str(rig.side / "keeps.sh"), "--run-id", "one")
    running.wait_for("coding    started")
    return running


def prompt(rig: Rig, step: str, launch: int = 1) -> str:
    return (rig.side / f"prompt.{step}.{launch}").read_text()


def test_words_stand_first_in_the_next_prompt_of_the_unit_and_in_no_other(rig: Rig) -> None:
    running = start(rig)
    told = rig.orc("steer", "one", "code_review", "look at the lexer")
    assert told.code == 0, told
    assert "code_review is told with its next prompt" in told.out
    rig.open("go")
    assert running.end().code == 0
    assert prompt(rig, "code_review").startswith("## First of all\n\nlook at the lexer\n")
    assert "lexer" not in prompt(rig, "coding")
    assert "steered: look at the lexer, by " in rig.orc("history", "one").out


def test_now_stops_the_agent_which_goes_on_in_the_same_attempt_and_has_read_the_words(rig: Rig) -> None:
    running = start(rig)
    told = rig.orc("steer", "one", "coding", "the other file", "--now")
    assert told.code == 0, told
    done = running.end()
    assert done.code == 0, done
    assert "the other file" not in prompt(rig, "coding", 1)
    assert prompt(rig, "coding", 2).startswith("## First of all\n\nthe other file\n")
    assert rig.state("one")["steps"]["coding"]["attempts"] == 1


def test_what_cannot_be_told_is_refused_in_one_sentence(rig: Rig) -> None:
    running = start(rig)
    for arguments, said in (
        (("one", "nobody", "words"), "there is no unit 'nobody'; there are: planning, coding, code_review"),
        (("one", " "), "there is nothing to tell"),
        (("one", "coding", "several", "words"), "Give the words as one argument"),
    ):
        refused = rig.orc("steer", *arguments)
        assert refused.code == 2, refused
        assert said in refused.err
    rig.open("go")
    assert running.end().code == 0
    refused = rig.orc("steer", "one", "words")
    assert refused.code == 2
    assert "there is no next prompt" in refused.err


def test_a_bead_at_work_is_told_now(repo: Path) -> None:
    rig = SwarmRig(repo)
    rig.hold("b1")
    running = rig.start_dispatch("b1")
    wait_until(rig.launches)
    run = rig.orc("list", "--json").json["runs"][0]["run_id"]
    (rig.side / "hold.b1").unlink()  # The next agent is not held.
    told = rig.orc("steer", run, "b1", "the other way", "--now")
    assert told.code == 0, told
    rig.open("go")
    assert running.end().code == 0
    assert rig.prompt("b1").startswith("## First of all\n\nthe other way\n")
