"""Small file operations the engine needs done carefully: atomic copies, moves that keep everything."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from agent_orchestrator.beneath import open_folder, write_new
from agent_orchestrator.core.files import DRAFT


def write_plainly(root: Path, path: Path, content: bytes) -> None:
    """Writes a file below a root that nobody reads yet, through no link; the folders on the way are made."""
    with open_folder(root, path.parent, make=True) as folder:
        write_new(folder, path.name, content)


def write_whole(root: Path, path: Path, content: bytes) -> None:
    """Writes a file below a root so that a reader sees the old or the new content, never a part; through no link."""
    temporary = f".{path.name}.{os.getpid()}{DRAFT}"
    with open_folder(root, path.parent, make=True) as folder:
        try:
            write_new(folder, temporary, content)
            os.replace(temporary, path.name, src_dir_fd=folder, dst_dir_fd=folder)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(temporary, dir_fd=folder)
            raise


def move_aside(path: Path, suffix: str) -> Path:
    """Renames a file to `<name>.<suffix>`, numbered so that nothing is overwritten."""
    target = path.with_name(f"{path.name}.{suffix}")
    number = 1
    while target.exists():
        number += 1
        target = path.with_name(f"{path.name}.{suffix}-{number}")
    path.rename(target)
    return target
