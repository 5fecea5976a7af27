"""Identifies a working tree, untracked files included, without touching the repository's index or object store."""

from __future__ import annotations

import shutil
from pathlib import Path

from agent_orchestrator.errors import GitFailed
from agent_orchestrator.git.run import git

OURS = (
    ".agents",
    ".aiwg",
    *(f"coordination/{name}" for name in ("archive", "group_status.json", "orchestrator_state.json", "pm_state.json")),
    *(f"coordination/messages/{name}.json" for name in ("dev_to_qa", "qa_to_techlead", "techlead_to_dev")),
    *("state/SCHEMA.md", "state/schemas/run.schema.json", "state/schemas/result.schema.json"),
    *("state/runs/*.json*", "state/results/*.json*"),
    *(".claude/agent-state.json*", ".claude/locks.json*", ".claude/checkpoint*.json*"),
    *(".claude/learnings.jsonl", ".claude/milestones", ".claude/archive"),
)
"""What we write ourselves never counts as a change."""


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
        git(workdir, "add", "--all", "--", ":/", env=env)
        git(workdir, "rm", "-r", "--cached", "--quiet", "--ignore-unmatch", "--", *OURS, env=env)
        return git(workdir, "write-tree", env=env)
    except (GitFailed, OSError):
        return None
    finally:
        index.unlink(missing_ok=True)
        shutil.rmtree(objects, ignore_errors=True)
