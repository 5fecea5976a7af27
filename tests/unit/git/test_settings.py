"""The settings of git are listed once, whatever is asked of them, and again when a file that has them changed."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from agent_orchestrator.config import load_settings
from agent_orchestrator.errors import GitFailed
from agent_orchestrator.git.command import find_setting
from agent_orchestrator.git.ownership import list_new
from agent_orchestrator.git.settings import find_settings
from agent_orchestrator.git.snapshots import is_set
from tests.counting import count_calls, until_settled


@pytest.fixture
def home(tmp_path: Path, repo: Path) -> Path:
    """A home folder that our git knows, with one setting."""
    folder = tmp_path / "home"
    folder.mkdir()
    (folder / ".gitconfig").write_text("[one]\ntwo = old\n")
    load_settings(str(repo), {"HOME": str(folder), "PATH": os.environ["PATH"]})
    return folder


def test_settings_are_listed_once_for_all_that_is_asked_of_them(repo: Path, home: Path) -> None:
    def ask() -> list[str | None]:
        return [find_setting(repo, key) for key in ("one.two", "three.four", "core.bare")]

    until_settled(repo, home / ".gitconfig")
    assert ask() == ["old", None, "false"]
    assert count_calls(ask)["fork_exec"] == 0


@pytest.mark.parametrize(("later_ns", "times"), [(1, 2), (1_000_000_000, 1)])
def test_a_file_that_may_change_again_within_its_tick_is_read_again(repo: Path, later_ns: int, times: int) -> None:
    changed_ns = (repo / ".git/config").stat().st_ctime_ns
    asked: list[bytes] = []

    def read() -> bytes:
        asked.append(b"local\0file:.git/config\0one.two\nold\0")
        return asked[-1]

    for _ in range(2):
        found = find_settings(repo / ".git", repo / ".git", {"HOME": "/nowhere"}, read, lambda: changed_ns + later_ns)
        assert found == (("local", "one.two", "old"),)
    assert len(asked) == times


WAYS: dict[str, Callable[[Path, Path], object]] = {
    "a person's settings": lambda repo, home: (home / ".gitconfig").write_text("[one]\ntwo = new\n"),
    "the other file of a person": lambda repo, home: put(home / ".config/git/config", "[one]\ntwo = older\n[five]\nsix = 6\n"),
    "the repository's settings": lambda repo, home: configure(repo, "one.two", "new"),
    "a file that is included": lambda repo, home: (home / "more").write_text("[one]\ntwo = newer\n"),
    "a file that is included and was not there": lambda repo, home: (home / "missing").write_text("[one]\ntwo = newest\n"),
}


def put(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True)
    file.write_text(text)


def configure(repo: Path, key: str, value: str) -> None:
    subprocess.run(["git", "config", "--local", key, value], cwd=repo, check=True)


@pytest.mark.parametrize("way", WAYS)
def test_they_are_listed_again_when_a_file_of_them_changed(repo: Path, home: Path, way: str) -> None:
    (home / "more").write_text("[one]\ntwo = included\n")
    included = f"[include]\npath = more\n[include]\npath = {home}/missing\n"
    (home / ".gitconfig").write_text(f"[one]\ntwo = old\n{included if 'included' in way else ''}")
    before = find_setting(repo, "one.two"), find_setting(repo, "five.six")
    WAYS[way](repo, home)
    after = find_setting(repo, "one.two"), find_setting(repo, "five.six")
    assert after != before
    wanted = [
        subprocess.run(
            ["git", "config", key], cwd=repo, env={"HOME": str(home)}, capture_output=True, text=True, check=False
        ).stdout
        for key in ("one.two", "five.six")
    ]
    assert [said or "" for said in after] == [said.strip() for said in wanted]


def test_what_a_repositorys_own_file_includes_is_read_each_time(repo: Path, home: Path) -> None:
    configure(repo, "include.path", str(home / "not-yet"))
    assert find_setting(repo, "one.two") == "old"
    (home / "not-yet").write_text("[one]\ntwo = new\n")
    assert find_setting(repo, "one.two") == "new"


def test_what_a_person_includes_for_a_branch_comes_with_it(repo: Path, home: Path) -> None:
    (home / "more").write_text("[one]\ntwo = on the branch\n")
    (home / ".gitconfig").write_text(f'[includeIf "onbranch:other"]\npath = {home}/more\n')
    assert find_setting(repo, "one.two") is None
    subprocess.run(["git", "switch", "--quiet", "--create", "other"], cwd=repo, check=True)
    assert find_setting(repo, "one.two") == "on the branch"


@pytest.mark.parametrize("value", ["true", "Yes", "on", "1", "7", "false", "No", "OFF", "0", '""', None])
def test_whether_one_is_set_is_what_git_says(repo: Path, home: Path, value: str | None) -> None:
    assignment = f" = {value}" if value is not None else ""
    (home / ".gitconfig").write_text(f"[commit]\ngpgSign{assignment}\n")
    how = ["git", "config", "--type=bool", "commit.gpgSign"]
    said = subprocess.run(how, cwd=repo, env={"HOME": str(home)}, capture_output=True, text=True, check=True).stdout
    assert is_set(repo, "commit.gpgSign") is (said.strip() == "true")


def test_one_that_is_neither_on_nor_off_is_an_error(repo: Path, home: Path) -> None:
    (home / ".gitconfig").write_text("[commit]\ngpgSign = perhaps\n")
    with pytest.raises(GitFailed, match="bad boolean config value 'perhaps'"):
        is_set(repo, "commit.gpgSign")


@pytest.mark.parametrize("place", ["~/mine", "{home}/mine", "../home/mine", "~root/no-such-file"])
def test_a_persons_rules_for_all_repositories_are_followed_wherever_they_are(repo: Path, home: Path, place: str) -> None:
    (home / "mine").write_text("*.log\n")
    (home / ".gitconfig").write_text(f"[core]\nexcludesFile = {place.format(home=home)}\n")
    (repo / "a.log").write_text("a\n")
    (repo / "a.txt").write_text("a\n")
    assert list_new(repo) == (["a.log", "a.txt"] if "root" in place else ["a.txt"])
