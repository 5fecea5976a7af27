"""Programs that only a repository's own configuration names: none of them is run by our git, whatever it is asked."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from agent_orchestrator.config import load_settings
from agent_orchestrator.config.defaults import load_configuration
from agent_orchestrator.errors import GitFailed, UsageError
from agent_orchestrator.git.command import git
from agent_orchestrator.git.diffs import read_diff
from agent_orchestrator.git.ownership import list_uncommitted
from agent_orchestrator.git.snapshots import identify_tree, save_snapshot
from agent_orchestrator.git.worktree import add_worktree
from tests.unit.git.test_merges import branch, landed, merge


@pytest.fixture
def marker(tmp_path: Path) -> Path:
    """A file that appears when planted code runs, and the program that makes it."""
    program = tmp_path / "planted"
    program.write_text(f"#!/bin/sh\ntouch {tmp_path / 'marker'}\ncat\n")
    program.chmod(0o755)
    return tmp_path / "marker"


def planted(marker: Path) -> str:
    return str(marker.with_name("planted"))


def configure(repo: Path, *settings: tuple[str, str]) -> None:
    for key, value in settings:
        subprocess.run(["git", "config", "--local", key, value], cwd=repo, check=True)


def use_everything(repo: Path, scratch: Path) -> None:
    """Do with a repository whatever runs programs in somebody's git."""
    (repo / "README.md").write_text("changed\n")
    saved = save_snapshot(repo, scratch, "refs/orc/x", "x", 0)
    identify_tree(repo, scratch)
    list_uncommitted(repo)
    read_diff(repo, "HEAD", saved.commit, 10_000)
    add_worktree(repo, "x")


@pytest.mark.parametrize(
    ("key", "attribute"),
    [
        ("core.fsmonitor", ""),
        ("diff.external", ""),
        ("diff.evil.command", "diff=evil"),
        ("diff.evil.textconv", "diff=evil"),
        ("gpg.program", ""),
        ("alias.status", ""),
    ],
)
def test_a_program_in_the_repositorys_configuration_is_not_run(repo: Path, marker: Path, key: str, attribute: str) -> None:
    configure(repo, (key, planted(marker)), ("log.showSignature", "true"))
    (repo / ".gitattributes").write_text(f"* {attribute}\n" if attribute else "")
    use_everything(repo, repo.parent / "scratch")
    assert not marker.exists()


def test_a_hook_of_the_repository_is_not_run(repo: Path, marker: Path) -> None:
    for folder in (repo / ".git" / "hooks", repo.parent / "hooks"):
        folder.mkdir(exist_ok=True)
        for name in ("post-checkout", "reference-transaction", "post-index-change"):
            (folder / name).write_text(f"#!/bin/sh\ntouch {marker}\n")
            (folder / name).chmod(0o755)
    use_everything(repo, repo.parent / "scratch")
    configure(repo, ("core.hooksPath", str(repo.parent / "hooks")))
    use_everything(repo, repo.parent / "scratch")
    assert not marker.exists()


@pytest.mark.parametrize("included", [False, True])
def test_a_file_is_not_filtered_by_a_program_of_the_repository_nor_kept_unfiltered(
    repo: Path, marker: Path, included: bool
) -> None:
    if included:
        other = repo.parent / "included"
        other.write_text(f'[filter "evil"]\nclean = {planted(marker)}\nsmudge = {planted(marker)}\n')
        configure(repo, ("include.path", str(other)))
    else:
        configure(repo, ("filter.evil.clean", planted(marker)), ("filter.evil.smudge", planted(marker)))
    (repo / ".git" / "info" / "attributes").write_text("*.md filter=evil\n")
    (repo / "README.md").write_text("changed\n")
    with pytest.raises(GitFailed, match=r"filter evil is defined in this repository's own configuration.*trust"):
        save_snapshot(repo, repo.parent / "scratch", "refs/orc/x", "x", 0)
    with pytest.raises(GitFailed, match="filter 'evil' failed"):
        identify_tree(repo, repo.parent / "scratch")
    assert not marker.exists()


def test_a_changed_configuration_is_noticed_in_the_same_process(repo: Path, marker: Path) -> None:
    use_everything(repo, repo.parent / "scratch")
    configure(repo, ("filter.evil.process", planted(marker)))
    (repo / ".gitattributes").write_text("* filter=evil\n")
    with pytest.raises(GitFailed, match="filter 'evil' failed"):
        identify_tree(repo, repo.parent / "scratch")
    assert not marker.exists()


def test_a_merge_driver_of_the_repository_is_not_run_and_files_are_merged_as_text(repo: Path, marker: Path) -> None:
    lines = [f"{number}\n" for number in range(9)]
    (repo / "file").write_text("".join(lines))
    for words in (["add", "."], ["commit", "-qm", "lines"]):
        subprocess.run(["git", *words], cwd=repo, check=True)
    branch(repo, "one", {"file": "".join([*lines[:-1], "last\n"])})
    (repo / "file").write_text("".join(["first\n", *lines[1:]]))
    subprocess.run(["git", "commit", "-qam", "first"], cwd=repo, check=True)
    (repo / ".git" / "info" / "attributes").write_text("* merge=evil\n")
    configure(repo, ("merge.evil.driver", planted(marker)), ("merge.evil.name", "x"))
    landed(repo, merge("one"))
    assert (repo / "file").read_text() == "".join(["first\n", *lines[1:-1], "last\n"])
    assert not marker.exists()


def test_a_repository_inside_this_one_is_not_asked_with_its_own_configuration(repo: Path, marker: Path) -> None:
    inner = repo / "inner"
    inner.mkdir()
    (inner / "file").write_text("one\n")
    for words in (["init", "-q"], ["add", "."], ["commit", "-qm", "one"]):
        subprocess.run(["git", *words], cwd=inner, check=True)
    subprocess.run(["git", "-c", "advice.addEmbeddedRepo=false", "add", "."], cwd=repo, check=True)
    subprocess.run(["git", "commit", "-qm", "with another"], cwd=repo, check=True)
    configure(inner, ("filter.evil.clean", planted(marker)), ("core.fsmonitor", planted(marker)))
    (inner / ".git" / "info" / "attributes").write_text("* filter=evil\n")
    (inner / "file").write_text("two\n")
    use_everything(repo, repo.parent / "scratch")
    assert not marker.exists()


def test_a_configuration_that_moves_the_files_elsewhere_is_refused(repo: Path, tmp_path: Path) -> None:
    configure(repo, ("core.worktree", str(tmp_path)))
    with pytest.raises(GitFailed, match=r"core\.worktree says that the files are in"):
        list_uncommitted(repo)


def trust(tmp_path: Path, text: str) -> dict[str, str]:
    folder = tmp_path / "home" / ".config" / "orc"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.toml").write_text(text)
    return {"HOME": str(tmp_path / "home"), "PATH": "/usr/bin:/bin"}


def test_a_repository_that_the_user_trusts_runs_its_programs(repo: Path, marker: Path, tmp_path: Path) -> None:
    configure(repo, ("filter.good.clean", planted(marker)))
    (repo / ".gitattributes").write_text("*.md filter=good\n")
    (repo / "README.md").write_text("changed\n")
    load_settings(str(repo), trust(tmp_path, f'[git]\ntrusted = ["{repo}"]\n'))
    save_snapshot(repo, tmp_path / "scratch", "refs/orc/x", "x", 0)
    assert marker.exists()


def test_the_repository_cannot_trust_itself(repo: Path, marker: Path) -> None:
    configure(repo, ("core.fsmonitor", planted(marker)))
    (repo / ".orc.toml").write_text(f'[git]\ntrusted = ["{repo}"]\n')
    settings = load_settings(str(repo), {"HOME": "/nowhere", "PATH": "/usr/bin:/bin"})
    use_everything(repo, repo.parent / "scratch")
    assert not marker.exists()
    with pytest.raises(UsageError, match=r"\[git\] says which repositories to trust, and an agent may write here; move it to"):
        load_configuration(settings)


@pytest.mark.parametrize("text", ["trusted = 3", 'trusted = ["relative"]', "other = 1"])
def test_a_fault_in_the_list_of_trusted_repositories_is_told_and_trusts_nothing(
    repo: Path, marker: Path, tmp_path: Path, text: str
) -> None:
    configure(repo, ("core.fsmonitor", planted(marker)))
    settings = load_settings(str(repo), trust(tmp_path, f"[git]\n{text}\n"))
    use_everything(repo, repo.parent / "scratch")
    assert not marker.exists()
    with pytest.raises(UsageError, match=r"a list of absolute paths|unknown key other; there are trusted"):
        load_configuration(settings)


def test_what_the_user_configured_for_all_repositories_outranks_what_this_one_says(
    repo: Path, marker: Path, tmp_path: Path
) -> None:
    environ = trust(tmp_path, "")
    (tmp_path / "home" / ".gitconfig").write_text('[filter "shout"]\nclean = tr a-z A-Z\nrequired = true\n')
    configure(repo, ("filter.shout.clean", planted(marker)), ("filter.shout.smudge", planted(marker)))
    (repo / ".gitattributes").write_text("*.md filter=shout\n")
    (repo / "README.md").write_text("filtered\n")
    load_settings(str(repo), environ)
    saved = save_snapshot(repo, tmp_path / "scratch", "refs/orc/x", "x", 0)
    assert git(repo, "cat-file", "blob", f"{saved.commit}:README.md") == "FILTERED"
    configure(repo, ("filter.shout.process", planted(marker)))
    with pytest.raises(GitFailed, match="filter 'shout' failed"):
        identify_tree(repo, tmp_path / "scratch")
    assert not marker.exists()
