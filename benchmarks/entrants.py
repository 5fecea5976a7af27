"""The programs that run against each other: ours, the floor, and the peers, each in an environment of its own."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import msgspec

from benchmarks.subject import ROOT, Subject

ENVIRONMENTS = ROOT / ".cache" / "peers"
LISTS = ROOT / "benchmarks" / "peers"
INSTALL_S = 600.0


class Entrant(msgspec.Struct, frozen=True, kw_only=True):
    """One way of doing the work."""

    name: str
    title: str
    module: str
    arguments: tuple[str, ...] = ()
    environment: str = ""
    """The peer's own environment and list of packages; empty for ours."""
    durable: bool = True
    """True where a step's result is on the disk before the next step begins."""
    aside: str = ""
    """A remark for the reader."""
    seeded: bool = False
    """True where earlier steps are put into the state at once instead of being run: the cost per step is the same."""
    resumes: bool = True
    most_earlier: int = 10_000
    pace: float = 1.0
    """The share of the others' steps that it is asked for, since it is slower."""

    def start(self, folder: Path, *, wrapped: tuple[str, ...] = ()) -> Subject:
        """Start its program."""
        python = ENVIRONMENTS / self.environment / "bin" / "python" if self.environment else Path(sys.executable)
        return Subject(self.module, folder, *self.arguments, python=str(python), wrapped=wrapped)


OURS = Entrant(name="orc", title="orc", module="benchmarks.ours")
FLOOR = Entrant(name="floor", title="bare SQLite, WAL, FULL", module="benchmarks.floor")
PEERS = (
    Entrant(
        name="langgraph-sync",
        title="LangGraph, SqliteSaver, durability sync",
        module="benchmarks.peers.langgraph",
        arguments=("sync",),
        environment="langgraph",
        seeded=True,
    ),
    Entrant(
        name="langgraph-delta",
        title="LangGraph, SqliteSaver, DeltaChannel (beta)",
        module="benchmarks.peers.langgraph",
        arguments=("delta",),
        environment="langgraph",
    ),
    Entrant(
        name="dbos",
        title="DBOS on SQLite, as shipped",
        module="benchmarks.peers.dbos",
        arguments=("shipped",),
        environment="dbos",
    ),
    Entrant(
        name="dbos-wal",
        title="DBOS on SQLite, engine set to WAL and FULL by us",
        module="benchmarks.peers.dbos",
        arguments=("wal",),
        environment="dbos",
    ),
    Entrant(
        name="burr",
        title="Burr, SQLitePersister",
        module="benchmarks.peers.burr",
        environment="burr",
        seeded=True,
        pace=0.3,
    ),
    Entrant(
        name="prefect",
        title="Prefect, ephemeral server, results persisted",
        module="benchmarks.peers.prefect",
        environment="prefect",
        durable=False,
        aside="not durable before the next step: task states reach the server later, in bulk",
        resumes=False,
        most_earlier=1_000,
        pace=0.25,
    ),
)


def install(environment: str) -> str:
    """Make a peer's environment as its list says; return the reason where that fails, else an empty string."""
    folder, wanted = ENVIRONMENTS / environment, LISTS / f"{environment}.txt"
    stamp = folder / "installed.txt"
    if stamp.exists() and stamp.read_bytes() == wanted.read_bytes():
        return ""
    shutil.rmtree(folder, ignore_errors=True)
    pip = [str(folder / "bin" / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-r", str(wanted)]
    for command in ([sys.executable, "-m", "venv", str(folder)], pip):
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=INSTALL_S, check=False)
        except (OSError, subprocess.TimeoutExpired) as error:
            return f"could not be installed: {error}"
        if done.returncode != 0:
            said = (done.stderr or done.stdout).strip().splitlines()
            return f"could not be installed: {said[-1] if said else command[0]}"
    shutil.copyfile(wanted, stamp)
    return ""


def versions(environment: str) -> dict[str, str]:
    """Return what its list pins, by package."""
    lines = (LISTS / f"{environment}.txt").read_text("utf-8").splitlines()
    return dict(line.split("==", 1) for line in lines if "==" in line and not line.startswith("#"))
