"""A sixth system is a folder, a command folder and a line: `tests/sixth` is one, and all commands for runs work on its runs."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from agent_orchestrator.testing.systems import check_system
from tests.acceptance.rig import ROOT, Rig, wait_until
from tests.sixth.systems.errand.system import ERRAND, ErrandSpec

SIXTH = [sys.executable, str(ROOT / "tests" / "sixth" / "orc.py")]
WAITING = "touch ../side/begun; until [ -e ../side/go ]; do sleep 0.02; done"


class SixthRig(Rig):
    """A repository, and `orc` with the sixth system on it."""

    command = SIXTH


@pytest.fixture
def sixth(repo: Path) -> SixthRig:
    """`orc` with errands on a fresh repository."""
    return SixthRig(repo)


def test_it_keeps_the_contract_of_systems() -> None:
    check_system(ERRAND, [ErrandSpec(command="make")])


def test_its_command_is_one_of_orcs(sixth: SixthRig) -> None:
    told = sixth.orc("--help").out
    assert "errand      Run one command." in told
    assert told.index("team  ") < told.index("errand  ") < told.index("list  ")


def test_a_run_of_it_is_shown_by_the_commands_for_all_runs(sixth: SixthRig) -> None:
    done = sixth.orc("errand", "run", "true", "--run-id", "one")
    assert done.code == 0, done
    assert "command   is run" in done.out
    assert "errand one completed: 1/1 commands" in done.out
    assert "command: true" in done.out
    assert json.loads((sixth.repo / ".agents/errands/one.json").read_text())["status"] == "PASSED"
    assert sixth.orc("list", "--json").json["runs"][0]["state_file"].endswith(".agents/errands/one.json")
    assert "1/1 commands" in sixth.orc("status", "one").out
    assert sixth.orc("show", "one", "command", "--json").json["details"]["evidence"][0]["exit_code"] == 0
    history = sixth.orc("history", "one").out
    assert "is run" in history
    assert "command finished:" in history  # an event without a phrase
    assert "run       completed" in history


def test_a_failed_run_says_what_to_do_and_is_tried_again(sixth: SixthRig) -> None:
    failed = sixth.orc("errand", "run", "[ -e ../side/go ]", "--run-id", "one")
    assert failed.code == 1, failed
    assert "why: orc show one   try again: orc resume one" in failed.out
    sixth.open("go")
    assert sixth.orc("resume", "one").code == 0
    assert sixth.orc("status", "one", "--json").json["status"] == "completed"


def test_a_run_of_it_is_paused_resumed_and_aborted(sixth: SixthRig) -> None:
    started = sixth.start("errand", "run", WAITING, "--run-id", "one")
    wait_until((sixth.side / "begun").exists)
    assert sixth.orc("pause", "one", "--now").code == 0
    assert started.end().code == 130
    assert sixth.orc("status", "one", "--json").json["status"] == "paused"
    sixth.open("go")
    assert sixth.orc("resume", "one").code == 0

    (sixth.side / "go").unlink()
    (sixth.side / "begun").unlink()
    again = sixth.start("errand", "run", WAITING, "--run-id", "two")
    wait_until((sixth.side / "begun").exists)
    assert sixth.orc("abort", "two").code == 0
    assert again.end().code == 1
    assert sixth.orc("list", "--json").json["runs"][0]["status"] == "aborted"


def test_a_run_of_it_is_deleted_with_its_journal(sixth: SixthRig) -> None:
    assert sixth.orc("errand", "run", "true", "--run-id", "one").code == 0
    assert sixth.orc("prune", "--older-than", "0", "--yes").code == 0
    assert sixth.orc("list", "--json").json["runs"] == []


def test_its_files_are_no_other_systems(sixth: SixthRig) -> None:
    assert sixth.orc("errand", "run", "true", "--run-id", "one").code == 0
    refused = sixth.orc("import", ".agents/errands/one.json")
    assert (refused.code, "is no state file that can be taken over" in refused.err) == (2, True)
