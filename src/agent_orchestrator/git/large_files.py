"""Git LFS: the contents of large files, which a push of commits leaves behind.

A person's push takes them along by a hook that `git lfs install` puts into the repository. We run no hook of a repository, since
an agent may have written it; so the person's own program is asked to do the same.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path

from agent_orchestrator.core.files import DRAFT
from agent_orchestrator.git.command import ask_git, git, run_program

KEPT = Path("lfs", "objects")


def push_large_files(
    where: Path, remote: str, commits: Iterable[str], environ: Mapping[str, str], more: Path | None = None
) -> None:
    """Send a remote the large files of some commits that it lacks; raises Unavailable with what git said.

    `where` must be no tree that an agent works in: its `.lfsconfig` names the server. `more` is the git directory of another
    repository that has some of the files.
    """
    own = Path(git(where, "rev-parse", "--path-format=absolute", "--git-common-dir"))
    if more is not None and more != own:
        _take_files(more / KEPT, own / KEPT)
    if (own / KEPT).is_dir() and ask_git(where, "config", "--get", "filter.lfs.clean", answers=(0, 1))[0] == 0:
        run_program(where, ("git", "lfs", "push", remote, *commits), environ)


def _take_files(source: Path, target: Path) -> None:
    """Copy what is only in one store of large files to another; each is whole or absent there, and named by its content."""
    for folder, _, names in os.walk(source):
        for name in names:
            file = Path(folder, name)
            taken = target / file.relative_to(source)
            if file.is_symlink() or taken.exists():
                continue
            taken.parent.mkdir(parents=True, exist_ok=True)
            draft = taken.with_name(f"{name}{DRAFT}")
            shutil.copyfile(file, draft, follow_symlinks=False)
            draft.replace(taken)
