"""Our git reads the configuration of the person it works for: ignores, filters, identity, signing, line ends, safe folders."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from agent_orchestrator.config import load_settings
from agent_orchestrator.errors import GitFailed
from agent_orchestrator.git.command import git
from agent_orchestrator.git.environment import GitEnvironment, current_environment, use_environment
from agent_orchestrator.git.ownership import list_uncommitted
from agent_orchestrator.git.snapshots import commit_on_branch, identify_tree, save_snapshot, write_tree


@pytest.fixture
def home(tmp_path: Path, repo: Path) -> Path:
    """A home folder that our git knows, with a name in its configuration."""
    folder = tmp_path / "home"
    folder.mkdir()
    (folder / ".gitconfig").write_text("[user]\nname = Grace Example\nemail = grace@example.com\n")
    load_settings(str(repo), {"HOME": str(folder), "PATH": os.environ["PATH"], "GIT_DIR": "/nowhere"})
    return folder


def add(home: Path, text: str) -> None:
    with (home / ".gitconfig").open("a") as file:
        file.write(text)


def commit(repo: Path) -> str:
    (repo / "README.md").write_text("by an agent\n")
    scratch = repo.parent / "scratch"
    made = commit_on_branch(repo, scratch, write_tree(repo, scratch), "Work", 1_750_000_000_000_000)
    assert made is not None
    return made


def test_commits_on_a_branch_are_by_the_person_and_snapshots_by_us(repo: Path, home: Path) -> None:
    how = ("log", "-1", "--format=%an <%ae> %cn")
    assert git(repo, *how, commit(repo)) == "Grace Example <grace@example.com> Grace Example"
    saved = save_snapshot(repo, repo.parent / "scratch", "refs/orc/x", "x", 0)
    assert git(repo, *how, saved.commit) == "agent-orchestrator <orc@localhost> agent-orchestrator"


def test_without_a_name_in_the_configuration_commits_are_by_us(repo: Path, home: Path) -> None:
    (home / ".gitconfig").write_text("[user]\nname = Grace Example\n")
    assert git(repo, "log", "-1", "--format=%an <%ae>", commit(repo)) == "agent-orchestrator <orc@localhost>"


SIGNER = """#!/bin/sh
cat >/dev/null
printf -- '-----BEGIN PGP SIGNATURE-----\\nx\\n-----END PGP SIGNATURE-----\\n'
printf '\\n[GNUPG:] SIG_CREATED ' >&2
"""


def test_commits_on_a_branch_are_signed_when_the_person_signs_and_snapshots_never(repo: Path, home: Path) -> None:
    (home / "signer").write_text(SIGNER)
    (home / "signer").chmod(0o755)
    add(home, f"[commit]\ngpgSign = true\n[gpg]\nprogram = {home}/signer\n")
    assert "BEGIN PGP SIGNATURE" in git(repo, "cat-file", "commit", commit(repo))
    saved = save_snapshot(repo, repo.parent / "scratch", "refs/orc/x", "x", 0)
    assert "SIGNATURE" not in git(repo, "cat-file", "commit", saved.commit)


def test_a_commit_that_cannot_be_signed_is_not_made_and_says_what_to_do(repo: Path, home: Path) -> None:
    add(home, "[commit]\ngpgSign = true\n[gpg]\nprogram = false\n")
    head = git(repo, "rev-parse", "HEAD")
    with pytest.raises(GitFailed, match=r"could not be signed, as commit.gpgSign says .* unlock the key or set it to false"):
        commit(repo)
    assert git(repo, "rev-parse", "HEAD") == head


def test_what_the_person_ignores_everywhere_is_no_work(repo: Path, home: Path) -> None:
    (home / ".config" / "git").mkdir(parents=True)
    (home / ".config" / "git" / "ignore").write_text("*.swp\n")
    (repo / "a.swp").touch()
    (repo / "b.bak").touch()
    assert list_uncommitted(repo) == ["b.bak"]
    add(home, "[core]\nexcludesFile = ~/mine\n")
    (home / "mine").write_text("*.bak\n")
    assert list_uncommitted(repo) == ["a.swp"]


def test_line_ends_and_filters_are_the_persons(repo: Path, home: Path) -> None:
    add(home, '[core]\nautocrlf = true\n[filter "up"]\nclean = tr a-z A-Z\nsmudge = tr A-Z a-z\nrequired = true\n')
    (repo / "lines.txt").write_bytes(b"one\r\ntwo\r\n")
    (repo / ".gitattributes").write_text("*.up filter=up\n")
    (repo / "x.up").write_text("small\n")
    saved = save_snapshot(repo, repo.parent / "scratch", "refs/orc/x", "x", 0)
    assert git(repo, "cat-file", "blob", f"{saved.commit}:lines.txt") == "one\ntwo"
    assert git(repo, "cat-file", "blob", f"{saved.commit}:x.up") == "SMALL"


def test_a_screen_that_the_person_likes_in_colour_changes_nothing_that_we_read(repo: Path, home: Path) -> None:
    add(home, "[color]\nui = always\n[column]\nui = always\n[log]\nshowSignature = true\n[submodule]\nrecurse = true\n")
    (repo / "new").touch()
    assert list_uncommitted(repo) == ["new"]
    assert git(repo, "branch", "--list", "main") == "* main"


def test_a_repository_of_somebody_else_is_refused_unless_the_person_calls_it_safe(repo: Path, home: Path) -> None:
    variables = current_environment().variables
    use_environment(GitEnvironment(variables={**variables, "GIT_TEST_ASSUME_DIFFERENT_OWNER": "1"}))
    with pytest.raises(GitFailed, match="belongs to another user; if you trust it: `git config"):
        identify_tree(repo, repo.parent / "scratch")
    add(home, f"[safe]\ndirectory = {repo}\n")
    assert identify_tree(repo, repo.parent / "scratch")
