"""Sessions of agents are on the host that drives their run: elsewhere, `orc attach` names it and what to say there."""

from __future__ import annotations

import subprocess

from tests.acceptance.rig import ORC, Result
from tests.cluster.rig import Clone, Farm
from tests.cluster.test_systems import queue


def on_host(farm: Farm, name: str, *arguments: str) -> Result:
    """Run `orc` on a worker's host."""
    wall = ["bwrap", "--dev-bind", "/", "/", "--bind", str(farm.folder / "hosts" / name), str(farm.root), "--"]
    done = subprocess.run(
        [*wall, *ORC, *arguments],
        cwd=farm.folder,
        env=farm.environment(),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return Result(arguments, done.returncode, done.stdout, done.stderr)


def test_a_session_elsewhere_is_named_with_its_host_and_the_command_to_give_there(farm: Farm) -> None:
    clone = Clone(farm, "clone")
    farm.hold("first")
    run = farm.submit()
    early = clone.orc("attach", run, "first", "--hand-back")
    assert (early.code, "was not driven yet: there is no session" in early.err) == (2, True), early
    farm.host("ada")
    farm.wait_for("first")
    unknown = clone.orc("attach", run, "nothing", "--hand-back")
    assert (unknown.code, "nothing" in unknown.err) == (2, True), unknown
    refused = clone.orc("attach", run, "first", "--hand-back")
    assert refused.code == 2, refused
    said = " ".join(refused.err.split())
    assert f"Run {run} is driven by process" in said
    assert " on ada, and sessions of its agents are there alone; take first over on that host: orc attach" in said
    words = said.partition("on that host: orc ")[2].split()
    assert not list((clone.repo / ".git" / "orc").glob(f"launches/{run}/*")), "nothing is left behind"
    there = on_host(farm, "ada", *words, "--hand-back")
    assert (there.code, f"Run {run}: " in there.err, "on that host" in there.err) == (2, True, False), there
    farm.let_go("first")


def test_a_queued_loop_is_looked_on_from_any_clone(farm: Farm) -> None:
    clone = Clone(farm, "clone")
    farm.host("ada")
    words = ("loop", "run", "make it", "--until", "test -f made", "--max-iterations", "3")
    run = queue(farm, *words, "--agent-command", "sh -c 'echo made it now; touch made'")
    farm.wait_for_status(run, "completed")
    seen = clone.orc("loop", "attach", run)
    assert (seen.code, "completed" in seen.out) == (0, True), seen
