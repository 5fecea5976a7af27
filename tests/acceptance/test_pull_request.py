"""`orc pr` with the real `gh` and a real `git push`: one pull request, whoever is killed when."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.acceptance import finish_rig
from tests.acceptance.finish_rig import git
from tests.acceptance.github import PULLS, GitHub, Published

pytestmark = pytest.mark.skipif(
    shutil.which("gh") is None or shutil.which("openssl") is None, reason="gh and openssl are needed; `make test` installs them"
)


@pytest.fixture
def github(tmp_path: Path) -> Iterator[GitHub]:
    server = GitHub(tmp_path / "server")
    yield server
    server.close()


def test_a_pull_request_has_the_branch_the_evidence_the_cost_and_a_mark(repo: Path, github: GitHub, tmp_path: Path) -> None:
    world = Published(finish_rig.workflow(repo).rig, github, tmp_path)
    opened = world.orc("pr", "wf", "--draft", "--title", "Make it")
    assert opened.code == 0, opened
    assert opened.out == "opened: https://localhost/ada/thing/pull/1 (orc/wf into main)\n"
    assert world.pushed() == ["orc/wf"]
    (made,) = github.pulls
    assert (made["title"], made["head"], made["base"], made["draft"]) == ("Make it", "orc/wf", "main", True)
    for part in ("1 file changed, +1 -0.", "- `made.txt` (A)", "- code: `test -e made.txt` passed in", "### Cost", "run `wf`"):
        assert part in made["body"], made["body"]
    assert made["body"].endswith("<!-- orc:run=wf -->\n")
    (status,) = github.statuses
    told = status["description"]
    assert (status["state"], status["context"], told.startswith("test -e made.txt passed in")) == ("success", "orc/code", True)
    assert status["commit"] == git(world.remote, "rev-parse", "orc/wf")
    again = world.orc("pr", "wf")
    assert again.out == "pushed; its pull request is open already: https://localhost/ada/thing/pull/1 (orc/wf into main)\n", again
    assert len(github.pulls) == 1
    assert "pull request https://localhost/ada/thing/pull/1" in world.orc("history", "wf").out
    github.pulls[0] |= {"state": "closed", "merged_at": "2026-01-01T00:00:00Z"}
    refused = world.orc("pr", "wf")
    assert (refused.code, "is merged already: https://localhost/ada/thing/pull/1" in refused.err) == (2, True), refused


def test_beads_get_a_pull_request_each(repo: Path, github: GitHub, tmp_path: Path) -> None:
    one = finish_rig.swarm(repo)
    world = Published(one.rig, github, tmp_path)
    facts = world.orc("pr", one.run, "--json").json
    assert [found["unit"] for found in facts["pull_requests"]] == ["a", "b"]
    assert world.pushed() == ["work/a", "work/b"]
    assert f"<!-- orc:run={one.run} unit=b -->" in github.pulls[1]["body"]


def test_a_check_of_another_tree_is_not_shown_at_the_commit(repo: Path, github: GitHub, tmp_path: Path) -> None:
    one = finish_rig.workflow(repo)
    world = Published(one.rig, github, tmp_path)
    (repo / ".agents" / "worktrees" / "wf" / "later.txt").write_text("nobody has checked this\n")
    assert world.orc("pr", "wf").code == 0
    assert "later.txt" in git(world.remote, "ls-tree", "--name-only", "orc/wf").split()
    assert github.statuses == []


def test_a_branch_is_pushed_to_a_fork_and_its_pull_request_opened_upstream(repo: Path, github: GitHub, tmp_path: Path) -> None:
    one = finish_rig.workflow(repo)
    world = Published(one.rig, github, tmp_path)
    fork = tmp_path / "fork.git"
    git(tmp_path, "init", "--quiet", "--bare", str(fork))
    one.git("remote", "add", "fork", f"https://{github.host}/bob/thing.git")
    one.git("config", "remote.fork.pushurl", str(fork))
    opened = world.orc("pr", "wf", "--remote", "fork", "--upstream", "origin")
    assert opened.code == 0, opened
    assert opened.out == "opened: https://localhost/ada/thing/pull/1 (orc/wf into main)\n"
    assert world.pushed() == [], "nothing is pushed to where the pull request is"
    assert git(fork, "for-each-ref", "--format=%(refname:short)", "refs/heads/") == "orc/wf"
    (made,) = github.pulls
    assert (made["head"], made["base"]) == ("bob:orc/wf", "main")
    again = world.orc("pr", "wf", "--remote", "fork", "--upstream", "origin")
    assert "its pull request is open already" in again.out, again
    assert len(github.pulls) == 1
    one.git("remote", "add", "local", str(fork))
    refused = world.orc("pr", "wf", "--remote", "local", "--upstream", "origin")
    assert (refused.code, "The remote local is at" in refused.err, len(refused.err.splitlines())) == (2, True, 1), refused


def test_there_is_one_pull_request_whatever_is_killed(repo: Path, github: GitHub, tmp_path: Path) -> None:
    one = finish_rig.workflow(repo)
    world = Published(one.rig, github, tmp_path)
    at = 1
    while one.killed(at, "pr", one.run, env=world.env):
        assert len(github.pulls) <= 1
        at += 1
    assert at > 3, "it was killed before the push, before looking and before creating"
    assert world.orc("pr", one.run).code == 0
    assert len(github.pulls) == 1
    assert github.seen.count(f"POST {PULLS}") == 1


def test_what_fails_on_the_way_is_said_in_one_sentence(repo: Path, github: GitHub, tmp_path: Path) -> None:
    one = finish_rig.workflow(repo)
    alone = one.orc("pr", "wf")
    assert (alone.code, "has no remote to push to" in alone.err) == (3, True), alone
    world = Published(one.rig, github, tmp_path)
    assert "There is no remote nope" in world.orc("pr", "wf", "--remote", "nope").err
    world.env["GH_ENTERPRISE_TOKEN"] = ""
    refused = world.orc("pr", "wf")
    assert (refused.code, len(refused.err.splitlines()), "gh api failed" in refused.err) == (3, 1, True), refused
    one.git("config", "remote.origin.pushurl", str(tmp_path / "nowhere.git"))
    refused = world.orc("pr", "wf")
    assert (refused.code, "git push failed" in refused.err) == (3, True), refused
    assert github.pulls == []
