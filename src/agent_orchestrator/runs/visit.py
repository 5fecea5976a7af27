"""A person in a run's working tree: which folder that is, and the shell, editor or command started there."""

from __future__ import annotations

import shlex
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from agent_orchestrator.core.effects import Tree
from agent_orchestrator.errors import Refused, Unavailable, UsageError
from agent_orchestrator.git.branches import make_branch
from agent_orchestrator.git.snapshots import find_commit
from agent_orchestrator.git.worktree import add_worktree, folder_of, open_tree
from agent_orchestrator.runs.brought import bring_run
from agent_orchestrator.runs.interrupted import finish_interrupted
from agent_orchestrator.runs.work import Work, is_apart
from agent_orchestrator.runs.works import pick_works

if TYPE_CHECKING:
    from agent_orchestrator.runs.orchestrator import Orchestrator
    from agent_orchestrator.store.port import StoredRun

SHELL = "/bin/sh"
EDITOR = "vi"


def find_folder(orchestrator: Orchestrator, run: StoredRun, unit: str | None) -> Path:
    """Return the folder with a run's files, its worktree made again where it is gone; raises Refused where that is not clear."""
    orchestrator, run = bring_run(orchestrator, run)
    run = finish_interrupted(orchestrator, run)
    works = pick_works(orchestrator, run, unit)
    folders = list(dict.fromkeys((one.folder, one.branch) for one in works))
    if len(folders) > 1:
        named = ", ".join(one.unit for one in works[:20])
        raise Refused(why=f"Run {run.id} has several working trees: name one of {named}.")
    work = works[0]
    if work.folder and Path(work.folder).is_dir() and (not work.apart or Path(work.folder, ".git").exists()):
        return Path(work.folder)
    return _make_again(orchestrator, run, work)


def _make_again(orchestrator: Orchestrator, run: StoredRun, work: Work) -> Path:
    repo = Path(work.repo)
    if work.tip and find_commit(repo, f"refs/heads/{work.branch}") is None:
        make_branch(repo, work.branch, work.tip)
    if find_commit(repo, f"refs/heads/{work.branch}") is None:
        finish = orchestrator.fold(run).state.doing.finish
        if finish.discarded:
            way = f"git branch {work.branch} {finish.discarded.get(work.branch, '')}"
            raise Refused(why=f"The work of run {run.id} was discarded; bring it back first: {way}")
        raise Refused(
            why=f"The branch {work.branch} of run {run.id} is gone: its work was merged, and there is no tree of it any more."
        )
    orchestrator.refuse_kept(run)
    if work.apart and is_apart(run):
        return add_worktree(Path(run.context.home), Path(run.context.workdir).name)
    tree = Tree(repo=work.repo, branch=work.branch)
    open_tree(repo, run.context.run, tree)
    return folder_of(repo, run.context.run, tree)


def visit(folder: Path, environ: Mapping[str, str], script: str | None, *, editor: bool) -> int:
    """Start a shell, an editor or a command in a folder, and wait for it; returns its exit code."""
    if script is not None:
        if not script.strip():
            raise UsageError(detail="--command is empty; give a command for sh.")
        argv = ["/bin/sh", "-c", script]
    elif editor:
        argv = [*shlex.split(environ.get("VISUAL") or environ.get("EDITOR") or EDITOR), "."]
    else:
        argv = [environ.get("SHELL") or SHELL]
    try:
        code = subprocess.run(argv, cwd=folder, env=dict(environ), check=False).returncode
    except OSError as error:
        raise Unavailable(detail=f"{argv[0]} cannot be started in {folder}: {error.strerror}.") from None
    return code if code >= 0 else 128 - code
