"""Our block in `.git/info/exclude`: exact patterns, for one working tree; a person's lines stay, old ones of ours go."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent_orchestrator.git.exclude import BEGIN, END, OLD_MARK, exclude, has_old_lines, include_again
from tests.unit.git.test_repository import git


def excluded(repo: Path) -> list[str]:
    return (repo / ".git" / "info" / "exclude").read_text().splitlines()


def write(folder: Path, *names: str) -> None:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(name)


def test_what_we_write_is_never_seen_by_git_add_and_what_lies_beside_it_is(repo: Path) -> None:
    exclude(repo, (".agents/runs/x/", "state/runs/bd-1.json", "state/runs/.*.orc-tmp"))
    write(repo, ".agents/runs/x/run_state.json", ".agents/runs/y/a", ".agents/prompts/a.md", "state/reducer.ts")
    write(repo, "state/runs/bd-1.json", "state/runs/bd-10.json", "state/runs/.bd-1.json.1-2.orc-tmp", "src/state/runs/bd-1.json")
    git(repo, "add", "--all")
    assert git(repo, "diff", "--cached", "--name-only").splitlines() == [
        ".agents/prompts/a.md", ".agents/runs/y/a", "src/state/runs/bd-1.json", "state/reducer.ts", "state/runs/bd-10.json",
    ]  # fmt: skip


def test_a_home_below_the_top_is_meant_literally(repo: Path) -> None:
    workspace = repo / "the [work] space*"
    exclude(workspace, ("state/runs/a.json",))
    write(workspace, "state/runs/a.json", "state/new.py")
    write(repo, "the w space*/state/runs/a.json", "state/runs/a.json")
    git(repo, "add", "--all")
    seen = git(repo, "diff", "--cached", "--name-only").splitlines()
    assert seen == ["state/runs/a.json", "the [work] space*/state/new.py", "the w space*/state/runs/a.json"]


@pytest.mark.parametrize("before", [None, "", "*.log", "*.log\n", "# mine\n*.log\n\n"])
def test_lines_are_added_once_and_taken_back_and_what_stood_there_stays(before: str | None, repo: Path) -> None:
    file = repo / ".git" / "info" / "exclude"
    file.unlink(missing_ok=True)
    if before is not None:
        file.write_text(before)
    for _ in range(2):
        exclude(repo, (".agents/runs/x/",))
        exclude(repo, (".agents/runs/x/", "state/a.json"))
    lines = (before or "").splitlines()
    assert excluded(repo) == [*lines, f"{BEGIN}.", "/.agents/runs/x/", "/state/a.json", END]
    include_again(repo, (".agents/runs/x/",))
    assert excluded(repo) == [*lines, f"{BEGIN}.", "/state/a.json", END]
    include_again(repo, ("state/a.json",))
    assert excluded(repo) == lines


def test_lines_of_older_versions_are_taken_back_and_a_persons_stay(repo: Path) -> None:
    (repo / ".git" / "info" / "exclude").write_text(
        f"state/\n{OLD_MARK}\n/.agents/\n/state/\n/ws/coordination/\n.claude/locks.json*\n*.swp\n/.aiwg/\n/own/state/\n"
    )
    assert has_old_lines(repo)
    exclude(repo, (".agents/runs/x/",))
    assert excluded(repo) == ["state/", "*.swp", "/own/state/", f"{BEGIN}.", "/.agents/runs/x/", END]
    assert not has_old_lines(repo)


def test_lines_that_a_person_put_below_our_block_are_his(repo: Path) -> None:
    exclude(repo, ("a.json",))
    with (repo / ".git" / "info" / "exclude").open("a") as file:
        file.write("/mine\n")
    exclude(repo, ("b.json",))
    assert excluded(repo)[-5:] == ["/mine", f"{BEGIN}.", "/a.json", "/b.json", END]


def test_a_linked_worktree_has_a_block_of_its_own(repo: Path, tmp_path: Path) -> None:
    git(repo, "worktree", "add", "--quiet", str(tmp_path / "linked"))
    exclude(tmp_path / "linked", ("a.json",))
    exclude(repo, ("b.json",))
    assert excluded(repo)[-6:] == [f"{BEGIN}worktrees/linked", "/a.json", END, f"{BEGIN}.", "/b.json", END]


def test_outside_a_repository_nothing_is_excluded(tmp_path: Path) -> None:
    exclude(tmp_path, (".agents/runs/x/",))
    assert list(tmp_path.iterdir()) == []
