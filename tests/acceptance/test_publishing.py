"""Nothing leaves the machine unless a person asks for it: a remote and a `gh` that write down whatever reaches them."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from agent_orchestrator.git.remotes import hide_credentials, repository_of
from tests.acceptance.loop_rig import LoopRig
from tests.acceptance.phases_rig import WORKS, PhasesRig
from tests.acceptance.rig import Result, Rig
from tests.acceptance.swarm_rig import SwarmRig
from tests.acceptance.team_rig import TeamRig

GH = """\
#!/bin/sh
# Writes down what it is told, and makes what it is asked for.
here=${0%/*}
echo "gh $*" >>"$here/arrived"
if [ "$2" = list ]; then echo "[]"; exit 0; fi
cat >/dev/null
echo "https://github.com/user/repo/$1/1"
"""
HOOK = '#!/bin/sh\nwhile read -r old new ref; do echo "push $ref" >>"{log}"; done\n'
ADA = ("-c", "user.name=ada", "-c", "user.email=ada@localhost")


class World:
    """A remote called origin and a `gh` on the PATH, which both record."""

    def __init__(self, rig: Rig, folder: Path) -> None:
        self.rig, self.folder, self.log = rig, folder / "bin", folder / "bin" / "arrived"
        self.folder.mkdir()
        (self.folder / "gh").write_text(GH)
        (self.folder / "gh").chmod(0o755)
        self.remote = folder / "remote.git"
        self.git("init", "--quiet", "--bare", str(self.remote))
        hook = self.remote / "hooks" / "pre-receive"
        hook.parent.mkdir(exist_ok=True)
        hook.write_text(HOOK.format(log=self.log))
        hook.chmod(0o755)
        if not (rig.repo / ".git").exists():
            self.git("init", "--quiet", "--initial-branch", "main")
        self.git(*ADA, "commit", "--quiet", "--allow-empty", "-m", "begin")
        self.git("remote", "add", "origin", str(self.remote))

    def git(self, *arguments: str) -> None:
        subprocess.run(["git", *arguments], cwd=self.rig.repo, check=True, capture_output=True)

    def orc(self, *arguments: str) -> Result:
        path = f"{self.folder}:{self.rig.environment()['PATH']}"
        return self.rig.orc(*arguments, env={"PATH": path})

    def arrived(self) -> list[str]:
        """Return what came to the remote and to `gh`: the first words of each."""
        lines = self.log.read_text().splitlines() if self.log.exists() else []
        return [" ".join(line.split()[:3]) for line in lines]


ALL = ["gh issue list", "gh issue create", "push refs/heads/phases/small-thing", "gh pr list", "gh pr create"]


def _workflow(repo: Path) -> tuple[Rig, tuple[str, ...]]:
    rig = Rig(repo)
    return rig, ("run", "--workflow", "workflow.yaml", "--wrapper", str(rig.side / "wrapper.py"))


def _loop(repo: Path) -> tuple[Rig, tuple[str, ...]]:
    rig = LoopRig(repo)
    rig.do("touch done")
    return rig, rig.loop_arguments("--commit")


def _team(repo: Path) -> tuple[Rig, tuple[str, ...]]:
    rig = TeamRig(repo)
    rig.plan({"id": "A", "name": "one", "tasks": ["T1"], "files_affected": ["a.py"], "branch_name": "feature/a"})
    return rig, rig.team_arguments(requirements="One thing")


def _swarm(repo: Path) -> tuple[Rig, tuple[str, ...]]:
    rig = SwarmRig(repo)
    rig.do("echo made >made.txt")
    return rig, rig.arguments("bd-1")


def _phases(repo: Path) -> tuple[Rig, tuple[str, ...]]:
    rig = PhasesRig(repo)
    return rig, rig.arguments("--yes")


@pytest.mark.parametrize("mode", [_workflow, _loop, _team, _swarm, _phases], ids=lambda mode: mode.__name__.strip("_"))
def test_a_remote_receives_nothing_unasked(
    repo: Path, tmp_path: Path, mode: Callable[[Path], tuple[Rig, tuple[str, ...]]]
) -> None:
    rig, arguments = mode(repo)
    world = World(rig, tmp_path)
    done = world.orc(*arguments)
    assert done.code == 0, done
    assert world.arrived() == []


@pytest.fixture
def world(repo: Path, tmp_path: Path) -> World:
    return World(PhasesRig(repo), tmp_path)


def phases(world: World, *more: str) -> Result:
    rig = world.rig
    assert isinstance(rig, PhasesRig)
    return world.orc(*rig.arguments(*more))


def test_with_publish_everything_arrives_and_what_goes_where_is_said_before(world: World) -> None:
    asked = phases(world, "--publish", "--no-wait", "--run-id", "public")
    assert asked.code == 4, asked
    told = f"the branch phases/small-thing to origin ({world.remote}), 1 issue and a pull request in the repository that gh finds"
    assert f"it publishes {told}" in asked.err
    assert f"It publishes {told}" in world.orc("phases", "status", "public").out
    assert world.arrived() == []
    world.orc("approve", "public")
    assert world.orc("resume", "public").code == 0
    assert world.arrived() == ALL


def test_a_setting_asks_for_it_too_and_a_flag_against_it_wins(world: World) -> None:
    (world.rig.repo / ".orc.toml").write_text("publish = true\n")
    world.git("add", ".orc.toml")
    world.git(*ADA, "commit", "--quiet", "-m", "settings")
    assert phases(world, "--yes", "--no-publish").code == 0
    assert world.arrived() == []
    assert phases(world, "--yes").code == 0
    assert [line for line in world.arrived() if line.startswith("push")] == ["push refs/heads/phases/small-thing-2"]


def test_a_run_may_begin_to_publish_when_it_is_resumed_or_stop_to(world: World) -> None:
    assert phases(world, "--no-wait", "--run-id", "later").code == 4
    world.orc("approve", "later")
    done = world.orc("resume", "later", "--publish")
    assert done.code == 0, done
    assert "it publishes the branch phases/small-thing" in done.err
    assert world.arrived() == ALL
    world.log.unlink()
    assert phases(world, "--publish", "--no-wait", "--run-id", "never").code == 4
    world.orc("approve", "never")
    done = world.orc("resume", "never", "--no-publish")
    assert done.code == 0, done
    assert "nothing more is published" in done.err
    assert world.arrived() == []
    assert (world.rig.repo / ".claude" / "milestones" / "pull-request.md").exists()


def test_the_plan_shows_what_would_be_published_and_where_and_no_password(world: World) -> None:
    plan = world.orc("phases", "plan", "task.md")
    assert "publish: nothing; milestones and the pull request are files" in plan.out, plan
    world.git("remote", "set-url", "origin", "https://ada:ghp_secret@github.com/user/repo.git")
    plan = world.orc("phases", "plan", "task.md", "--publish")
    where = "(https://***@github.com/user/repo.git), 1 issue and a pull request in github.com/user/repo"
    assert f"publish: the branch phases/small-thing to origin {where}" in plan.out
    facts = world.orc("phases", "plan", "task.md", "--publish", "--json")
    assert (facts.json["publish"]["repository"], facts.json["publish"]["wanted"]) == ("github.com/user/repo", True)
    assert "ghp_secret" not in plan.out + facts.out
    assert world.arrived() == []


def test_what_cannot_be_published_is_refused_before_a_run_exists(world: World) -> None:
    world.git("remote", "remove", "origin")
    refused = phases(world, "--yes", "--publish")
    assert (refused.code, refused.err.count("\n")) == (3, 1), refused
    assert "has no remote to publish to" in refused.err
    assert not world.orc("list", "--json").json["runs"]
    (world.rig.repo / ".orc.toml").write_text('publish = "yes"\n')
    wrong = world.orc("phases", "plan", "task.md")
    assert wrong.code == 2
    assert "publish is 'yes': it must be true or false" in wrong.err


def test_only_runs_of_phases_publish(rig: Rig) -> None:
    assert rig.run("--run-id", "flow").code == 0
    refused = rig.orc("resume", "flow", "--publish")
    assert refused.code == 2
    assert "only runs of phases publish" in refused.err


@pytest.mark.parametrize(
    "change",
    [
        "git remote set-url --push origin {other}",
        "git config url.{other}.insteadOf {remote}",
        "git remote remove origin",
    ],
)
def test_a_remote_that_an_agent_moves_after_the_approval_receives_nothing(world: World, tmp_path: Path, change: str) -> None:
    other = tmp_path / "other.git"
    world.git("init", "--quiet", "--bare", str(other))
    rig = world.rig
    assert isinstance(rig, PhasesRig)
    rig.do("task-executor.1.1", f"{change.format(other=other, remote=world.remote)}\n{WORKS}")
    done = phases(world, "--yes", "--publish", "--run-id", "moved")
    assert done.code == 0, done
    assert world.arrived() == []
    assert subprocess.run(["git", "branch"], cwd=other, check=True, capture_output=True).stdout == b""
    recorded = world.orc("history", "moved").out
    assert ("No such remote" if "remove" in change else f"only {world.remote} was agreed to") in recorded
    assert (rig.repo / ".claude" / "milestones" / "pull-request.md").exists()


@pytest.mark.parametrize(
    ("url", "shown", "repository"),
    [
        ("https://github.com/o/r.git", "https://github.com/o/r.git", "github.com/o/r"),
        ("https://u:p@github.com/o/r?token=x", "https://***@github.com/o/r?***", "github.com/o/r"),
        ("https://token@ghe.example.org:8443/o/r", "https://***@ghe.example.org:8443/o/r", "ghe.example.org/o/r"),
        ("ssh://git:pw@ssh.github.com:443/o/r.git", "ssh://git@ssh.github.com:443/o/r.git", "github.com/o/r"),
        ("git@github.com:o/r.git", "git@github.com:o/r.git", "github.com/o/r"),
        ("work:o/r.git", "work:o/r.git", ""),
        ("/srv/git/r.git", "/srv/git/r.git", ""),
        ("file:///srv/r.git", "file:///srv/r.git", ""),
        ("https://u:p@[broken/o/r", "https://***@[broken/o/r", ""),
    ],
)
def test_addresses_are_shown_without_credentials(url: str, shown: str, repository: str) -> None:
    assert (hide_credentials(url), repository_of(url)) == (shown, repository)
