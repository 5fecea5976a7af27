"""Whatever a person gives the swarm commands, the answer is one sentence and the documented exit code, never a traceback."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.acceptance.rig import wait_until
from tests.acceptance.swarm_rig import SwarmRig


@pytest.fixture
def rig(repo: Path) -> SwarmRig:
    return SwarmRig(repo)


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("dispatch", "bd-1", ".", "claude"), 2, "Missing argument 'PROMPT'"),
        (("dispatch", "../bd", ".", "claude", "x", "--agent-command", "sh"), 2, "The bead '../bd' is not a valid id"),
        (("dispatch", "bd-1", "nowhere", "claude", "x", "--agent-command", "sh"), 2, "does not exist"),
        (("dispatch", "bd-1", ".", "nobody", "x"), 2, "nobody"),
        (("dispatch", "bd-1", ".", "claude", "x", "--agent-command", "no-such-program"), 3, "was not found on the PATH"),
        (("dispatch", "bd-1", ".", "claude", "x", "--agent-command", "./missing"), 3, "there is no such file in"),
        (("run", "good.jsonl", "--max-agents", "1", "--agent-command", "./missing"), 3, "there is no such file in"),
        (("dispatch", "bd-1", ".", "claude", "x", "--agent-command", "sh", "--output-limit", "0"), 2, "--output-limit is '0'"),
        (("dispatch", "bd-1", ".", "claude", "x", "--agent-command", "sh", "--budget-usd", "nan"), 2, "--budget-usd"),
        (("dispatch", "bd-1", ".", "claude", "x", "--workspace", "nowhere", "--agent-command", "sh"), 2, "The workspace nowhere"),
        (("dispatch", "bd-1", ".", "claude", "x", "--agent-command", "sh", "--bd-close"), 3, "--bd-close needs bd"),
        (("run", "beads.jsonl", "--max-agents", "1"), 2, "The file beads.jsonl does not exist"),
        (("run", "beads.jsonl"), 2, "Missing option '--max-agents'"),
        (("run", "broken.jsonl", "--max-agents", "1"), 2, "broken.jsonl:2: this line is not JSON"),
        (("run", "good.jsonl", "--max-agents", "many"), 2, "--max-agents is 'many'"),
        (("run", "good.jsonl", "--max-agents", "1"), 2, "good.jsonl:1: bead a: Nobody would work on a"),
        (("run", "good.jsonl", "--max-agents", "1", "--agent-command", "sh", "--branch", "a..b"), 2, "--branch is 'a..b'"),
        (("status", "nobody"), 2, "There is no run 'nobody'"),
        (("stop",), 2, "No bead is at work"),
        (("logs", "nobody"), 2, "There is no run 'nobody'"),
        (("retry", "nobody"), 2, "There is no run 'nobody'"),
        (("merge", "nobody"), 2, "There is no run 'nobody'"),
        (("validate", "nowhere.json"), 2, "The record nowhere.json does not exist"),
        (("analyze", "--since", "13"), 2, "--since is '13'"),
    ],
)
def test_bad_input_is_one_sentence(rig: SwarmRig, arguments: tuple[str, ...], code: int, said: str) -> None:
    (rig.repo / "broken.jsonl").write_text('{"id": "a", "prompt": "x"}\n{\n')
    (rig.repo / "good.jsonl").write_text('{"id": "a", "prompt": "x"}\n')
    result = rig.ask("swarm", *arguments)
    assert (result.code, said in result.err, "Traceback" in result.err) == (code, True, False), result
    assert len(result.err.splitlines()) == 1
    assert not (rig.repo / "state").exists(), "nothing was begun"
    as_json = rig.ask("swarm", *arguments, "--json")
    assert as_json.json["error"]["exit_code"] == code


def test_what_makes_no_sense_for_a_bead_is_refused(rig: SwarmRig) -> None:
    assert rig.dispatch("bd-1").code == 0
    for arguments, said in (
        (("stop", "bd-1"), "the run has ended"),
        (("retry", "bd-1"), "bead bd-1 did not fail, it is done"),
        (("merge", "bd-1", "--into", "main"), "There is nothing to merge: run bd-1 made its changes in"),
        (("stop", "bd-"), "the run has ended"),
    ):
        result = rig.orc("swarm", *arguments)
        assert (result.code, said in result.err) == (2, True), result
    assert "try what failed again with `orc swarm retry bd-1`" in rig.orc("resume", "bd-1").err


def test_of_several_dispatches_at_once_exactly_one_gets_the_tree(rig: SwarmRig) -> None:
    rig.hold()
    running = [rig.start_dispatch(f"bd-{number}") for number in range(4)]
    wait_until(lambda: sum(one.process.poll() is not None for one in running) == 3 and rig.launches())
    rig.open("go")
    ended = [one.end() for one in running]
    assert sorted(one.code for one in ended) == [0, 2, 2, 2]
    assert len(rig.launches()) == 1
    assert all("works in the same tree" in one.err for one in ended if one.code == 2)


def test_a_record_that_a_person_edited_is_put_aside_and_written_again(rig: SwarmRig) -> None:
    rig.do("exit 1")
    rig.dispatch("bd-1", "--max-retries", "1")
    path = rig.repo / "state" / "runs" / "bd-1.json"
    path.write_text(path.read_text().replace('"failed"', '"done"'))
    rig.do("true")
    assert rig.orc("swarm", "retry", "bd-1").code == 0
    assert rig.record("runs", "bd-1")["attempt"] == 2
    assert rig.record("attempts", "bd-1.1.run")["status"] == "failed"
    (aside,) = path.parent.glob("bd-1.json.edited-*")
    assert '"done"' in aside.read_text()


@pytest.mark.parametrize("anew", ["dispatch", "run"])
def test_an_edit_of_a_record_does_not_change_the_count_of_attempts(rig: SwarmRig, anew: str) -> None:
    rig.beads({"id": "bd-1", "prompt": "x"})
    rig.dispatch("bd-1")
    path = rig.repo / "state" / "runs" / "bd-1.json"
    path.write_text(path.read_text().replace('"attempt": 1', '"attempt": 7'))
    again = rig.dispatch("bd-1", "--force") if anew == "dispatch" else rig.swarm("--max-agents", "1", "--force")
    assert again.code == 0, again
    assert rig.record("runs", "bd-1")["attempt"] == 2
    assert sorted(file.name for file in path.parents[1].glob("attempts/*.run.json")) == ["bd-1.1.run.json", "bd-1.2.run.json"]
    (aside,) = path.parent.glob("bd-1.json.edited-*")
    assert '"attempt": 7' in aside.read_text()


def test_a_dispatch_under_the_id_of_another_run_is_refused(rig: SwarmRig) -> None:
    rig.workflow("name: w\nsteps:\n  - {id: a, agent: shell, prompt: p.sh}\n")
    (rig.repo / "p.sh").write_text("true\n")
    assert rig.orc("run", "--workflow", "workflow.yaml", "--run-id", "bd-1").code == 0
    refused = rig.dispatch("bd-1")
    assert (refused.code, "The id bd-1 is in use: it is a workflow run" in refused.err) == (2, True)
