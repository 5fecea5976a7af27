"""Identifies a working tree, untracked files included, without touching the repository's index or object store."""

from __future__ import annotations

import shutil
from pathlib import Path

from agent_orchestrator.errors import GitFailed
from agent_orchestrator.git.run import git
from agent_orchestrator.git.whose import stage_work


def tree_of(workdir: Path, scratch: Path) -> str | None:
    """The tree id of everything in the working tree that is not ignored and not ours; None without git."""
    index, objects = scratch / "index", scratch / "objects"
    try:
        real_index = Path(git(workdir, "rev-parse", "--path-format=absolute", "--git-path", "index"))
        real_objects = git(workdir, "rev-parse", "--path-format=absolute", "--git-path", "objects")
        objects.mkdir(parents=True, exist_ok=True)
        if real_index.exists():
            shutil.copyfile(real_index, index)
        env = {
            "GIT_INDEX_FILE": str(index),
            "GIT_OBJECT_DIRECTORY": str(objects),
            "GIT_ALTERNATE_OBJECT_DIRECTORIES": real_objects,
        }
        stage_work(workdir, env)
        return git(workdir, "write-tree", env=env)
    except (GitFailed, OSError):
        return None
    finally:
        index.unlink(missing_ok=True)
        shutil.rmtree(objects, ignore_errors=True)
