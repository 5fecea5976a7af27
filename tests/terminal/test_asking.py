"""A question at a real terminal: shown with its evidence, answered by a key, and gone when somebody else was quicker."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import pytest

from tests.acceptance.loop_rig import LoopRig
from tests.acceptance.phases_rig import PhasesRig
from tests.acceptance.rig import ROOT, Rig, wait_until
from tests.acceptance.team_rig import TeamRig
from tests.stores import TOLD
from tests.terminal.conftest import Open
from tests.terminal.tmux import Terminal, child_of

KEYS = "[d] diff  [y] approve  [c] with comments  [n] reject  [l] leave"
CHECKED = """
name: human
steps:
  - {id: coding, agent: coder, prompt: prompt.md, check: "echo 3 passed"}
  - {id: approval, agent: asker, prompt: prompt.md, needs: [coding], human_in_the_loop: true}
"""
SIZES = [(80, 24), (140, 40)]


@pytest.fixture
def rig(repo: Path) -> Rig:
    made = Rig(repo)
    made.workflow(CHECKED)
    made.play({"coding": {"writes": {"made.txt": "one\ntwo\n"}}})
    return made


def run_arguments(rig: Rig, *more: str) -> tuple[str, ...]:
    return ("run", "--workflow", "workflow.yaml", "--wrapper", str(rig.side / "wrapper.py"), "--run-id", "asks", *more)


def asked(orc_at: Open, rig: Rig, size: tuple[int, int] = (80, 24)) -> Terminal:
    terminal = orc_at(rig, *run_arguments(rig), size=size)
    terminal.wait_for(KEYS)
    return terminal


@pytest.mark.parametrize("size", SIZES)
def test_a_question_shows_its_evidence_and_y_approves(orc_at: Open, rig: Rig, size: tuple[int, int]) -> None:
    terminal = asked(orc_at, rig, size)
    shown = terminal.wait_for("1 file changed, +2 -0")
    assert "? approval: Approve step approval?" in shown
    assert "coding: check `echo 3 passed` passed (exit code 0, " in shown
    assert "1/2 steps" in shown
    terminal.press("y")
    shown = terminal.wait_for_end(0)
    assert "approval  approved by " in shown
    assert KEYS not in shown


def test_n_asks_for_comments_and_rejects_with_them(orc_at: Open, rig: Rig) -> None:
    terminal = asked(orc_at, rig)
    terminal.press("n")
    terminal.wait_for("why not (Enter sends, Esc goes back):")
    terminal.type("no täsk is döne")
    terminal.wait_for("goes back): no täsk is döne")
    terminal.press("Enter")
    terminal.wait_for_end(1)
    assert "no täsk is döne" in rig.orc("history", "asks").out


def test_l_leaves_with_the_code_of_a_run_that_waits_and_the_run_goes_on_waiting(orc_at: Open, rig: Rig) -> None:
    terminal = asked(orc_at, rig)
    terminal.press("l")
    shown = terminal.wait_for_end(4)
    assert "answer with: orc approve asks   then: orc resume asks" in shown
    assert rig.orc("status", "asks", "--json").json["status"] == "waiting"


def test_d_shows_the_diff_and_nothing_in_it_steers_the_terminal(orc_at: Open, rig: Rig) -> None:
    evil = "red \x1b[31malert\x1b]0;owned\x07 \x1b[2J end\n" + "more\n" * 60
    rig.play({"coding": {"writes": {"evil.txt": evil}}})
    terminal = orc_at(rig, *run_arguments(rig), size=(60, 12))
    terminal.wait_for("[l] leave")
    terminal.press("d")
    shown = terminal.wait_for("diff --git")
    assert "q goes back" in shown
    assert "run asks" not in shown
    assert "+red alert  end" in shown
    assert "owned" not in terminal.title()
    terminal.press("Space")
    terminal.wait_without("+red alert")
    terminal.press("q")
    terminal.wait_for("[y] approve")


@pytest.mark.parametrize("word", ["approve", "reject"])
def test_an_answer_given_elsewhere_is_noticed_and_takes_what_was_typed_with_it(orc_at: Open, rig: Rig, word: str) -> None:
    terminal = asked(orc_at, rig)
    terminal.press("n")
    terminal.type("I think that")
    terminal.wait_for("I think that")
    assert rig.orc(word, "asks").code == 0
    shown = terminal.wait_for_end(0 if word == "approve" else 1)
    assert "I think that" not in shown


def test_an_answer_given_elsewhere_closes_the_diff(orc_at: Open, rig: Rig) -> None:
    terminal = asked(orc_at, rig)
    terminal.press("d")
    terminal.wait_for("q goes back")
    assert rig.orc("approve", "asks").code == 0
    assert "completed: 2/2 steps" in terminal.wait_for_end(0)


def test_keys_that_were_pressed_before_the_question_neither_answer_it_nor_smear_the_view(orc_at: Open, rig: Rig) -> None:
    rig.play({"approval": {"until": "go"}})
    terminal = orc_at(rig, *run_arguments(rig))
    terminal.wait_for("approval  working")
    terminal.type("yyyy nnnn")
    terminal.press("Enter", "Up")
    rig.open("go")
    shown = terminal.wait_for(KEYS)
    assert "yyyy" not in shown
    assert rig.orc("status", "asks", "--json").json["status"] == "waiting"
    terminal.paste("yes")
    terminal.press("n")
    terminal.paste("two\nlines")
    assert "two⏎lines" in terminal.wait_for("two")
    assert rig.orc("status", "asks", "--json").json["status"] == "waiting"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_terminal_is_given_back_after_a_signal(orc_at: Open, rig: Rig, number: signal.Signals) -> None:
    terminal = asked(orc_at, rig)
    terminal.press("n")
    terminal.wait_for("why not")
    if number is signal.SIGINT:
        terminal.press("C-c")
    else:
        os.kill(child_of(terminal.pid()), number)
    shown = terminal.wait_for_end(130)
    assert "why not" not in shown


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_terminal_of_a_watcher_is_given_back_after_a_signal(orc_at: Open, rig: Rig, number: signal.Signals) -> None:
    assert rig.orc(*run_arguments(rig, "--no-wait")).code == 4
    terminal = orc_at(rig, "watch", "asks")
    terminal.wait_for(KEYS)
    os.kill(child_of(terminal.pid()), number)
    terminal.wait_for_end(130 if number is signal.SIGINT else 143)


def test_whoever_watches_can_answer_too(orc_at: Open, rig: Rig) -> None:
    driven = rig.start(*run_arguments(rig))
    driven.wait_for("waiting for a")
    terminal = orc_at(rig, "watch", "asks")
    terminal.wait_for(KEYS)
    terminal.press("c")
    terminal.type("good")
    terminal.press("Enter")
    assert "approved by " in terminal.wait_for_end(0)
    assert driven.end().code == 0
    assert "good" in rig.orc("history", "asks").out


def test_an_answer_that_nobody_takes_says_what_goes_on(orc_at: Open, rig: Rig) -> None:
    assert rig.orc(*run_arguments(rig, "--no-wait")).code == 4
    terminal = orc_at(rig, "watch", "asks")
    assert "nothing is running it; continue with: orc resume asks" in terminal.wait_for(KEYS)
    terminal.press("y")
    terminal.wait_for("approved; nothing is running it now: orc resume asks")
    assert rig.orc("resume", "asks").code == 0
    terminal.wait_for_end(0)


def test_a_plan_of_phases_is_asked_about(orc_at: Open, repo: Path) -> None:
    rig = PhasesRig(repo)
    terminal = orc_at(rig, *rig.arguments("--run-id", "plans"))
    shown = terminal.wait_for(KEYS)
    assert "? plan: " in shown
    terminal.press("y")
    terminal.wait_for_end(0)


def test_a_loop_asks_whether_its_criterion_is_met(orc_at: Open, repo: Path) -> None:
    rig = LoopRig(repo)
    rig.do('echo \'{"status": "OK", "summary": "wrote it", "done": true}\' > "$REPORT_PATH"')
    terminal = orc_at(rig, *rig.loop_arguments("--completion", "It is good", until=None))
    assert "? loop: " in terminal.wait_for(KEYS)
    terminal.press("y")
    terminal.wait_for_end(0)


def test_a_question_in_words_is_answered_in_words(orc_at: Open, repo: Path) -> None:
    rig = TeamRig(repo)
    rig.plan({"id": "A", "name": "first", "tasks": ["T1"], "branch_name": "feature/a"})
    rig.says("pm.plan.1", status="NEEDS_CLARIFICATION", questions=["Which database?", "Which port?"])
    terminal = orc_at(rig, *rig.team_arguments())
    assert "Which database?" in terminal.wait_for("[a] answer")
    terminal.press("y")
    terminal.press("a")
    terminal.type("sqlite, and 8080")
    terminal.press("Enter")
    terminal.wait_for_end(0)
    assert "sqlite, and 8080" in rig.prompt("pm", "plan", 2)


INTRUDER = """\
import os, pty, select, signal, sys, time
side, verb = sys.argv[1:3]
while not os.path.exists(os.path.join(side, "go")):
    time.sleep(0.02)
if verb == "resume":
    os.kill(int(open(os.path.join(side, "driver")).read()), signal.SIGKILL)
pid, terminal = pty.fork()
if not pid:
    os.environ["TERM"] = "xterm"
    os.execv(sys.executable, [sys.executable, "-m", "agent_orchestrator.cli", verb, "asks"])
said, typed, until = b"", False, time.monotonic() + 25
while time.monotonic() < until and b"from inside the launch" not in said:
    if select.select([terminal], [], [], 0.1)[0]:
        try:
            said += os.read(terminal, 65536)
        except OSError:
            break
    if not typed and b"[y] approve" in said:
        typed = os.write(terminal, b"y")
open(os.path.join(side, "said"), "wb").write(said)
os.kill(pid, signal.SIGKILL)
"""
BOTH = """
name: both
steps:
  - {id: approval, agent: asker, prompt: prompt.md, human_in_the_loop: true}
  - {id: intruder, agent: shell, prompt: intrude.sh}
"""


@pytest.mark.parametrize("verb", ["watch", "resume"])
def test_an_agent_that_types_into_a_terminal_of_its_own_is_refused(rig: Rig, verb: str) -> None:
    (rig.side / "intruder.py").write_text(INTRUDER)
    (rig.repo / "intrude.sh").write_text(f"PYTHONPATH={ROOT}/src {sys.executable} {rig.side}/intruder.py {rig.side} {verb}\n")
    rig.workflow(BOTH)
    driven = rig.start(*run_arguments(rig, *TOLD))
    (rig.side / "driver").write_text(str(driven.process.pid))
    driven.wait_for("approval  waiting for approval")
    rig.open("go")
    wait_until((rig.side / "said").exists)
    said = (rig.side / "said").read_text(errors="replace")
    assert "[y] approve" in said, said
    assert "from inside the launch" in said, said
    wait_until(lambda: "came from inside the launch" in rig.ask("history", "asks").out)
    assert "approved by" not in rig.ask("history", "asks").out
    driven.process.kill()
    driven.process.wait()
    assert rig.orc("abort", "asks").code == 0
