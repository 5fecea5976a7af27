"""A run id is used again, or the store is gone and its launches are not: nothing of the past may pass for something new."""

from __future__ import annotations

import shutil
import signal

from tests.acceptance.rig import HUMAN, Rig, wait_until
from tests.stores import OWN_STORE


def _lose_the_store(rig: Rig) -> None:
    for file in (rig.repo / ".git" / "orc").glob("orc.db*"):
        file.unlink()


@OWN_STORE
def test_a_run_taken_over_from_its_state_file_really_runs(rig: Rig) -> None:
    assert rig.run("--run-id", "one").code == 0
    _lose_the_store(rig)
    again = rig.run("--run-id", "one", "--start-at-step", "code_review")
    assert again.code == 0, again
    assert [len(rig.launches(step)) for step in ("planning", "coding", "code_review")] == [1, 1, 2]
    assert list((rig.repo / ".git" / "orc" / "launches" / "one~1").glob("code_review~*"))


@OWN_STORE
def test_a_new_run_under_an_old_id_really_runs(rig: Rig) -> None:
    for runs in (1, 2, 3):
        assert rig.run("--run-id", "one").code == 0
        assert len(rig.launches("coding")) == runs
        _lose_the_store(rig)
    assert sorted(folder.name for folder in (rig.repo / ".git" / "orc" / "launches").iterdir()) == ["one", "one~1", "one~2"]


def test_a_kept_journal_can_be_looked_at_but_not_go_on(rig: Rig) -> None:
    rig.workflow(HUMAN)
    assert rig.run("--run-id", "one", "--no-wait").code == 4
    shutil.rmtree(rig.repo / ".agents" / "runs" / "one")
    assert rig.run("--run-id", "one", "--no-wait").code == 4
    before = rig.state("one")
    for command in (["resume"], ["approve"], ["abort"], ["pause", "--now"]):
        refused = rig.orc(command[0], "one~1", *command[1:])
        assert (refused.code, "kept journal of an earlier run one" in refused.err) == (2, True), refused
    assert rig.orc("history", "one~1").code == 0
    kept = [run for run in rig.orc("list", "--json").json["runs"] if run["run_id"] == "one~1"]
    assert [run["status"] for run in kept] == ["replaced"]
    assert rig.state("one") == before


def test_an_id_is_not_used_again_while_agents_of_the_earlier_run_live(rig: Rig) -> None:
    rig.play({"planning": {"until": "later"}})
    first = rig.start_run("--run-id", "one")
    first.wait_for("planning")
    wait_until(lambda: rig.launches("planning"))
    first.signal(signal.SIGKILL)
    first.end()
    shutil.rmtree(rig.repo / ".agents" / "runs" / "one")
    refused = rig.run("--run-id", "one")
    assert (refused.code, "still alive (planning)" in refused.err) == (2, True), refused
    assert rig.orc("abort", "one").code == 0
    rig.play({})
    shutil.rmtree(rig.repo / ".agents" / "runs" / "one")
    assert rig.run("--run-id", "one").code == 0


@OWN_STORE
def test_a_copied_repository_does_not_go_on_with_the_runs_of_the_original(rig: Rig) -> None:
    rig.workflow(HUMAN)
    assert rig.run("--run-id", "one", "--no-wait").code == 4
    copy = rig.repo.parent / "copy"
    shutil.copytree(rig.repo, copy, symlinks=True)
    before = rig.state("one")
    for command in (["resume"], ["approve"], ["abort"]):
        refused = rig.orc(command[0], "one", *command[1:], "--repo", str(copy))
        assert refused.code == 2, refused
        assert f"Run one belongs to {rig.repo}" in refused.err
    assert rig.orc("show", "one", "--repo", str(copy)).code == 0
    assert rig.state("one") == before
