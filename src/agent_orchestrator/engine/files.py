"""Small file operations the engine needs done carefully: atomic copies, moves that keep everything."""

from __future__ import annotations

import os
from pathlib import Path

from agent_orchestrator.beneath import open_folder, replace_file
from agent_orchestrator.core.files import DRAFT


def write_whole(root: Path, path: Path, content: bytes, mode: int = 0o644) -> None:
    """Writes a file below a root so that a reader sees the old or the new content, never a part; through no link."""
    with open_folder(root, path.parent, make=True) as folder:
        replace_file(folder, path.name, f".{path.name}.{os.getpid()}{DRAFT}", content, mode)


def move_aside(path: Path, suffix: str, root: Path | None = None) -> Path:
    """Renames a file to `<name>.<suffix>`, numbered so that nothing is overwritten; below a root through no link."""
    with open_folder(root or path.parent, path.parent) as folder:
        name, number, there = f"{path.name}.{suffix}", 1, frozenset(os.listdir(folder))
        while name in there:
            number += 1
            name = f"{path.name}.{suffix}-{number}"
        os.rename(path.name, name, src_dir_fd=folder, dst_dir_fd=folder)
    return path.with_name(name)
