"""The page of `orc web` over many unfinished runs while facts come in: bytes, processor time, memory, and delay to a reader."""

from __future__ import annotations

import contextlib
import gzip
import http.client
import json
import os
import random
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from agent_orchestrator.core.ids import RunId
from agent_orchestrator.core.units import US
from agent_orchestrator.store.port import Append
from benchmarks.bench import Bench
from benchmarks.measure import Figure, Row
from benchmarks.rig import Rig, chain

RUNS = 1_000
STEPS = 2_000
FACTS_PER_S = 180
SECONDS = 15
SEED = 18
TICKS = os.sysconf("SC_CLK_TCK")
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


def measure(bench: Bench) -> Iterator[Figure]:
    """Measure the server from outside."""
    rig = Rig(bench.folder / "repo")
    runs = [rig.create(f"run-{number}", chain(5, rig.prompt)) for number in range(bench.size(RUNS))]
    rig.create("graph", chain(bench.size(STEPS), rig.prompt))
    with _Served(bench.folder, rig.prompt.parent) as served:
        kilobytes = served.fetch("/api/runs") / 1000
        graph = served.fetch("/api/runs/graph/graph") / 1000
        reader = _Reader(served)
        reader.wait()
        before_s, began_s = served.processor_s(), time.monotonic()
        facts = _write_facts(rig, [run.id for run in runs], bench.size(SECONDS, 1))
        wall_s = time.monotonic() - began_s
        share = (served.processor_s() - before_s) / wall_s
        reader.stop()
        memory = served.memory_bytes() / 1e6
    reader.join()
    delays = sorted(reader.delays_ms) or [0.0]
    told = f"{len(runs)} unfinished runs, {facts / wall_s:.0f} facts a second"
    yield Row(what=f"the list of {len(runs)} runs, compressed", value=kilobytes, unit="kB", target=80)
    yield Row(what=f"the graph of {bench.size(STEPS)} steps, compressed", value=graph, unit="kB", target=60)
    yield Row(what="the server's share of a core", value=100 * share, unit="%", target=10, note=told)
    yield Row(what="the server's memory", value=memory, unit="MB", target=80)
    half = statistics.median(delays)
    yield Row(what="from a fact to a reader, median", value=half, unit="ms", target=150, note=f"{len(delays)} runs told")
    yield Row(what="from a fact to a reader, 95 of 100", value=delays[int(len(delays) * 0.95)], unit="ms", target=500)


def _write_facts(rig: Rig, runs: list[RunId], seconds: float) -> int:
    """Append a row to one run after the other, by chance, at an even pace; return how many."""
    chance, store = random.Random(SEED), rig.orchestrator.store
    rows = dict.fromkeys(runs, 1)
    summaries = {run.id: run.summary for run in store.runs()}
    begin_s, count = time.monotonic(), 0
    while (now_s := time.monotonic() - begin_s) < seconds:
        while count < now_s * FACTS_PER_S:
            run = chance.choice(runs)
            part = Append(
                run=run, expected_seq=rows[run], at_us=rig.orchestrator.clock.now_us(), body=b"[]", summary=summaries[run]
            )
            assert store.append([part]) == [None]
            rows[run] += 1
            count += 1
        time.sleep(0.005)
    return count


class _Served:
    """`orc web` with a session."""

    def __init__(self, folder: Path, repo: Path) -> None:
        environment = {"PATH": os.environ["PATH"], "HOME": str(folder), "PYTHONPATH": str(Path("src").resolve())}
        self._process = subprocess.Popen(
            [sys.executable, "-m", "agent_orchestrator.cli", "web", str(repo), "--port", "0", "--json"],
            env=environment,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._process.stdout is not None
        url = urlsplit(json.loads(self._process.stdout.readline())["url"])
        self.address = url.netloc
        self._headers: dict[str, str] = {}
        with self.ask(f"{url.path}?{url.query}") as reply:
            self._headers["Cookie"] = (reply.getheader("set-cookie") or "").partition(";")[0]
        self._headers["Accept-Encoding"] = "gzip"
        with self.ask("/api/runs") as reply:
            self.place = json.loads(gzip.decompress(reply.read()))["at"]

    @contextlib.contextmanager
    def ask(self, path: str) -> Iterator[http.client.HTTPResponse]:
        """Ask for something, as the page does."""
        with contextlib.closing(http.client.HTTPConnection(self.address, timeout=60)) as connection:
            connection.request("GET", path, headers=self._headers)
            with connection.getresponse() as reply:
                yield reply

    def fetch(self, path: str) -> int:
        """Return the bytes of an answer as they are sent."""
        with self.ask(path) as reply:
            assert reply.status == 200, reply.read()
            return len(reply.read())

    def processor_s(self) -> float:
        """Return the processor time that the server has used."""
        fields = Path(f"/proc/{self._process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / TICKS

    def memory_bytes(self) -> int:
        """Return the memory that the server has to itself or shares."""
        return int(Path(f"/proc/{self._process.pid}/statm").read_text().split()[1]) * PAGE_BYTES

    def __enter__(self) -> _Served:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        self._process.wait(30)
        if self._process.stdout is not None:
            self._process.stdout.close()


class _Reader:
    """A page that reads the stream, and notes how old each fact is when it is told."""

    def __init__(self, served: _Served) -> None:
        self.delays_ms: list[float] = []
        self._served = served
        self._began, self._over = threading.Event(), False
        self._since_us = time.time_ns() // 1000
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def wait(self) -> None:
        """Wait until the stream has begun."""
        assert self._began.wait(30), "the stream did not begin"
        time.sleep(0.5)

    def stop(self) -> None:
        """Read what is under way, and no more."""
        time.sleep(1)
        self._over = True

    def join(self) -> None:
        """Wait until the stream has ended with its server."""
        self._thread.join(30)

    def _read(self) -> None:
        ended = (OSError, http.client.HTTPException)
        with contextlib.suppress(*ended), self._served.ask(f"/api/events?topics=runs&at={self._served.place}") as stream:
            while not self._over and (line := stream.readline()):
                self._began.set()
                if line.startswith(b"data: ") and b'"runs"' in line:
                    now_us = time.time_ns() / 1000
                    rows: list[dict[str, Any]] = json.loads(line[6:]).get("runs", [])
                    moved = [row["updated_us"] for row in rows if row["updated_us"] > self._since_us]
                    self.delays_ms += [(now_us - at_us) / US * 1000 for at_us in moved]
