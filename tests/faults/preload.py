"""Faults of system calls in a program under test: the N-th of a class fails, or one in each place, or kills the program."""

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

GAP_MS = 200
"""The time in which a program gets over a call that failed."""


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


def fail_new_places(library: Path, log: Path, name: str, error: int, places: Path, *, part: str, ever: bool) -> dict[str, str]:
    """Return the variables that let calls of a class fail which come from places that are not in the file of places yet.

    One after another, with time in between to get over it; or all calls from the first of them on. Only places of one part of
    all are taken: of `2/12` the third of twelve. `log` has a line and a stack for each place. Where one call fails, eight
    calls of its stack make the place, so that whoever asked for it counts; where all fail, five.
    """
    given = {"LD_PRELOAD": str(library), "FAULT_CLASS": name, "FAULT_ERRNO": str(error), "FAULT_LOG": str(log)}
    manner = {"FAULT_EVER": "1", "FAULT_DEPTH": "5"} if ever else {"FAULT_GAP_MS": str(GAP_MS), "FAULT_DEPTH": "8"}
    return {**given, **manner, "FAULT_PLACES": str(places), "FAULT_PART": part}


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
