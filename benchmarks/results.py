"""The file of a day's results: parts are written one by one, so that one that fails takes nothing along."""

from __future__ import annotations

import itertools
import os
import platform
import sqlite3
from datetime import UTC, datetime
from pathlib import Path

import apsw
import msgspec

from agent_orchestrator.version import __version__
from benchmarks.measure import Plot, Row
from benchmarks.subject import ROOT

FOLDER = ROOT / "benchmarks" / "results"


class PartResult(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The figures of one part, with the circumstances that they were taken in."""

    at: str
    took_s: float
    load: tuple[float, float]
    """The load average of the last minute, before and after."""
    scale: float = 1.0
    most_rounds: int | None = None
    """The rounds that somebody allowed at most; None where nobody said."""
    rows: list[Row] = []
    plots: list[Plot] = []
    failed: str = ""
    """The reason that the part ended early; what it had measured by then is kept."""


class Results(msgspec.Struct, frozen=True, kw_only=True):
    """All parts of a day on one machine."""

    date: str
    machine: dict[str, str]
    versions: dict[str, str]
    command: str
    peers: bool
    parts: dict[str, PartResult]


def machine() -> dict[str, str]:
    """Describe this machine without naming it."""
    with Path("/proc/meminfo").open(encoding="ascii") as file:
        memory_gb = int(file.readline().split()[1]) / 2**20
    return {
        "processors": f"{os.cpu_count()} × {_processor()}",
        "memory": f"{memory_gb:.0f} GiB",
        "system": f"{platform.system()} {platform.release()}",
        "file system": _file_system(ROOT),
    }


def versions() -> dict[str, str]:
    """Return the versions that ours and the floor run on."""
    return {
        "agent-orchestrator": __version__,
        "Python": platform.python_version(),
        "SQLite (ours and the floor)": apsw.sqlite_lib_version(),
        "SQLite (of Python, which the peers use)": sqlite3.sqlite_version,
    }


def _processor() -> str:
    with Path("/proc/cpuinfo").open(encoding="utf-8") as file:
        names = [line.partition(":")[2].strip() for line in file if line.startswith("model name")]
    return names[0] if names else platform.machine()


def _file_system(path: Path) -> str:
    with Path("/proc/mounts").open(encoding="utf-8") as file:
        mounts = [line.split()[1:3] for line in file]
    around = [(len(place), kind) for place, kind in mounts if path.is_relative_to(place)]
    return max(around)[1] if around else "unknown"


def place(date: str, *, peers: bool, folder: Path = FOLDER) -> Path:
    """Return the file of a day; what was measured without peers, or on another machine, stands in one of its own."""
    name = f"{date}{'' if peers else '-alone'}"
    paths = (folder / f"{name}{f'-{number}' if number > 1 else ''}.json" for number in itertools.count(1))
    return next(path for path in paths if (known := read(path)) is None or known.machine == machine())


def today() -> str:
    """Return the date of today."""
    return datetime.now(UTC).strftime("%Y-%m-%d")


def read(path: Path) -> Results | None:
    """Read results; None where there are none."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=Results)
    except FileNotFoundError:
        return None


def keep(path: Path, results: Results) -> None:
    """Write results, whole."""
    path.parent.mkdir(parents=True, exist_ok=True)
    scratch = path.with_suffix(".new")
    scratch.write_bytes(msgspec.json.format(msgspec.json.encode(results), indent=1) + b"\n")
    scratch.replace(path)


def newest(folder: Path = FOLDER) -> Path | None:
    """Return the newest results with peers."""
    return max(_with_peers(folder), key=_when, default=None)


def elsewhere(known: Results, folder: Path = FOLDER) -> list[Results]:
    """Return the newest results with peers of each other kind of machine, by the name of its processors, the newest first."""
    found: dict[str, Results] = {}
    for path in sorted(_with_peers(folder), key=_when, reverse=True):
        other = read(path)
        if other is not None and other.machine["processors"] != known.machine["processors"]:
            found.setdefault(other.machine["processors"], other)
    return list(found.values())


def _with_peers(folder: Path) -> list[Path]:
    return [path for path in folder.glob("????-??-??*.json") if "-alone" not in path.name]


def _when(path: Path) -> tuple[str, int]:
    """Return the date in a file's name, and its number on that day."""
    return path.stem[:10], int(path.stem[11:] or 1)
