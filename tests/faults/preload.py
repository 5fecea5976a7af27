"""Faults of system calls in a program under test: the N-th of a class fails, or a program is killed at it."""

from __future__ import annotations

import os
import shutil
import subprocess
from functools import cache
from pathlib import Path

SOURCES = Path(__file__).parent
CLASSES = (
    *("open", "write", "sync", "rename", "mkdir", "remove", "link", "truncate", "lock", "spawn"),
    *("look", "read", "fork", "exec", "pipe"),
)


@cache
def find_compiler() -> str | None:
    """Return the C compiler of this machine; None without one."""
    return shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")


def build(folder: Path) -> Path:
    """Compile the library that lets calls fail."""
    return build_library(folder, "preload")


def build_library(folder: Path, name: str) -> Path:
    """Compile one of the libraries here into a folder, anew when it is older than its source."""
    source, made = SOURCES / f"{name}.c", folder / f"{name}.so"
    if not made.exists() or made.stat().st_mtime < source.stat().st_mtime:
        compiler = find_compiler()
        assert compiler is not None, "there is no C compiler"
        folder.mkdir(parents=True, exist_ok=True)
        draft = folder / f"{name}.{os.getpid()}.so"
        command = [compiler, "-shared", "-fPIC", "-O1", "-Wall", "-o", str(draft), str(source), "-ldl"]
        subprocess.run(command, check=True, capture_output=True)
        draft.rename(made)
    return made


def faulty(library: Path, log: Path, name: str, at: int, error: int, *, ever: bool = False, below: str = "") -> dict[str, str]:
    """Return the variables that bring the fault into a program; `log` has a line once it has happened."""
    given = {
        "LD_PRELOAD": str(library),
        "FAULT_CLASS": name,
        "FAULT_AT": str(at),
        "FAULT_ERRNO": str(error),
        "FAULT_LOG": str(log),
    }
    return {**given, "FAULT_EVER": "1" if ever else "0", **({"FAULT_BELOW": below} if below else {})}
