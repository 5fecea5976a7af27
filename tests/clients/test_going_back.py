"""Real clients in runs that are forked and rewound: a session is continued only where it knows no more than the tree does."""

from __future__ import annotations

import json
import subprocess

import pytest

from agent_orchestrator.testing.model_server import Reply
from tests.clients.rig import Rig, report
from tests.clients.test_surviving import CLIENTS, interrupted

AUTHOR = ("-c", "user.name=ada", "-c", "user.email=ada@localhost")
STOPPED = "You were stopped in the middle of this task"


def resume(client: str, rig: Rig, run: str) -> str:
    """Resume a run whose model ends its work; return the first prompt with all that the session remembers."""
    lane = rig.lane(client, [Reply(report())])
    rig.orc("resume", run)
    assert rig.state(run)["steps"]["work"]["status"] == "COMPLETED"
    return json.dumps(lane.requests[0])


@pytest.mark.parametrize("client", CLIENTS)
def test_a_fork_continues_in_a_copy_of_the_session_and_a_rewind_behind_it_in_a_fresh_one(client: str, rig: Rig) -> None:
    for arguments in (("add", "--all"), ("commit", "--quiet", "--message", "begin")):
        subprocess.run(["git", *AUTHOR, *arguments], cwd=rig.repo, env=rig.environ, check=True)
    interrupted(client, rig)
    session = rig.launches("one")[0]["session"]
    with rig.orchestrator() as orchestrator:
        point = str(orchestrator.fold(orchestrator.find("one")).seq)
    rig.orc("fork", "one", "--at", point, "--run-id", "other")
    told = resume(client, rig, "other")
    assert STOPPED in told
    assert "hello.txt" in told, "the copy remembers what was done"
    assert rig.launches("other")[-1]["session"] != session
    assert (rig.repo / ".agents" / "worktrees" / "other" / "hello.txt").exists()
    assert STOPPED in resume(client, rig, "one")
    assert rig.launches("one")[-1]["session"] == session, "the fork left it alone"
    rig.orc("rewind", "one", "--to", point)
    told = resume(client, rig, "one")
    assert STOPPED not in told, "the session went on after the point"
    assert rig.launches("one")[-1]["session"] != session
    assert (rig.repo / "hello.txt").exists()
