"""`orc attach` at a real terminal: a program in the role of claude shows who has its session, and when."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import pytest

from agent_orchestrator.engine.sender import find_launch
from agent_orchestrator.git.repository import store_folder
from tests.acceptance.rig import Rig, Running, wait_until
from tests.terminal.conftest import Open
from tests.terminal.tmux import Terminal, child_of

REPORT = {"status": "COMPLETED", **dict.fromkeys(("summary", "artifacts", "metrics", "logs", "files_modified", "learnings"))}
RESULT = {"type": "result", "subtype": "success", "is_error": False, "session_id": "of-them", "structured_output": REPORT}
CLIENT = f"""#!/bin/sh
here=${{0%/*}}
echo "$STEP_ID $PWD $ORC_LAUNCH $*" >>"$here/calls.log"
case " $* " in
*" -p "*) cat >"$here/prompt.$STEP_ID" ;;
*) echo "the screen of $STEP_ID"; read -r words; echo "$words" >>"$here/said"; exit 0 ;;
esac
echo '{{"type": "system", "subtype": "init", "session_id": "of-'"$STEP_ID"'", "model": "m"}}'
: >"$here/began.$STEP_ID"
case " $* " in
*" --resume "*) ;;
*) while [ ! -e "$here/go.$STEP_ID" ]; do sleep 0.05; done ;;
esac
echo '{json.dumps(RESULT)}'
"""
STEPS = """
name: two
steps:
  - {id: work, agent: coder, prompt: prompt.md}
  - {id: other, agent: coder, prompt: prompt.md}
"""


@pytest.fixture
def rig(repo: Path) -> Rig:
    made = Rig(repo)
    made.workflow(STEPS)
    client = made.side / "client"
    client.write_text(CLIENT)
    client.chmod(0o755)
    (repo / ".orc.toml").write_text(f'[agents.claude]\nbinary = "{client}"\n')
    return made


def calls(rig: Rig, step: str) -> list[str]:
    log = rig.side / "calls.log"
    return [line for line in log.read_text().splitlines() if line.startswith(f"{step} ")] if log.exists() else []


def start(rig: Rig, *more: str) -> Running:
    running = rig.start("run", "--workflow", "workflow.yaml", "--agent", "claude", "--run-id", "one", *more)
    wait_until(lambda: len(list(rig.side.glob("began.*"))) == 2)
    return running


def attach(orc_at: Open, rig: Rig) -> Terminal:
    """Start `orc attach`, and wait for the client's own screen."""
    terminal = orc_at(rig, "attach", "one", "work", size=(140, 24))
    terminal.wait_for("the screen of work")
    return terminal


def step_of(rig: Rig, step: str) -> dict[str, object]:
    steps = rig.orc("status", "one", "--json").json["steps"]
    found: dict[str, object] = next(one for one in steps if one["id"] == step)
    return found


def test_a_person_has_the_session_while_others_go_on_and_hands_it_back(orc_at: Open, rig: Rig) -> None:
    running = start(rig)
    terminal = attach(orc_at, rig)
    rig.open("go.other")
    wait_until(lambda: step_of(rig, "other")["status"] == "COMPLETED")
    second = orc_at(rig, "attach", "one", "work", size=(140, 24))
    assert "work is attached already, by process " in second.wait_for_end(2)
    assert "is attached already" in rig.orc("attach", "one", "work", "--hand-back").err
    mark = {"ORC_LAUNCH": calls(rig, "work")[1].split()[2]}
    assert find_launch(store_folder(rig.repo), mark) == "one/work/attach", "what the client starts may direct no run"
    terminal.type("the fault is in the lexer")
    terminal.press("Enter")
    terminal.wait_for("Hand work back to its agent? [Y/n/d]")
    assert len(calls(rig, "work")) == 2, "nothing runs beside the person"
    terminal.press("Enter")
    assert "work is handed back; its agent continues" in terminal.wait_for_end(0)
    assert running.end().code == 0
    first, person, last = calls(rig, "work")
    assert "--resume" not in first
    assert "--resume of-work" in person
    assert "--resume of-work" in last
    assert person.split()[1] == str(rig.repo)
    assert (rig.side / "said").read_text() == "the fault is in the lexer\n"
    assert rig.state("one")["steps"]["work"]["attempts"] == 1
    told = rig.orc("history", "one").out
    for said in ("taken over by ", "handed back by "):
        assert said in told
        assert f"{said}a person" not in told, "it is known who it was"


def test_after_a_kill_the_unit_stays_held_and_every_view_says_how_to_go_on(orc_at: Open, rig: Rig) -> None:
    running = start(rig)
    terminal = attach(orc_at, rig)
    ours = child_of(terminal.pid())
    client = child_of(ours)
    os.kill(ours, signal.SIGKILL)
    terminal.wait_for("ended with 137")
    assert "is attached already" in rig.orc("attach", "one", "work", "--hand-back").err, "the client lives, and has the session"
    os.kill(client, signal.SIGKILL)
    way = "orc attach one work"
    assert way in str(step_of(rig, "work")["waits_for"])
    for view in ("status", "show"):
        assert way in rig.orc(view, "one", env={"COLUMNS": "160"}).out
    assert way in orc_at(rig, "watch", "one", size=(140, 24)).wait_for("held")
    rig.open("go.other")
    wait_until(lambda: rig.orc("status", "one", "--json").json["status"] == "waiting")
    assert len(calls(rig, "work")) == 2
    again = attach(orc_at, rig)
    again.press("Enter")
    again.wait_for("Hand work back to its agent? [Y/n/d]")
    again.type("n")
    again.press("Enter")
    assert "work stays with you" in again.wait_for_end(0)
    assert rig.orc("attach", "one", "work", "--hand-back").code == 0
    assert running.end().code == 0
    assert len(calls(rig, "work")) == 4


def test_a_run_in_which_only_the_person_is_left_waits_for_him(orc_at: Open, rig: Rig) -> None:
    running = start(rig, "--no-wait")
    terminal = attach(orc_at, rig)
    rig.open("go.other")
    done = running.end()
    assert done.code == 4, done
    assert "waiting for the person who took over work" in done.out
    assert "hand back with: orc attach one work --hand-back" in done.out
    assert "orc attach one work" in rig.orc().out
    terminal.press("Enter", "Enter")
    assert "continue with: orc resume one" in terminal.wait_for_end(0)
    assert rig.orc("resume", "one").code == 0
    assert len(calls(rig, "work")) == 3


@pytest.mark.parametrize("keys", [("d",), ("n", "--done")], ids=["at the terminal", "later"])
def test_work_that_a_person_did_is_only_reported(orc_at: Open, rig: Rig, keys: tuple[str, ...]) -> None:
    rig.workflow("name: one\nsteps:\n  - {id: work, agent: coder, prompt: prompt.md, check: test -e made}\n")
    running = rig.start("run", "--workflow", "workflow.yaml", "--agent", "claude", "--run-id", "one")
    wait_until(lambda: (rig.side / "began.work").exists())
    terminal = attach(orc_at, rig)
    (rig.repo / "made").touch()
    terminal.press("Enter")
    terminal.wait_for("d: the work is done, and the agent only reports")
    terminal.type(keys[0])
    terminal.press("Enter")
    terminal.wait_for_end(0)
    if len(keys) > 1:
        assert rig.orc("attach", "one", "work", keys[1]).code == 0
    assert running.end().code == 0
    assert "says that the work is done: change nothing more" in (rig.side / "prompt.work").read_text()
    assert "--resume of-work" in calls(rig, "work")[-1]
    step = rig.state("one")["steps"]["work"]
    assert (step["status"], step["attempts"]) == ("COMPLETED", 1)


def test_what_cannot_be_taken_over_is_refused_in_one_sentence(orc_at: Open, rig: Rig) -> None:
    refused = rig.orc("attach", "one", "work")
    assert refused.code == 2
    assert "there is none" in refused.err
    rig.play({"coding": {"until": "go"}})
    rig.workflow("name: one\nsteps:\n  - {id: coding, agent: coder, prompt: prompt.md}\n")
    running = rig.start_run("--run-id", "one")
    running.wait_for("started")
    for unit, said in (("coding", "has no sessions that can be taken over"), ("nobody", "there is no unit 'nobody'")):
        assert said in orc_at(rig, "attach", "one", unit, size=(140, 24)).wait_for_end(2)
    back = rig.orc("attach", "one", "coding", "--hand-back")
    assert back.code == 2
    assert "nobody has taken coding over" in back.err
    rig.open("go")
    assert running.end().code == 0
    assert "it is completed: no agent of it goes on" in orc_at(rig, "attach", "one", "coding", size=(140, 24)).wait_for_end(2)
