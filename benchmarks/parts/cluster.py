"""Runs in PostgreSQL: a durable step against a bare insert there, many runs at once, what a worker at rest holds, a take-over."""

from __future__ import annotations

import contextlib
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg

from agent_orchestrator.store.postgres import install
from benchmarks.bench import Bench
from benchmarks.entrants import Entrant
from benchmarks.measure import Figure, Row, not_measured, of_rounds
from benchmarks.parts.many import events_per_s
from benchmarks.subject import ROOT
from tests.postgres.server import PostgresServer

STEPS, WARM = 200, 100
RUNS, RUN_STEPS = 100, 30
LEASE_S = 6.0
STEP_TARGET, RATE_TARGET, CONNECTIONS_TARGET, TAKE_OVER_TARGET = 2.5, 1_500.0, 3, LEASE_S + 1.0
SHARE = 0.3
"""Of the time that is left, for each of the two measurements in rounds: the workers come after them."""
PATIENCE_S = 60.0
WHY_STEP = (
    "a step is an agent's end decided, its successor started and both journaled behind a fence: above the round trip it is Python"
)
WHY_RATE = "server and engine share the cores of one machine, and one engine is one thread"


def measure(bench: Bench) -> Iterator[Figure]:
    """The server is durable as it ships: it syncs its log with every commit."""
    try:
        server = PostgresServer(durable=True)
    except AssertionError as error:
        yield not_measured("orc on PostgreSQL", str(error).splitlines()[0])
        return
    try:
        url = server.make_database()
        install(url)
        yield from _measure_steps(bench, url)
        yield from _measure_worker(bench, server, url)
    finally:
        server.remove()


def _measure_steps(bench: Bench, url: str) -> Iterator[Figure]:
    ours = Entrant(name="orc-postgres", title="orc on PostgreSQL", module="benchmarks.ours", arguments=(url,))
    bare = Entrant(name="bare-postgres", title="bare PostgreSQL", module="benchmarks.postgres_floor", arguments=(url,))
    ratios = []
    with bench.opened([bare, ours]) as subjects:
        floor, orc = subjects[bare.name], subjects[ours.name]
        for one in (floor, orc):
            one.ask("steps", count=bench.size(WARM))
        for _ in bench.rounds(most=7, share=SHARE):
            before = floor.ask("steps", count=bench.size(STEPS))
            cost_s = statistics.median(orc.ask("steps", count=bench.size(STEPS)))
            after = floor.ask("steps", count=bench.size(STEPS))
            ratios.append(cost_s / statistics.median(before + after))
        # After the steps: a hundred runs leave files to write back and rows to clean up.
        rates = [events_per_s([orc], bench.size(RUNS), bench.size(RUN_STEPS, 10)) for _ in bench.rounds(most=7, share=SHARE)]
    named = "a durable step in a chain / a bare insert and commit (p50)"
    yield of_rounds(f"orc on PostgreSQL: {named}", ratios, target=STEP_TARGET, why=WHY_STEP)
    named = f"{RUNS} runs at once on one engine: durable events per second"
    yield of_rounds(f"orc on PostgreSQL: {named}", rates, unit="/s", target=RATE_TARGET, at_least=True, why=WHY_RATE)


def _measure_worker(bench: Bench, server: PostgresServer, url: str) -> Iterator[Figure]:
    """Two workers at rest: their connections, and the time in which one takes the other's run over."""
    folder = bench.folder / "workers"
    with contextlib.ExitStack() as stack:
        first, second = (stack.enter_context(_worker(folder, name, url)) for name in ("ada", "bob"))
        with psycopg.connect(url, autocommit=True) as db:

            def ask(statement: bytes) -> int:
                row = db.execute(statement).fetchone()
                return int(row[0]) if row is not None and row[0] is not None else 0

            _wait(lambda: ask(b"SELECT count(*) FROM orc.workers WHERE pool <> ''") == 2)
            each = ask(b"SELECT count(*) FROM pg_stat_activity WHERE application_name = 'orc'") / 2
            yield Row(what="connections that a worker at rest holds", value=each, unit="", target=CONNECTIONS_TARGET)
            time.sleep(LEASE_S + 1)  # whoever takes over must have held its lease for a whole lease's time
            db.execute(_HELD)
            key = ask(b"SELECT key FROM orc.workers WHERE name = 'ada'")
            db.execute(
                b"UPDATE orc.runs SET worker = %s, epoch = 1, state = 'driven', pool = 'default' WHERE id = 'held'", (key,)
            )
            first.send_signal(signal.SIGKILL)
            began = time.monotonic()
            _wait(lambda: ask(b"SELECT epoch FROM orc.runs WHERE id = 'held'") > 1)
            took_s = time.monotonic() - began
        second.terminate()
    named = f"a worker is killed → another has its run, with a lease of {LEASE_S:g} s"
    yield Row(what=named, value=took_s, unit=" s", target=TAKE_OVER_TARGET)


_HELD = b"""
INSERT INTO orc.runs (repo, id, system, name, context, summary, created_us, updated_us, ended)
VALUES (orc.repository('bench'), 'held', 'workflow', 'held', '{}', '{}', 0, 0, false)
"""


@contextlib.contextmanager
def _worker(folder: Path, name: str, url: str) -> Iterator[subprocess.Popen[bytes]]:
    own = folder / name
    own.mkdir(parents=True)
    words = ["worker", "--store", url, "--name", name, "--root", str(own.parent / "root"), "--lease", f"{LEASE_S:g}s"]
    environ = {"PATH": "/usr/bin:/bin", "HOME": str(own), "PYTHONPATH": str(ROOT / "src")}
    process = subprocess.Popen(
        [sys.executable, "-m", "agent_orchestrator.cli", *words],
        cwd=own,
        env=environ,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def _wait(until: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not until():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.02)
