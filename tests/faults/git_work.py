"""Every change that our git makes, as an operation that can be killed anywhere and repeated, and the state that it leaves."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from agent_orchestrator.core.effects import Checkpoint, Merge, Tree
from agent_orchestrator.git.branches import make_branch, switch_to_new
from agent_orchestrator.git.checkpoint import take_checkpoint
from agent_orchestrator.git.merges import PlannedMerge, land_merge, plan_merge
from agent_orchestrator.git.ownership import put_back
from agent_orchestrator.git.removal import plan_removal, remove_trees
from agent_orchestrator.git.results import open_with_results
from agent_orchestrator.git.snapshots import Backup, delete_refs, restore_snapshot
from agent_orchestrator.git.worktree import add_worktree, checkout_detached, merge_folder, open_tree

AT_US = 1_750_000_000_000_000
TREE = Tree(branch="feature/a", start="main")


class Operation(NamedTuple):
    """Something that our git does: the repository before it, and the doing, whose answer is part of what must be the same."""

    prepare: Callable[[Path], None]
    perform: Callable[[Path], object]


def run(repo: Path, *words: str) -> str:
    """Run a person's own git."""
    return subprocess.run(["git", *words], cwd=repo, check=True, capture_output=True, text=True).stdout.strip()


def write(repo: Path, **files: str) -> None:
    """Write files; `__` in a name is a `/`, and `_py` at its end `.py`."""
    for name, text in files.items():
        file = repo / name.replace("__", "/").replace("_py", ".py")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)


def commit(repo: Path, message: str) -> None:
    """Commit all of it."""
    run(repo, "add", "--all")
    run(repo, "commit", "--quiet", "--message", message)


def start(repo: Path) -> None:
    """A repository with a commit on `main`, and some files that are not committed."""
    repo.mkdir(parents=True)
    run(repo, "init", "--quiet", "--initial-branch=main")
    write(repo, a_py="a = 1\n" * 50, b_py="b = 1\n", c_py="c = 1\n" * 2000, old__gone_py="gone\n", kind="a file\n")
    (repo / "link").symlink_to("a.py")
    commit(repo, "First")


def branch_off(repo: Path) -> None:
    """A branch `other` on which files of all kinds changed, merged into nothing."""
    start(repo)
    run(repo, "switch", "--quiet", "--create", "other")
    write(repo, a_py="a = 2\n" * 50, c_py="c = 2\n" * 3000, new__d_py="d = 1\n" * 1000)
    (repo / "b.py").chmod(0o755)
    (repo / "old" / "gone.py").unlink()
    (repo / "kind").unlink()
    write(repo, kind__inside="a folder now\n")
    (repo / "link").unlink()
    (repo / "link").symlink_to("b.py")
    commit(repo, "Second")
    run(repo, "switch", "--quiet", "main")
    write(repo, main_py="main\n")
    commit(repo, "Third")


def branch_alone(repo: Path) -> None:
    """The same, and `main` is checked out nowhere."""
    branch_off(repo)
    run(repo, "switch", "--quiet", "--detach")


def merge(repo: Path) -> object:
    """Merge `other` into `main`."""
    effect = Merge(id="r/m/i1.a1.l1.merge", unit="m", branch="other", into="main", message="Merge other\n", at_us=AT_US)  # type: ignore[arg-type]
    plan = plan_merge(repo, effect)
    ended = land_merge(repo, effect, plan) if isinstance(plan, PlannedMerge) else plan
    return [ended.verdict, ended.commit]


def edited(repo: Path) -> None:
    """A checkout with work in it that nobody committed."""
    start(repo)
    write(repo, a_py="a = 3\n", new_py="new\n")


def save(repo: Path) -> object:
    """Save the tree, and commit it on the branch."""
    effect = Checkpoint(
        id="r/u/i1.a1.l1.save",  # type: ignore[arg-type]
        unit="u",
        at_us=AT_US,
        ref="refs/orc/r/u",
        message="Saved\n",
        branch_message="Work\n",
    )
    ended = take_checkpoint(repo, repo / ".git" / "orc" / "scratch", effect)
    return [ended.commit, ended.branch_commit]


def merging(repo: Path) -> None:
    """A checkout in which somebody began a merge, and resolved it."""
    start(repo)
    run(repo, "switch", "--quiet", "--create", "other")
    write(repo, b_py="b = 2\n")
    commit(repo, "Theirs")
    run(repo, "switch", "--quiet", "main")
    write(repo, b_py="b = 3\n")
    commit(repo, "Ours")
    subprocess.run(["git", "merge", "--quiet", "other"], cwd=repo, capture_output=True, check=False)
    write(repo, b_py="b = 4\n")


def worked(repo: Path) -> None:
    """A worktree of a run with a commit, ready to be removed: its branch is merged."""
    start(repo)
    folder = add_worktree(repo, "r1")
    write(folder, work_py="work\n")
    commit(folder, "Work")
    run(repo, "merge", "--quiet", "orc/r1")
    run(repo, "pack-refs", "--all")


def remove(repo: Path) -> None:
    """Remove the worktree and its branch."""
    plan = plan_removal(repo, "r1")
    assert not plan.kept, plan
    remove_trees(repo, plan)


def checked_out(repo: Path) -> None:
    """A worktree for checks, in which an earlier check left something."""
    branch_off(repo)
    folder = merge_folder(repo, "r", "main")
    checkout_detached(repo, folder, run(repo, "rev-parse", "main"))
    write(folder, a_py="left\n", left_py="left\n")


def check_out(repo: Path) -> None:
    """Check out another commit in it."""
    checkout_detached(repo, merge_folder(repo, "r", "main"), run(repo, "rev-parse", "other"))


def with_refs(repo: Path) -> None:
    """Snapshots under refs of ours, some of them packed."""
    start(repo)
    for number in range(3):
        run(repo, "update-ref", f"refs/orc/r/{number}", "HEAD")
        if number == 1:
            run(repo, "pack-refs", "--all")


def moved_on(repo: Path) -> None:
    """A branch with two commits, and work that nobody committed."""
    branch_off(repo)
    run(repo, "switch", "--quiet", "other")
    write(repo, a_py="a = 9\n", mine_py="mine\n")


def restore(repo: Path) -> object:
    """Bring the files of the first commit back."""
    backup = Backup("refs/orc/r/before", "Before\n", AT_US)
    return restore_snapshot(repo, repo / ".git" / "orc" / "scratch", run(repo, "rev-parse", "main"), backup)


def with_results(repo: Path) -> None:
    """A worktree with work in it that nobody committed, and a branch beside it."""
    branch_off(repo)
    open_tree(repo, "r", Tree(branch="work/one", start="main"))
    write(repo / ".agents" / "worktrees" / "r~work~one", one_py="one\n")


def missing(repo: Path) -> None:
    """Tracked files that are gone."""
    start(repo)
    for name in ("a.py", "c.py"):
        (repo / name).unlink()


OPERATIONS = {
    "make a worktree": Operation(start, lambda repo: str(add_worktree(repo, "r1"))),
    "open a tree": Operation(start, lambda repo: open_tree(repo, "r", TREE)),
    "open a tree with results": Operation(
        with_results, lambda repo: open_with_results(repo, "r", Tree(branch="work/two", start="main", onto=("work/one", "other")))
    ),
    "check out a merge": Operation(
        branch_off, lambda repo: checkout_detached(repo, merge_folder(repo, "r", "main"), run(repo, "rev-parse", "other"))
    ),
    "check out another merge": Operation(checked_out, check_out),
    "land in a checkout": Operation(branch_off, merge),
    "land without a checkout": Operation(branch_alone, merge),
    "save and commit": Operation(edited, save),
    "commit a merge": Operation(merging, save),
    "switch to a new branch": Operation(edited, lambda repo: switch_to_new(repo, "phases/x")),
    "make a branch": Operation(start, lambda repo: make_branch(repo, "kept", run(repo, "rev-parse", "HEAD"))),
    "restore a snapshot": Operation(moved_on, restore),
    "remove a worktree": Operation(worked, remove),
    "delete snapshots": Operation(with_refs, lambda repo: delete_refs(repo, "refs/orc/r/")),
    "put files back": Operation(missing, lambda repo: put_back(repo, ["a.py", "c.py"])),
}


def observe(repo: Path) -> dict[str, object]:
    """Return all that a person would see of a repository, and the locks that would be in his way."""
    git = repo / ".git"
    trees = [line.split()[1] for line in run(repo, "worktree", "list", "--porcelain").splitlines() if line.startswith("worktree")]
    return {
        "refs": run(repo, "for-each-ref", "--format=%(refname) %(objectname)"),
        "locks": [str(one) for one in git.rglob("*.lock") if not one.is_relative_to(git / "orc")],
        "halves": sorted(one.name for one in (git / "worktrees").glob("*/locked")),
        "folders": sorted(one.name for one in (repo / ".agents" / "worktrees").glob("*")),
        "trees": {tree: _look(Path(tree)) for tree in trees},
        "merge": sorted(one.name for one in git.glob("*MERGE*")),
    }


def _look(tree: Path) -> dict[str, object]:
    files = {}
    for folder, folders, names in os.walk(tree):
        folders[:] = [one for one in folders if one not in (".git", ".agents")]
        for name in names:
            file = Path(folder, name)
            content = str(file.readlink()) if file.is_symlink() else file.read_bytes() if name != ".git" else b""
            files[str(file.relative_to(tree))] = (content, file.lstat().st_mode)
    head = subprocess.run(
        ["git", "symbolic-ref", "--quiet", "HEAD"], cwd=tree, capture_output=True, text=True, check=False
    ).stdout
    return {"head": head, "commit": run(tree, "rev-parse", "HEAD"), "status": run(tree, "status", "--porcelain"), "files": files}
