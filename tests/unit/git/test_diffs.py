"""The files in which two trees differ, as one git command tells them: what became of each, and by how many lines."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from agent_orchestrator.git.diffs import ChangedFile, TreePair, list_changed
from tests.counting import count_calls, until_settled


def commit(repo: Path, message: str) -> str:
    subprocess.run(["git", "add", "--all"], cwd=repo, check=True)
    subprocess.run(["git", "commit", "--quiet", "--message", message], cwd=repo, check=True)
    return subprocess.run(["git", "rev-parse", "HEAD"], cwd=repo, capture_output=True, text=True, check=True).stdout.strip()


def test_each_file_has_its_change_its_lines_and_its_former_name(repo: Path) -> None:
    (repo / "gone").write_text("1\n2\n")
    (repo / "moved").write_text("".join(f"{n}\n" for n in range(20)))
    (repo / "picture").write_bytes(b"\0one")
    (repo / "run").symlink_to("gone")
    old = commit(repo, "before")
    (repo / "gone").unlink()
    (repo / "moved").rename(repo / "moved to ü")
    with (repo / "moved to ü").open("a") as file:
        file.write("more\n")
    (repo / "picture").write_bytes(b"\0two")
    (repo / "run").unlink()
    (repo / "run").write_text("a file now\n")
    (repo / ":odd\tname").write_text("x\n")
    Path(repo, os.fsdecode(b"\xff")).write_text("y\n")
    difference = TreePair(repo, old, commit(repo, "after"))
    until_settled(repo)
    assert sorted(list_changed(difference), key=lambda one: (one.status, one.path)) == [
        ChangedFile(path=":odd\tname", status="A", added=1, removed=0),
        ChangedFile(path="\\xff", status="A", added=1, removed=0),
        ChangedFile(path="gone", status="D", added=0, removed=2),
        ChangedFile(path="picture", status="M"),
        ChangedFile(path="moved to ü", status="R", was="moved", added=1, removed=0),
        ChangedFile(path="run", status="T", added=1, removed=1),
    ]
    assert count_calls(lambda: list_changed(difference))["fork_exec"] <= 2


def test_trees_that_are_the_same_differ_in_no_file(repo: Path) -> None:
    head = commit(repo, "same") if (repo / "x").write_text("x") else ""
    assert list_changed(TreePair(repo, head, head)) == ()
