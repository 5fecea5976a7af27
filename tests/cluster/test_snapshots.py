"""Of an agent that is lost with its host, what it had written is kept for people; its next attempt begins without it."""

from __future__ import annotations

import signal

from tests.acceptance.rig import wait_until
from tests.cluster.rig import AGENT, PATIENCE_S, Clone, Farm
from tests.unit.git.test_repository import git

WRITES = AGENT.replace("say start\n", 'ls >"$SIDE/found-$step-$STEP_ATTEMPT"\nuname -n >"half-$step.txt"\nsay start\n')


def kept(farm: Farm, run: str, part: str) -> list[str]:
    """Return the refs of the remote that keep trees of one kind."""
    return git(farm.bare, "for-each-ref", "--format=%(refname)", f"refs/orc/runs/{run}/kept/{part}").split()


def test_what_a_lost_agent_had_written_is_kept_and_its_next_attempt_begins_without_it(farm: Farm) -> None:
    (farm.side / "agent.sh").write_text(WRITES)
    ada = farm.host("ada", "--snapshots", "1s")
    farm.hold("second")
    run = farm.submit()
    farm.wait_for("second")
    wait_until(lambda: bool(kept(farm, run, "@working")), PATIENCE_S)
    (working,) = kept(farm, run, "@working")
    assert git(farm.bare, "show", f"{working}:half-second.txt") == "ada"
    assert git(farm.bare, "log", "--format=%s", f"refs/orc/runs/{run}/start..refs/orc/runs/{run}/heads/main") == ""
    ada.kill(signal.SIGKILL)
    bob = farm.host("bob", "--snapshots", "1h")
    farm.wait_for("second", 2)
    (lost,) = kept(farm, run, "@lost")
    assert kept(farm, run, "@working") == []
    assert git(farm.bare, "show", f"{lost}:half-second.txt") == "ada"
    assert "half-second.txt" not in (farm.side / "found-second-2").read_text().split()
    assert "half-first.txt" in (farm.side / "found-second-2").read_text().split(), "what the journal knows is there"
    farm.let_go("second")
    farm.wait_for_status(run, "completed")
    here = f"refs/orc/{run}/@lost/{lost.split('/@lost/')[1]}"
    bob.wait_until_it_says(f"what lost agents had written is kept: {here}")
    assert here in farm.ask_store("history", run).out.replace("\n", "").replace(" ", "")
    clone = Clone(farm, "clone")
    assert clone.orc("diff", run, "--name-only").code == 0
    assert git(clone.repo, "show", f"{here}:half-second.txt") == "ada"


def test_a_run_that_ends_leaves_no_tree_of_an_agent_at_work(farm: Farm) -> None:
    (farm.side / "agent.sh").write_text(WRITES)
    farm.host("ada", "--snapshots", "1s")
    farm.hold("second")
    run = farm.submit()
    farm.wait_for("second")
    wait_until(lambda: bool(kept(farm, run, "@working")), PATIENCE_S)
    farm.let_go("second")
    farm.wait_for_status(run, "completed")
    wait_until(lambda: f"orc/{run}" in git(farm.bare, "branch", "--list", "orc/*"), PATIENCE_S)
    assert (kept(farm, run, "@working"), kept(farm, run, "@lost")) == ([], [])


def test_what_an_agent_had_written_whose_worker_gives_its_runs_back_is_kept(farm: Farm) -> None:
    (farm.side / "agent.sh").write_text(WRITES)
    ada = farm.host("ada", "--snapshots", "1h")
    farm.hold("first")
    run = farm.submit()
    farm.wait_for("first")
    ada.kill(signal.SIGTERM)
    ada.kill(signal.SIGTERM)
    assert ada.process.wait(60) == 0
    farm.host("bob")
    farm.wait_for("first", 2)
    (lost,) = kept(farm, run, "@lost")
    assert git(farm.bare, "show", f"{lost}:half-first.txt") == "ada"
