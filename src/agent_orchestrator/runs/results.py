"""The results of a run when it rests: committed at its end, kept as trees, and told with their size and what to do with them.

A run with a worktree of its own ends with everything in it committed on its branch, however it ended: what only lies in
a folder below `.agents/` nobody finds. A process that was killed before is made up for by the next one that drives the run.
"""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agent_orchestrator.core.units import say_count
from agent_orchestrator.errors import GitFailed, Shortage
from agent_orchestrator.git.branches import find_branch
from agent_orchestrator.git.command import hold_lock
from agent_orchestrator.git.merges import is_ancestor
from agent_orchestrator.git.snapshots import commit_on_branch, find_commit, find_unfinished_merge, is_clean, write_tree
from agent_orchestrator.git.worktree import branch_in
from agent_orchestrator.runs.changes import ChangeSize, measure
from agent_orchestrator.runs.secrets import make_redactor
from agent_orchestrator.runs.tidy import remove_merged
from agent_orchestrator.runs.work import Work, end_ref, is_apart, start_ref
from agent_orchestrator.runs.works import find_works, keep_tree
from agent_orchestrator.store.port import StoredRun

if TYPE_CHECKING:
    from agent_orchestrator.core.summary import Summary
    from agent_orchestrator.engine.journal import Folded
    from agent_orchestrator.runs.orchestrator import Orchestrator

BRANCHES_SHOWN = 5
MEASURED_MAX = 20
"""More works than this are not measured when a run rests: each is a diff."""


def keep_start(orchestrator: Orchestrator, run: StoredRun) -> None:
    """Keep the tree that a run finds, before anything of it happens: what it changes is told from there."""
    if next(iter(orchestrator.store.rows(run.id, 1)), None) is None:
        keep_tree(orchestrator, run, start_ref(run.id), f"{run.id}: the tree that it found", run.context.created_us)


def keep_end(orchestrator: Orchestrator, run: StoredRun, summary: Summary) -> None:
    """Commit and keep what a run that has just ended leaves, and remove what it merged itself.

    The run has ended whether git can do it or not: whoever asks for the work is told what is not committed.
    """
    folded = orchestrator.fold(run)
    scratch = orchestrator.settings.folder / "launches" / run.id / "end"
    with contextlib.suppress(GitFailed, Shortage, OSError):
        name = make_redactor(orchestrator, run).redact_text(run.name)
        commit_work(run, name, scratch, folded.seq, folded.at_us, summary.status)
    if not run.summary.ended:
        keep_tree(orchestrator, run, end_ref(run.id), f"{run.id}: the tree that it left, event {folded.seq}", folded.at_us)
        with contextlib.suppress(GitFailed, Shortage, OSError):
            remove_merged(orchestrator, orchestrator.find(run.id), folded)


def commit_work(run: StoredRun, name: str, scratch: Path, seq: int, at_us: int, status: str) -> None:
    """Commits what is left in the worktree of a run that ended; raises GitFailed. Repeated, it finds its own commit.

    A tree on another branch, or in the middle of a merge, is left as it is: `find_work` says so.
    """
    folder = Path(run.context.workdir)
    if not is_apart(run) or not folder.is_dir() or _unfit(folder):
        return
    title = f"{name}: {status.replace('_', ' ')}"[:100]
    message = f"{title}\n\nOrc-Run: {run.id}\nOrc-Event: {seq}\n"
    with hold_lock(folder, f"saving~{folder.name}"):
        commit_on_branch(folder, scratch, write_tree(folder, scratch), message, at_us)


def _unfit(folder: Path) -> str:
    """Say why nothing can be committed there."""
    found, wanted = find_branch(folder), branch_in(folder)
    if found != wanted:
        return f"the worktree was left on {found or 'no branch'} instead of {wanted}"
    if find_unfinished_merge(folder).other is not None:
        return "a merge in it is not finished"
    return ""


def _of_branch(orchestrator: Orchestrator, run: StoredRun, folded: Folded) -> list[Work]:
    """Return the works on branches that exist."""
    works = find_works(orchestrator, run, folded)
    return [one for one in works if not one.aside and one.branch and find_commit(Path(one.repo), f"refs/heads/{one.branch}")]


def _is_merged(work: Work) -> bool:
    """Tell whether the target has all of a work, also what its agent left uncommitted."""
    target, repo, folder = work.into or "HEAD", Path(work.repo), Path(work.folder)
    if find_commit(repo, target) is None or not is_ancestor(repo, f"refs/heads/{work.branch}", target):
        return False
    return not work.apart or not (folder / ".git").exists() or is_clean(folder)


def _uncommitted(run: StoredRun, work: Work) -> str:
    """Say why something in the worktree of a run is on no branch; '' when everything is."""
    folder = Path(work.folder)
    if not work.apart or not folder.is_dir() or is_clean(folder):
        return ""
    return (_unfit(folder) if is_apart(run) else "") or ("the run has not ended" if not run.summary.ended else "changed since")


def work_facts(orchestrator: Orchestrator, run: StoredRun) -> dict[str, Any] | None:
    """Return the work on the run's own branch, for `--json`; None without one."""
    if not is_apart(run):
        return None
    folded = orchestrator.fold(run)
    try:
        works = _of_branch(orchestrator, run, folded)
        if not works:
            return None
        work = works[0]
        size = measure(orchestrator, run, work, folded) or ChangeSize()
        return {
            "branch": work.branch,
            "path": work.folder,
            "files": size.files,
            "added": size.added,
            "removed": size.removed,
            "merged": _is_merged(work),
            "uncommitted": _uncommitted(run, work),
        }
    except (GitFailed, Shortage):
        return None


def work_lines(orchestrator: Orchestrator, run: StoredRun) -> list[str]:
    """Say where the work of a run is, how much it is, and what can be done with it."""
    run = orchestrator.find(run.id)
    folded = orchestrator.fold(run)
    try:
        works = [one for one in find_works(orchestrator, run, folded) if not one.aside]
        if any(one.branch for one in works):
            return _branch_lines(orchestrator, run, folded, _of_branch(orchestrator, run, folded))
        return _place_lines(orchestrator, run, folded, works)
    except (GitFailed, Shortage) as error:
        return [f"work: {run.context.workdir}, {error}"]


def _verbs(run: StoredRun, *verbs: str) -> str:
    return "next: " + "   ".join(f"orc {verb} {run.id}" for verb in verbs)


def _branch_lines(orchestrator: Orchestrator, run: StoredRun, folded: Folded, works: list[Work]) -> list[str]:
    ended = run.summary.ended
    left = [one for one in works if not _is_merged(one)]
    if len(works) == 1 and not works[0].unit:
        lines = [_line(orchestrator, run, folded, works[0])]
        why = _uncommitted(run, works[0])
        if why:
            lines.append(f"not committed yet: git -C {works[0].folder} status   ({why})")
    elif left:
        named = ", ".join(one.branch for one in left[:BRANCHES_SHOWN])
        more = f" and {len(left) - BRANCHES_SHOWN} more" if len(left) > BRANCHES_SHOWN else ""
        lines = [f"work: {say_count(len(left), 'branch')} not merged yet ({named}{more})"]
    else:
        return []
    if not ended:
        return [*lines, _verbs(run, "diff", "open")]
    ready = any(not one.unready for one in left)
    return [*lines, _verbs(run, "diff", *(("merge", "pr") if ready else ()), "discard")] if left else lines


def _line(orchestrator: Orchestrator, run: StoredRun, folded: Folded, work: Work) -> str:
    size = measure(orchestrator, run, work, folded)
    where = f" in {work.folder}" if Path(work.folder).is_dir() else ""
    return f"work: branch {work.branch}{where}: {_say_size(size, 'nothing committed')}"


def _place_lines(orchestrator: Orchestrator, run: StoredRun, folded: Folded, works: list[Work]) -> list[str]:
    places = list({one.folder: one for one in works}.values())[:MEASURED_MAX]
    sizes = {one.folder: size for one in places if (size := measure(orchestrator, run, one, folded)) is not None}
    lines = [f"work: in {folder}: {_say_size(size, '')}" for folder, size in sizes.items() if size.files]
    if not lines:
        return ["work: nothing changed"] if sizes and run.summary.ended else []
    return [*lines, _verbs(run, "diff", *(("discard",) if run.summary.ended else ()))]


def _say_size(size: ChangeSize | None, nothing: str) -> str:
    if size is None or not size.files:
        return nothing
    return f"{say_count(size.files, 'file')} changed, +{size.added} -{size.removed}"
